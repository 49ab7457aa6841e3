import { describe, expect, test } from "vitest";
import { createRpc } from "#test/harness/rpc.ts";
import { send, shareLiveGateway } from "./live-gateway.ts";
import { openSocket } from "./socket.ts";

const { puppet, gateway } = await shareLiveGateway();
const live = { agentName: "live" };

describe("a subscription", () => {
  test("to a session pushes all of it, in the order of `seq`, each entry once, to the sender as to others", async () => {
    using socket = await openSocket(gateway);
    using reader = await openSocket(gateway);
    await send(socket, "sub-1", "first", { wait: true });
    const begun = await reader.call("rpc.subscribe", { sessions: { "sub-1": null } });
    await socket.call("rpc.subscribe", { sessions: { "sub-1": null } });
    expect(begun).toEqual({ sessions: { "sub-1": expect.any(String) } });
    await send(socket, "sub-1", "second");
    const all = ["message.created", "turn.queued", "turn.started", "message.created", "message.completed"];
    for (const one of [socket, reader]) {
      await one.pushed("turn.completed", ({ reply }) => reply === "second");
      const told = one.pushes.filter((push) => !("reply" in push.params && push.params.reply === "first"));
      expect(told.map(({ method }) => method)).toEqual([...all, "turn.completed"]);
      expect(told.map(({ params }) => "seq" in params && params.seq)).toEqual([7, 8, 9, 10, 11, 12]);
    }
    expect(new Set(reader.pushes.map(({ params }) => params.cursor)).size).toBe(6);
  });

  test("from a cursor pushes the entries after it, wherever it is", async () => {
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { agents: ["main"] });
    for (let n = 0; n < 40; n++) await send(socket, "sub-2", `number ${n}`, { wait: true });
    await socket.pushed("turn.completed", ({ reply }) => reply === "number 39");
    const mine = socket.pushes.filter(({ params }) => "sessionId" in params && params.sessionId === "sub-2");
    expect(mine).toHaveLength(240);
    for (const from of [0, 1, 100, 238]) {
      using reader = await openSocket(gateway);
      await reader.call("rpc.subscribe", { sessions: { "sub-2": mine[from]?.params.cursor } });
      await reader.until(() => reader.pushes.length === 239 - from);
      expect(reader.pushes).toEqual(mine.slice(from + 1));
    }
  });

  test("to an agent pushes all of its sessions, including later ones, and no other session", async () => {
    using socket = await openSocket(gateway);
    using reader = await openSocket(gateway);
    expect(await reader.call("rpc.subscribe", { agents: ["other"] })).toEqual({});
    await send(socket, "sub-3-of-main");
    await send(socket, "sub-3", "a", { agentName: "other" });
    await send(socket, "sub-3-later", "b", { agentName: "other" });
    await reader.pushed("turn.completed", ({ sessionId }) => sessionId === "sub-3-later");
    expect(reader.names()).toHaveLength(12);
    expect(reader.names()[0]).toBe("message.created");
    await socket.call("session.delete", { sessionId: "sub-3" });
    expect(await reader.pushed("session.deleted")).toMatchObject({ sessionId: "sub-3", seq: 7 });
  });

  test("pushes no piece of a reply that arrives in one piece after one that arrived in several", async () => {
    using socket = await openSocket(gateway);
    using reader = await openSocket(gateway);
    const play = async (...pieces: string[]) => {
      await send(socket, "sub-9", "x", live);
      const played = await puppet.next();
      for (const [n, piece] of pieces.entries()) {
        played.say(piece);
        if (n === 0 && pieces.length > 1) await reader.pushed("message.delta", ({ text }) => text === piece);
      }
      played.end();
      await socket.pushed("turn.completed", ({ reply }) => reply === pieces.join(""));
    };
    await play("zero");
    await reader.call("rpc.subscribe", { sessions: { "sub-9": null } });
    await play("o", "ne");
    await play("another, longer");
    await reader.pushed("turn.completed", ({ reply }) => reply === "another, longer");
    const created = reader.pushesOf("message.created").map(({ seq, messageId }) => `${seq} ${messageId}`);
    for (const { seq, messageId } of reader.pushesOf("message.delta")) expect(created).toContain(`${seq} ${messageId}`);
  });

  test("repeats no piece for a sender that subscribes to pieces that it already got", async () => {
    using socket = await openSocket(gateway);
    using other = await openSocket(gateway);
    await socket.call("rpc.subscribe", { agents: ["live"] });
    const again = { ...live, sessionId: "sub-10", message: "x", stream: true, idempotencyKey: "again-10" };
    await other.call("agent.sendMessage", again);
    const played = await puppet.next();
    for (const piece of ["Good", " mor"]) {
      if (piece !== "Good") await socket.call("agent.sendMessage", again);
      played.say(piece);
      await socket.pushed("message.delta", ({ text }) => text === piece);
    }
    played.say("ning");
    played.end();
    await socket.pushed("turn.completed");
    expect(socket.pushesOf("message.delta").map(({ offset, text }) => [offset, text])).toEqual([
      [0, "Good"],
      [4, " mor"],
      [8, "ning"],
    ]);
  });

  test("pushes the pieces of a reply, to a late subscriber the text so far in one piece, and to none twice", async () => {
    using socket = await openSocket(gateway);
    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { agents: ["live"] });
    await send(socket, "sub-4", "x", { agentName: "live" });
    const played = await puppet.next();
    const { cursor } = await reader.pushed("message.created", ({ role }) => role === "assistant");
    for (const piece of ["Good", " mor"]) {
      played.say(piece);
      await reader.pushed("message.delta", ({ text }) => text === piece);
    }
    using late = await openSocket(gateway);
    await late.call("rpc.subscribe", { sessions: { "sub-4": cursor } });
    using now = await openSocket(gateway);
    await now.call("rpc.subscribe", { sessions: { "sub-4": null } });
    for (const one of [late, now]) {
      expect(await one.pushed("message.delta")).toMatchObject({ offset: 0, text: "Good mor", seq: 4, cursor });
    }
    played.say("ning");
    for (const one of [reader, late, now]) await one.pushed("message.delta", ({ text }) => text === "ning");
    played.end();
    for (const one of [reader, late, now]) {
      await one.pushed("turn.completed");
      expect(one.names().slice(-2)).toEqual(["message.completed", "turn.completed"]);
      expect(one.pushesOf("message.delta").reduce((text, delta) => text + delta.text, "")).toBe("Good morning");
    }
    await socket.pushed("turn.completed");
    expect(socket.order).toEqual(["answer", "turn.completed"]);
  });

  test("to the gateway's stream pushes its entries, and continues from a cursor", async () => {
    using socket = await openSocket(gateway);
    const { gateway: cursor } = await socket.call("rpc.subscribe", { gateway: null });
    for (const n of [1, 2, 3]) await tellGateway(`agent-${n}`);
    await socket.pushed("event.queued", ({ agentName }) => agentName === "agent-3");
    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { gateway: cursor });
    await reader.pushed("event.queued", ({ agentName }) => agentName === "agent-3");
    expect(reader.pushes).toEqual(socket.pushes);
    expect(new Set(reader.pushesOf("event.queued").map(({ seq }) => seq)).size).toBe(3);
  });

  test("ends when it is removed, and removing an unknown one is not an error", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "sub-5", "0", { wait: true });
    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { sessions: { "sub-5": null }, agents: ["main", "other"], gateway: null });
    expect(await reader.call("rpc.unsubscribe", { agents: ["main"] })).toEqual({});
    await send(socket, "sub-5", "1");
    await reader.pushed("turn.completed", ({ reply }) => reply === "1");
    await reader.call("rpc.unsubscribe", { sessions: ["sub-5", "nobody"], agents: ["nobody"], gateway: true });
    await send(socket, "sub-5", "2", { wait: true });
    await send(socket, "sub-5-other", "3", { wait: true, agentName: "other" });
    await reader.pushed("turn.completed", ({ reply }) => reply === "3");
    expect(reader.pushesOf("turn.completed").map(({ reply }) => reply)).toEqual(["1", "3"]);
  });

  test("starts completely or not at all", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "sub-6", "0", { wait: true });
    await socket.pushed("turn.completed");
    const refused = [
      [{ sessions: { "sub-6": null, gone: null } }, -32002, "session-not-found", "gone"],
      [{ sessions: { "sub-6": null }, agents: ["nobody"] }, -32002, "agent-not-found", "nobody"],
      [{ sessions: { "sub-6": "bm9uZQ" } }, -32602, "invalid-params", "sub-6"],
      [{ gateway: await placeOf("sub-6") }, -32602, "invalid-params", "gateway"],
      [{ sessions: ["sub-6"] }, -32602, "invalid-params", "sessions"],
      [{ sessions: { "sub-6": 7 } }, -32602, "invalid-params", "sub-6"],
      [{ channels: ["sub-6"] }, -32602, "invalid-params", "channels"],
      [{ agents: "main" }, -32602, "invalid-params", "agents"],
    ] as const;
    for (const [params, code, name, where] of refused) {
      const refusal = await socket.refusal("rpc.subscribe", params);
      expect(refusal, JSON.stringify(params)).toMatchObject({ code, name });
      expect(refusal.detail).toContain(where);
    }
    expect(await socket.refusal("rpc.unsubscribe", { gateway: false })).toMatchObject({ code: -32602 });
    using other = await openSocket(gateway);
    await send(other, "sub-6", "1", { wait: true });
    await socket.call("agent.list");
    expect(socket.names()).toEqual(["turn.completed"]);

    async function placeOf(sessionId: string): Promise<string> {
      const begun = await socket.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
        sessions: { [sessionId]: null },
      });
      await socket.call("rpc.unsubscribe", { sessions: [sessionId] });
      return begun.sessions[sessionId] as string;
    }
  });

  test("needs session.get for sessions and agents, and system.health for the gateway", async () => {
    using sender = await openSocket(gateway, { token: "sender-token-of-tests" });
    await send(sender, "sub-7", "0", { wait: true });
    for (const params of [{ sessions: { "sub-7": null } }, { agents: ["main"] }, { gateway: null }]) {
      expect(await sender.refusal("rpc.subscribe", params)).toMatchObject({ code: -32001, name: "forbidden" });
    }
    using reader = await openSocket(gateway, { token: "reader-token-of-tests" });
    await reader.call("rpc.subscribe", { sessions: { "sub-7": null }, agents: ["main"] });
    expect(await reader.refusal("rpc.subscribe", { gateway: null })).toMatchObject({ code: -32001 });
    using health = await openSocket(gateway, { token: "health-token-of-tests" });
    await health.call("rpc.subscribe", { gateway: null });
    expect(await health.refusal("rpc.subscribe", { agents: ["main"] })).toMatchObject({ code: -32001 });
  });

  test("can have up to 1 000 sessions on a connection", async () => {
    using socket = await openSocket(gateway);
    const ids = Array.from({ length: 1001 }, (_, n) => `sub-8-${n}`);
    for (const id of ids) await send(socket, id, "x");
    const options = (from: number, to: number) => ({
      sessions: Object.fromEntries(ids.slice(from, to).map((id) => [id, null])),
    });
    expect(await socket.refusal("rpc.subscribe", options(0, 1001))).toMatchObject({ code: -32602 });
    await socket.call("rpc.subscribe", options(0, 600));
    await socket.call("rpc.subscribe", options(500, 1000));
    expect(await socket.refusal("rpc.subscribe", options(1000, 1001))).toMatchObject({
      code: -32602,
      detail: expect.stringContaining("1000"),
    });
    await socket.call("rpc.unsubscribe", { sessions: [ids[3]] });
    await socket.call("rpc.subscribe", options(1000, 1001));
  });

  test("is refused outside a WebSocket", async () => {
    const { json } = await createRpc(gateway.url).send({ jsonrpc: "2.0", method: "rpc.subscribe", params: {}, id: 1 });
    expect(json).toMatchObject({ error: { code: -32601 } });
  });
});

