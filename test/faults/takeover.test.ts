import { describe, expect, test } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import type { GatewayNode } from "../crash/fleet.ts";
import { clientOf, linesOf, type NodesWish, startNodes, timed, until } from "./nodes.ts";

/** A turn of a gateway that is gone goes on elsewhere within this time. */
const TAKEN_OVER_MS = 15_000;
const BLOCKED_MS = 5_000;
const LEEWAY_MS = 500;
const FORGOTTEN_MS = 500;
const WORST_LAG = 'nodejs_eventloop_lag_seconds{quantile="1"}';
const agents = {
  quick: { backend: "echo", heartbeat: { every: "500ms" } },
  long: { backend: "echo", heartbeat: { every: "500ms" }, echo: { delayMs: 1_000, chunks: 4 } },
};

await postgresTests((server) => {
  const startTwo = async (onFinished: NonNullable<NodesWish["onFinished"]>) =>
    await startNodes({ count: 2, agents, store: { type: "postgres", url: await server.createSchema() }, onFinished });

  /** A turn that the first gateway runs, and an event that is handed over. */
  const beginOn = async (node: GatewayNode) => {
    const client = clientOf(node);
    const { eventId } = (await client.wake({ text: "<event>", agent: "long", mode: "now" })).json;
    // Whichever of them beats. The turn comes after it, as that must not have ended by the time that something happens to its gateway.
    await until(async () => (await client.event(eventId as string)).turn_id !== null);
    const { json } = await client.agent({ message: "one two three four", agent: "long", session: "webhook:room" });
    const behind = await client.agent({ message: "five", agent: "long", session: "webhook:room" });
    await until(() => linesOf(node, "turn.started", { turnId: json.turnId }).length > 0);
    return { turnId: json.turnId as string, behind: behind.json.turnId as string, eventId: eventId as string };
  };

  /** The turn ended once, on its second attempt, and so did what was behind it; the event reached one turn that completed. */
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

  // They mostly wait: for a lease to end, or for time to pass. They do so side by side.
  describe.concurrent("of two gateways", () => {
    test("F30: one dies in the middle of a turn: the other takes it over within 15 s, and the client finds its stream there", async ({
      expect,
      onTestFinished,
    }) => {
      await using fleet = await startTwo(onTestFinished);
      const { first, second } = fleet;
      const begun = await beginOn(first);
      await first.kill();
      const follow = clientOf(second).rest.stream("turns.events", { path: { turn_id: begun.turnId } });
      const [, ms] = await timed(until(() => linesOf(second, "turn.started", { turnId: begun.turnId }).length > 0));
      expect(ms).toBeLessThan(TAKEN_OVER_MS);
      const events = await (await follow).all();
      expect(events.map(({ event }) => event)).toContain("message.completed");
      expect(events.at(-1)).toMatchObject({ event: "turn.completed", data: { reply: "one two three four" } });
      await expectOnce(second, begun);
    }, 60_000);

    test("F27: one that stood still past its lease is fenced when it goes on: the turn ends once, as the other ended it", async ({
      expect,
      onTestFinished,
    }) => {
      await using fleet = await startTwo(onTestFinished);
      const { first, second } = fleet;
      const begun = await beginOn(first);
      first.signal("SIGSTOP");
      const [, ms] = await timed(until(() => linesOf(second, "turn.started", { turnId: begun.turnId }).length > 0));
      expect(ms).toBeLessThan(TAKEN_OVER_MS);
      first.signal("SIGCONT");
      await until(() => linesOf(second, "turn.ended", { turnId: begun.turnId }).length > 0);
      await expectOnce(second, begun);
      // It knows that it was not its own any more, and is as good as the other.
      expect(linesOf(first, "turn.ended", { turnId: begun.turnId })).toEqual([]);
      await until(async () => (await clientOf(first).ready()) === 200);
      expect(await clientOf(first).turn(begun.turnId)).toMatchObject({ status: "completed", attempt: 2 });
    }, 60_000);

    test("F27: one whose event loop stood still shows it in its metrics and is not ready for a while, and serves as before", async ({
      expect,
      onTestFinished,
    }) => {
      await using fleet = await startNodes({ store: { type: "memory" }, onFinished: onTestFinished });
      const { first } = fleet;
      const client = clientOf(first);
      // The first look begins the measuring, which has a first beat to count from once it shows something.
      await until(async () => (await client.metric(WORST_LAG)) > 0);
      // What stands still while the doors open is forgotten, a moment later.
      await until(async () => (await client.ready()) === 200);
      await new Promise((resolve) => setTimeout(resolve, FORGOTTEN_MS));
      first.signal("SIGSTOP");
      await new Promise((resolve) => setTimeout(resolve, BLOCKED_MS));
      first.signal("SIGCONT");
      await until(async () => (await client.metric(WORST_LAG)) * 1_000 > BLOCKED_MS - LEEWAY_MS);
      expect(await client.ready()).toBe(503);
      expect((await client.wake({ text: "after" })).status).toBe(200);
      await until(async () => (await client.ready()) === 200);
    }, 60_000);
  });
});
