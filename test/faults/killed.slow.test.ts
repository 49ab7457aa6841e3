import { expect, test } from "vitest";
import { clientOf, linesOf, startNodes, until } from "./nodes.ts";

const ROOMS = 10;
const agents = {
  quick: { backend: "echo", heartbeat: { every: "200ms" } },
  slow: { backend: "echo", heartbeat: { every: "1h" }, echo: { delayMs: 400, chunks: 4 } },
};

test("F01: killed in the middle of its turns, it goes on with all of them, with one effect per key", async () => {
  await using fleet = await startNodes({ agents });
  const { first } = fleet;
  const before = clientOf(first);
  const send = async (client: typeof before, n: number, key: string) => {
    const params = { agentName: "slow", sessionId: `room:${n % ROOMS}`, message: `message ${n}`, idempotencyKey: key };
    return (await client.rpc.call("agent.sendMessage", params)).result;
  };
  const sent = await Promise.all(Array.from({ length: 2 * ROOMS }, (_, n) => send(before, n, `key ${n}`)));
  const wakes = await Promise.all(
    Array.from({ length: 20 }, (_, n) => before.wake({ text: `event ${n}`, agent: "slow" })),
  );
  await until(() => linesOf(first, "turn.started").length >= ROOMS);
  await first.kill();

  first.start();
  await until(() => linesOf(first, "turn.started", { attempt: 2 })[ROOMS - 1]);

  const [said, ...more] = linesOf(first, "store.taken-over");
  expect(said?.detail).toMatch(new RegExp(`: turns ${ROOMS}, beats \\d, announcements 0\\.$`));
  expect(more).toEqual([]);

  const after = clientOf(first);
  const again = await Promise.all(sent.map((_, n) => send(after, n, `key ${n}`)));
  expect(again.map(({ turnId, replayed }) => [turnId, replayed])).toEqual(sent.map(({ turnId }) => [turnId, true]));
  const turns = await Promise.all(
    sent.map(({ turnId }) =>
      until(async () => {
        const turn = await after.turn(turnId);
        return turn.status !== "queued" && turn.status !== "running" && turn;
      }),
    ),
  );
  expect(turns.map(({ status }) => status)).toEqual(sent.map(() => "completed"));
  // The heads of their sessions were running; those behind them had not begun.
  expect(turns.map(({ attempt }) => attempt)).toEqual(sent.map((_, n) => (n < ROOMS ? 2 : 1)));
  for (let n = 0; n < ROOMS; n++) {
    const { result } = await after.rpc.call("session.get", { sessionId: `room:${n}` });
    const toldBy = (role: string) => result.messages.filter((message) => message.role === role).map(({ text }) => text);
    for (const role of ["user", "assistant"])
      expect(toldBy(role).reverse()).toEqual([`message ${n}`, `message ${n + ROOMS}`]);
  }
  for (const { json } of wakes) expect(await after.event(json.eventId as string)).toMatchObject({ status: "queued" });
}, 60_000);