test("a session's stream pushes every name that it can", async () => {
  using reader = await openSocket(gateway);
  await reader.call("rpc.subscribe", { agents: ["main", "bad", "live"] });
  using socket = await openSocket(gateway);
  for (let n = 0; n < 4; n++) await send(socket, "every-1", `message ${n}`, { wait: true });
  await socket.call("session.compact", { sessionId: "every-1", keep: 2 });
  await socket.call("session.delete", { sessionId: "every-1" });
  await send(socket, "every-2", "x", { agentName: "bad" });
  const { turnId } = await send(socket, "every-3", "x", { agentName: "live" });
  (await puppet.next()).say("so far");
  await reader.pushed("message.delta");
  await gateway.console.call("turns.cancel", { path: { turn_id: turnId } });
  await reader.pushed("turn.cancelled", ({ reply }) => reply === "so far");
  await reader.pushed("turn.failed");
  const { before, after } = await reader.pushed("session.compacted");
  expect(after.messages).toBeLessThan(before.messages);
  expect(new Set(reader.pushes.map(({ method }) => method))).toEqual(
    new Set([
      "message.created",
      "message.delta",
      "message.completed",
      "turn.queued",
      "turn.started",
      "turn.completed",
      "turn.failed",
      "turn.cancelled",
      "session.compacted",
      "session.deleted",
    ]),
  );
});

function tellGateway(agentName: string) {
  return gateway.gateway.store.appendGatewayEntry(
    { name: "event.queued", eventId: "evt_01M7YN1B2AZD4Q9RXC5HT7N3MA", agentName },
    { now: Date.now(), keep: 10_000 },
  );
}
