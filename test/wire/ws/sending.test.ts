import { describe, expect, test } from "vitest";
import { send, shareLiveGateway } from "./live-gateway.ts";
import { openSocket } from "./socket.ts";

const { puppet, gateway } = await shareLiveGateway();

describe("the sender of a message", () => {
  test("gets the answer, then the end of its turn, and nothing else", async () => {
    using socket = await openSocket(gateway);
    const sent = await send(socket, "sender-1");
    const end = await socket.pushed("turn.completed");
    expect(end).toMatchObject({ turnId: sent.turnId, sessionId: "sender-1", reply: "Good morning" });
    expect(end.usage).toEqual({ input: 3, output: 3, total: 6 });
    await socket.call("agent.status", { agentName: "main" });
    expect(socket.order).toEqual(["answer", "turn.completed", "answer"]);
  });

  test("gets the same if it waits for the reply, or requests no answer", async () => {
    using socket = await openSocket(gateway);
    expect(await send(socket, "sender-2", "one", { wait: true })).toMatchObject({ reply: "one" });
    await socket.pushed("turn.completed", ({ reply }) => reply === "one");
    expect(socket.order).toEqual(["answer", "turn.completed"]);
    const params = { agentName: "main", sessionId: "sender-2", message: "two" };
    socket.ws.send(JSON.stringify({ jsonrpc: "2.0", method: "agent.sendMessage", params }));
    await socket.pushed("turn.completed", ({ reply }) => reply === "two");
    expect(socket.responses).toHaveLength(1);
  });

  test("gets the name of a failure, and the cancellation of a turn by another caller", async () => {
    using socket = await openSocket(gateway);
    const { turnId } = await send(socket, "sender-3", "x", { agentName: "bad" });
    expect(await socket.pushed("turn.failed")).toMatchObject({
      turnId,
      error: { name: "turn-failed", title: "Turn failed", detail: "out of order" },
    });

    const sent = await send(socket, "sender-4", "x", { agentName: "live" });
    await puppet.next();
    await gateway.console.call("turns.cancel", { path: { turn_id: sent.turnId } });
    expect(await socket.pushed("turn.cancelled")).toMatchObject({ turnId: sent.turnId, reply: "" });
  });

  test("with `stream` gets the pieces of the reply, which joined together are the reply", async () => {
    using socket = await openSocket(gateway);
    const { turnId } = await send(socket, "sender-5", "x", { agentName: "live", stream: true });
    const played = await puppet.next();
    played.say("Good");
    await socket.pushed("message.delta", ({ text }) => text === "Good");
    played.say(" mor");
    await socket.pushed("message.delta", ({ text }) => text === " mor");
    played.say("ning");
    played.end();
    await socket.pushed("turn.completed");
    const deltas = socket.pushesOf("message.delta");
    expect(deltas.map(({ offset, text }) => [offset, text])).toEqual([
      [0, "Good"],
      [4, " mor"],
      [8, "ning"],
    ]);
    expect(new Set(deltas.map((delta) => `${delta.turnId} ${delta.seq} ${delta.sessionId}`))).toEqual(
      new Set([`${turnId} 4 sender-5`]),
    );
    expect(socket.order).toEqual(["answer", "message.delta", "message.delta", "message.delta", "turn.completed"]);
  });

  test("gets the pieces of a reply that arrives at once", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "sender-6", "at once", { stream: true });
    await socket.pushed("turn.completed");
    expect(socket.pushesOf("message.delta")).toMatchObject([{ offset: 0, text: "at once", seq: 4 }]);
    expect(socket.order).toEqual(["answer", "message.delta", "turn.completed"]);
  });

  test("with `stream` gets the text so far if it repeats its message during the reply", async () => {
    using first = await openSocket(gateway);
    using socket = await openSocket(gateway);
    const again = { agentName: "live", sessionId: "sender-10", message: "x", idempotencyKey: "again-11", stream: true };
    await first.call("rpc.subscribe", { agents: ["live"] });
    await first.call("agent.sendMessage", again);
    const played = await puppet.next();
    played.say("Good");
    await first.pushed("message.delta");
    await send(socket, "sender-10", "queued", { agentName: "live" });
    await socket.call("agent.sendMessage", again);
    await socket.pushed("message.delta", ({ offset, text }) => offset === 0 && text === "Good");
    played.end();
    await socket.pushed("turn.completed");
    (await puppet.next()).end();
  });

  test("gets the end of a turn that an idempotency key names again, even if it ended long ago", async () => {
    using socket = await openSocket(gateway);
    const again = { agentName: "main", sessionId: "sender-7", message: "once", idempotencyKey: "once-1" };
    const { turnId } = await socket.call("agent.sendMessage", again);
    await socket.pushed("turn.completed");
    using second = await openSocket(gateway);
    expect(await second.call("agent.sendMessage", again)).toMatchObject({ turnId, replayed: true });
    expect(await second.pushed("turn.completed")).toMatchObject({ turnId, reply: "once" });
  });

  test("is notified that its turn was deleted with its session", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "sender-8", "x", { agentName: "live" });
    await puppet.next();
    await socket.call("session.delete", { sessionId: "sender-8" });
    await socket.pushed("session.deleted", ({ sessionId }) => sessionId === "sender-8");
  });

  test("needs only the permission to send", async () => {
    using socket = await openSocket(gateway, { token: "sender-token-of-tests" });
    await send(socket, "sender-9");
    await socket.pushed("turn.completed");
  });
});
