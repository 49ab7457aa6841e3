import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { createDoor } from "#test/harness/database-door.ts";
import { postgresTests, startPostgres } from "#test/harness/postgres.ts";
import { startProcess } from "#test/harness/process.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { createRest, type Reply } from "#test/harness/rest.ts";
import type { GatewayNode } from "../crash/fleet.ts";
import { agentWith, key } from "../process/configs.ts";
import { clientOf, linesOf, type NodesOptions, startNodes, until } from "./nodes.ts";
import { createSender, expectKept, recovered } from "./sender.ts";

// These tests mostly wait, so they run in parallel.

const BLOCKED_MS = 5_000;
const LEEWAY_MS = 500;
const FORGOTTEN_MS = 500;
const WORST_LAG = 'nodejs_eventloop_lag_seconds{quantile="1"}';
const agents = {
  quick: { backend: "echo", heartbeat: { every: "500ms" } },
  long: { backend: "echo", heartbeat: { every: "500ms" }, echo: { delayMs: 1_000, chunks: 4 } },
};

await postgresTests((server) => {
  const startTwo = async (onFinished: NonNullable<NodesOptions["onFinished"]>) =>
    await startNodes({ count: 2, agents, store: { type: "postgres", url: await server.createSchema() }, onFinished });

  /** A turn that the first gateway runs, and an event that is handled. */
  const beginOn = async (node: GatewayNode) => {
    const client = clientOf(node);
    const event = { text: "<event>", agent: "long", mode: "now" };
    const { eventId } = await taken(() => client.wake(event, { "idempotency-key": "event" }));
    // On any of them. The turn comes after it, because it must not have ended when something happens to its gateway.
    await until(async () => (await client.event(eventId as string)).turn_id !== null);
    const room = { agent: "long", session: "webhook:room" };
    const send = (message: string) => taken(() => client.agent({ message, ...room }, { "idempotency-key": message }));
    const { turnId } = await send("one two three four");
    const behind = await send("five");
    await until(() => linesOf(node, "turn.started", { turnId }).length > 0);
    return { turnId: turnId as string, behind: behind.turnId as string, eventId: eventId as string };
  };

  /** The turn ended once, in its second attempt, and so did the turn behind it; the event was in one turn that completed. */
  const expectOnce = async (node: GatewayNode, { turnId, behind, eventId }: Awaited<ReturnType<typeof beginOn>>) => {
    const client = clientOf(node);
    for (const id of [turnId, behind]) await until(async () => (await client.turn(id)).status === "completed");
    expect(await client.turn(turnId)).toMatchObject({ attempt: 2, reply: "one two three four" });
    expect(await client.turn(behind)).toMatchObject({ attempt: 1, reply: "five" });
    const { result } = await client.rpc.call("session.get", { sessionId: "webhook:room" });
    for (const role of ["user", "assistant"]) {
      const texts = result.messages.filter((message) => message.role === role).map(({ text }) => text);
      expect(texts.reverse()).toEqual(["one two three four", "five"]);
    }
    await until(async () => (await client.event(eventId)).status === "handled");
    const beats = (await client.rpc.call("session.get", { sessionId: "agent:long:main" })).result.messages;
    expect(beats.filter(({ role, text }) => role === "user" && text.includes("<event>"))).toHaveLength(1);
  };

  describe.concurrent("of two gateways", () => {
    test("F30: one dies during a turn: the other takes the turn over, and the client can read its stream there", async ({
      expect,
      onTestFinished,
    }) => {
      await using fleet = await startTwo(onTestFinished);
      const { first, second } = fleet;
      const begun = await beginOn(first);
      await first.kill();
      const follow = clientOf(second).rest.stream("turns.events", { path: { turn_id: begun.turnId } });
      await until(() => linesOf(second, "turn.started", { turnId: begun.turnId }).length > 0);
      const events = await (await follow).all();
      expect(events.map(({ event }) => event)).toContain("message.completed");
      expect(events.at(-1)).toMatchObject({ event: "turn.completed", data: { reply: "one two three four" } });
      await expectOnce(second, begun);
    });

    test("F27: one that was suspended longer than its lease is fenced when it continues: the turn ends once, with the other's end", async ({
      expect,
      onTestFinished,
    }) => {
      await using fleet = await startTwo(onTestFinished);
      const { first, second } = fleet;
      const begun = await beginOn(first);
      first.signal("SIGSTOP");
      await until(() => linesOf(second, "turn.started", { turnId: begun.turnId }).length > 0);
      first.signal("SIGCONT");
      await until(() => linesOf(second, "turn.ended", { turnId: begun.turnId }).length > 0);
      await expectOnce(second, begun);
      // It detects that its lease has expired, and works as well as the other.
      expect(linesOf(first, "turn.ended", { turnId: begun.turnId })).toEqual([]);
      await until(async () => (await clientOf(first).ready()) === 200);
      expect(await clientOf(first).turn(begun.turnId)).toMatchObject({ status: "completed", attempt: 2 });
    });

    test("F27: one whose event loop was blocked reports it in its metrics and is not ready for a while, and works as before", async ({
      expect,
      onTestFinished,
    }) => {
      await using fleet = await startNodes({ store: { type: "memory" }, onFinished: onTestFinished });
      const { first } = fleet;
      const client = clientOf(first);
      // The first reading starts the measurement, which needs a first beat to count from before it has values.
      await until(async () => (await client.metric(WORST_LAG)) > 0);
      // A blocked start is reset a moment later.
      await until(async () => (await client.ready()) === 200);
      await new Promise((resolve) => setTimeout(resolve, FORGOTTEN_MS));
      first.signal("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, BLOCKED_MS));
      first.signal("SIGCONT");
      await until(async () => (await client.metric(WORST_LAG)) * 1_000 > BLOCKED_MS - LEEWAY_MS);
      expect(await client.ready()).toBe(503);
      expect((await client.wake({ text: "after" })).status).toBe(200);
      await until(async () => (await client.ready()) === 200);
    });
  });

  test.concurrent("F05: the network to the database breaks silently: work is refused in time, and fenced until it is back", async ({
    expect,
    onTestFinished,
  }) => {
    await using server = await startPostgres();
    using door = await createDoor(server.url());
    await using fleet = await startNodes({ store: { type: "postgres", url: door.url }, onFinished: onTestFinished });
    const client = clientOf(fleet.first);
    const sender = createSender(client);
    for (let n = 0; n < 10; n++) await Promise.all([sender.wake(), sender.turn()]);
    door.set("silent");
    const refused = [await sender.wake(), ...(await Promise.all(Array.from({ length: 20 }, () => sender.wake())))];
    for (const { status } of refused) expect(status).toBe(503);
    door.set("open");
    await recovered(client, sender.wake);
    await expectKept(client, sender.acknowledged);
  });
});

/** A gateway may still be opening its connections to the database: a refused request is repeated. */
function taken(send: () => Promise<Reply>) {
  return until(async () => {
    const { status, json } = await send();
    return status === 200 && json;
  });
}

const DESCRIPTORS = 64;
const CONNECTIONS = 200;

test.concurrent("F24: without free descriptors it accepts no connections, logs it once, serves the open ones, and recovers", async ({
  expect,
  onTestFinished,
}) => {
  await using gateway = await startProcess({
    onFinished: onTestFinished,
    config: agentWith({}),
    command: (usual) => ["bash", "-c", `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`, ...usual],
  });
  const rest = createRest(gateway.url, key);
  expect((await rest.call("chat.send", { body: { message: "before" } })).status).toBe(200);
  await using kept = await openConnection(gateway.url);
  const port = Number(new URL(gateway.url).port);
  const sockets: Socket[] = [];
  const gone = new Set<Socket>();
  for (let n = 0; n < CONNECTIONS; n++) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.on("close", () => gone.add(socket));
    sockets.push(socket);
  }
  expect(await gateway.logged("accept.paused")).toMatchObject({ level: "error", reason: "connections" });
  await expect.poll(() => gone.size).toBeGreaterThan(CONNECTIONS - DESCRIPTORS);
  expect(readdirSync(`/proc/${gateway.pid}/fd`).length).toBeLessThan(DESCRIPTORS - 10);
  const place = { method: "POST", path: "/api/v1/chat/send" };
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  kept.write(requestText(place, headers, '{"message":"meanwhile"}'));
  expect(await kept.reply(place)).toMatchObject({ status: 200, json: { reply: "meanwhile" } });

  const left = sockets.filter((socket) => !gone.has(socket));
  expect(left.length).toBeGreaterThan(5);
  await Promise.all(left.map((socket) => once(socket.destroy(), "close")));
  await expect.poll(() => readdirSync(`/proc/${gateway.pid}/fd`).length).toBeLessThan(30);
  expect((await rest.call("chat.send", { body: { message: "after" } })).status).toBe(200);
  await gateway.logged("accept.resumed");
  expect(gateway.records.filter(({ event }) => event === "accept.paused")).toHaveLength(1);
});
