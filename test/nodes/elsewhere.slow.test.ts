import { describe, expect, it } from "vitest";
import type { StreamEvent } from "#test/harness/contract.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { startNodes, type TestNode } from "./nodes.ts";

/** Nodes of which the first and the last run no turns of `live`: their messages run on the middle one when they are full. */
async function startWithOneFree(server: Parameters<typeof startNodes>[0]) {
  const nodes = await startNodes(server, 1);
  const [first] = nodes.all as [TestNode];
  await first.fill();
  const last = await nodes.start();
  await last.fill();
  const runs = await nodes.start();
  return { first, runs, last, [Symbol.asyncDispose]: () => nodes[Symbol.asyncDispose]() };
}

function textOf(events: readonly StreamEvent[]): string {
  return events.map(({ event, data }) => (event === "message.delta" ? String(data.text) : "")).join("");
}

await postgresTests((server) => {
  describe("a turn that runs on another gateway", () => {
    it("answers its waiting caller, over REST and over RPC", async () => {
      await using nodes = await startWithOneFree(server);
      const { first, runs, last } = nodes;
      const reply = first.rest.call("chat.send", { body: { agent: "live", message: "over REST" } });
      const played = await runs.next();
      played.say("from the second");
      played.end();
      expect(await reply).toMatchObject({ status: 200, json: { reply: "from the second" } });

      const answer = last.rpc.call("agent.sendMessage", { agentName: "live", message: "over RPC", wait: true });
      const failing = await runs.next();
      failing.fail(new Error("out of order"));
      expect(await answer).toMatchObject({ error: { data: { name: "turn-failed" } } });
    });

    it("is streamed while it is written, and can be resumed on any gateway", async () => {
      await using nodes = await startWithOneFree(server);
      const { first, runs, last } = nodes;
      const { events } = await first.rest.stream("chat.send", {
        body: { agent: "live", message: "tell", session_id: "s" },
      });
      const seen: StreamEvent[] = [];
      const until = async (is: (event: StreamEvent) => boolean): Promise<StreamEvent> => {
        for (;;) {
          const { done, value } = await events.next();
          if (done) throw new Error(`the stream ended after ${JSON.stringify(seen)}`);
          seen.push(value);
          if (is(value)) return value;
        }
      };
      const played = await runs.next();
      played.say("Once upon");
      await until(() => textOf(seen) === "Once upon");
      played.say(" a time");
      const cut = await until(() => textOf(seen) === "Once upon a time");

      const turn_id = played.turn.turnId;
      const again = await last.rest.stream("turns.events", { path: { turn_id }, headers: { "last-event-id": cut.id } });
      const resumed = again.all();
      const whole = (await last.rest.stream("turns.events", { path: { turn_id } })).all();
      played.say(", there was");
      await until(() => textOf(seen) === "Once upon a time, there was");
      played.say(" an end.");
      played.end();
      await until(({ event }) => event === "turn.completed");
      expect(textOf(seen)).toBe("Once upon a time, there was an end.");
      expect(textOf(await resumed)).toBe(", there was an end.");
      expect(textOf(await whole)).toBe("Once upon a time, there was an end.");
      expect((await resumed).map(({ event }) => event).filter((event) => event !== "message.delta")).toEqual([
        "message.completed",
        "turn.completed",
      ]);
    });

    it("is pushed to its sender, to subscribers of its session or agent, and to late ones", async () => {
      await using nodes = await startWithOneFree(server);
      const { first, runs, last } = nodes;
      using sender = await openSocket(first);
      using reader = await openSocket(last);
      await reader.call("rpc.subscribe", { agents: ["live"] });
      await sender.call("agent.sendMessage", { agentName: "live", message: "x", sessionId: "pushed", stream: true });
      const played = await runs.next();
      await reader.pushed("message.created", ({ sessionId, role }) => sessionId === "pushed" && role === "assistant");
      const told = (socket: typeof sender) =>
        socket
          .pushesOf("message.delta")
          .filter(({ sessionId }) => sessionId === "pushed")
          .reduce((text, delta) => text + delta.text, "");
      played.say("Good mor");
      for (const one of [sender, reader]) await one.until(() => told(one) === "Good mor");

      using late = await openSocket(last);
      await late.call("rpc.subscribe", { sessions: { pushed: null } });
      await late.until(() => told(late) === "Good mor");
      played.say("ning");
      for (const one of [sender, reader, late]) await one.until(() => told(one) === "Good morning");
      played.end();
      for (const one of [sender, reader, late]) {
        await one.pushed("turn.completed", ({ sessionId }) => sessionId === "pushed");
        expect(told(one)).toBe("Good morning");
      }
      const inSession = reader.pushes.filter(({ params }) => "sessionId" in params && params.sessionId === "pushed");
      const entries = inSession.filter(({ method }) => method !== "message.delta");
      expect(entries.map(({ params }) => "seq" in params && params.seq)).toEqual([1, 2, 3, 4, 5, 6]);
    });

    it("can be cancelled on any gateway", async () => {
      await using nodes = await startWithOneFree(server);
      const { first, runs, last } = nodes;
      const reply = first.rest.call("chat.send", { body: { agent: "live", message: "long" } });
      const { turn, signal, say } = await runs.next();
      say("half of");
      const cancelled = await last.rest.call("turns.cancel", { path: { turn_id: turn.turnId } });
      expect(cancelled).toMatchObject({ status: 200, json: { status: "cancelled" } });
      expect(signal.aborted).toBe(true);
      expect(await reply).toMatchObject({ status: 409, error: "turn-cancelled" });
    });

    it("ends for its waiting caller when its session is deleted on any gateway", async () => {
      await using nodes = await startWithOneFree(server);
      const { first, runs, last } = nodes;
      const reply = first.rest.call("chat.send", { body: { agent: "live", message: "long", session_id: "gone" } });
      const { signal } = await runs.next();
      await last.rpc.call("session.delete", { sessionId: "gone" });
      expect(await reply).toMatchObject({ status: 404, error: "turn-not-found" });
      await expect.poll(() => signal.aborted).toBe(true);
    });

    it("continues on another gateway when its own stops", async () => {
      await using nodes = await startNodes(server, 1);
      const [second] = nodes.all as [TestNode];
      const filled = await second.fill();
      const first = await nodes.start();
      const { result } = await first.rpc.call("agent.sendMessage", {
        agentName: "live",
        message: "x",
        sessionId: "moved",
      });
      const begun = await first.next();
      begun.say("half of");
      filled.end();
      await first.gateway.drain("test", 0);
      const again = await second.next();
      expect(again.turn).toMatchObject({ turnId: result.turnId, attempt: 2 });
      again.say("whole");
      again.end();
      const { turnId } = result;
      await expect
        .poll(async () => (await second.rest.call("turns.get", { path: { turn_id: turnId } })).json)
        .toMatchObject({ status: "completed", reply: "whole", attempt: 2 });
    });
  });
});
