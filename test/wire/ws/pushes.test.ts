import { describe, expect, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket, type TestSocket } from "./socket.ts";

const puppet = createPuppet();
const gateway = await shareGateway({
  config: {
    agents: {
      main: { backend: "echo" },
      other: { backend: "echo" },
      bad: { backend: "echo", echo: { fail: "out of order" } },
      live: { backend: "echo" },
    },
    gateway: {
      defaultAgent: "main",
      rpc: {
        auth: {
          tokens: [
            { name: "ops", token: "rpc-token-of-the-tests", permissions: "*" },
            { name: "sender", token: "sender-token-of-tests", permissions: ["agent.sendMessage"] },
            { name: "reader", token: "reader-token-of-tests", permissions: ["session.get"] },
            { name: "health", token: "health-token-of-tests", permissions: ["system.health"] },
          ],
        },
      },
    },
  },
  makeBackend: (name, agent) => (name === "live" ? puppet.backend : createEchoBackend(agent.echo)),
});
const send = (socket: TestSocket, sessionId: string, message = "Good morning", more: object = {}) =>
  socket.call<{ turnId: string; messageId: string }>("agent.sendMessage", {
    agentName: "main",
    sessionId,
    message,
    ...more,
  });

describe("whoever sends a message", () => {
  test("gets the answer, then the end of its turn, and nothing else", async () => {
    using socket = await openSocket(gateway);
    const sent = await send(socket, "sender-1");
    const end = await socket.pushed("turn.completed");
    expect(end).toMatchObject({ turnId: sent.turnId, sessionId: "sender-1", reply: "Good morning" });
    expect(end.usage).toEqual({ input: 3, output: 3, total: 6 });
    await socket.call("agent.status", { agentName: "main" });
    expect(socket.order).toEqual(["answer", "turn.completed", "answer"]);
  });

  test("gets it too when it waits for the reply, or asks for no answer", async () => {
    using socket = await openSocket(gateway);
    expect(await send(socket, "sender-2", "one", { wait: true })).toMatchObject({ reply: "one" });
    await socket.pushed("turn.completed", ({ reply }) => reply === "one");
    expect(socket.order).toEqual(["answer", "turn.completed"]);
    const params = { agentName: "main", sessionId: "sender-2", message: "two" };
    socket.ws.send(JSON.stringify({ jsonrpc: "2.0", method: "agent.sendMessage", params }));
    await socket.pushed("turn.completed", ({ reply }) => reply === "two");
    expect(socket.responses).toHaveLength(1);
  });

  test("is told of a failure with its name, and of a turn that somebody cancels", async () => {
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

  test("with `stream` gets the pieces of the reply, which put together are the reply", async () => {
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

  test("gets the pieces of a reply that comes at once", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "sender-6", "at once", { stream: true });
    await socket.pushed("turn.completed");
    expect(socket.pushesOf("message.delta")).toMatchObject([{ offset: 0, text: "at once", seq: 4 }]);
    expect(socket.order).toEqual(["answer", "message.delta", "turn.completed"]);
  });

  test("gets the end of a turn that an idempotency key names again, even when it ended long ago", async () => {
    using socket = await openSocket(gateway);
    const again = { agentName: "main", sessionId: "sender-7", message: "once", idempotencyKey: "once-1" };
    const { turnId } = await socket.call("agent.sendMessage", again);
    await socket.pushed("turn.completed");
    using second = await openSocket(gateway);
    expect(await second.call("agent.sendMessage", again)).toMatchObject({ turnId, replayed: true });
    expect(await second.pushed("turn.completed")).toMatchObject({ turnId, reply: "once" });
  });

  test("learns that its turn went with its session", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "sender-8", "x", { agentName: "live" });
    await puppet.next();
    await socket.call("session.delete", { sessionId: "sender-8" });
    await socket.pushed("session.deleted", ({ sessionId }) => sessionId === "sender-8");
  });

  test("needs no permission but the one to send", async () => {
    using socket = await openSocket(gateway, { token: "sender-token-of-tests" });
    await send(socket, "sender-9");
    await socket.pushed("turn.completed");
  });
});

describe("a subscription", () => {
  test("to a session pushes all of it, in the order of `seq`, each once, to the sender as to anybody", async () => {
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

  test("from a cursor pushes what came behind it, wherever that is", async () => {
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

  test("to an agent pushes every session of it, those made later too, and of no other", async () => {
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

  test("pushes the pieces of a reply, to one that comes in the middle all so far in one, to none twice", async () => {
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

  test("to the gateway's stream pushes what it tells, and goes on from a cursor", async () => {
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

  test("ends when it is taken back, and what was not there is no fault", async () => {
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

  test("is begun whole or not at all", async () => {
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

  test("goes up to 1 000 sessions on a connection", async () => {
    using socket = await openSocket(gateway);
    const ids = Array.from({ length: 1001 }, (_, n) => `sub-8-${n}`);
    for (const id of ids) await send(socket, id, "x");
    const wish = (from: number, to: number) => ({
      sessions: Object.fromEntries(ids.slice(from, to).map((id) => [id, null])),
    });
    expect(await socket.refusal("rpc.subscribe", wish(0, 1001))).toMatchObject({ code: -32602 });
    await socket.call("rpc.subscribe", wish(0, 600));
    await socket.call("rpc.subscribe", wish(500, 1000));
    expect(await socket.refusal("rpc.subscribe", wish(1000, 1001))).toMatchObject({
      code: -32602,
      detail: expect.stringContaining("1000"),
    });
    await socket.call("rpc.unsubscribe", { sessions: [ids[3]] });
    await socket.call("rpc.subscribe", wish(1000, 1001));
  });

  test("is taken over a WebSocket alone", async () => {
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

test("a session that is deleted while a reader is behind ends its stream with that", async () => {
  using socket = await openSocket(gateway);
  const { sessions } = await begun(socket, "behind-1");
  for (let n = 0; n < 50; n++) await send(socket, "behind-1", `${n}`, { wait: true });
  using reader = await openSocket(gateway);
  await reader.call("rpc.subscribe", { sessions });
  await reader.call("session.delete", { sessionId: "behind-1" });
  await reader.pushed("session.deleted");
  await reader.call("agent.list");
  expect(reader.pushes.at(-1)?.method).toBe("session.deleted");
});

test("a store that fails for a moment is asked again, and nothing is missed", async () => {
  let failures = 0;
  await using failing = await startGateway({
    wrapStore: (store) => ({
      ...store,
      readEntries: async (...query) => {
        if (failures-- > 0) throw new Error("the store is away");
        return store.readEntries(...query);
      },
    }),
  });
  using socket = await openSocket(failing);
  const first = await socket.call<{ sessionId: string }>("agent.sendMessage", {
    agentName: "main",
    message: "1",
    wait: true,
  });
  const { sessions } = await begun(socket, first.sessionId);
  await socket.call("agent.sendMessage", { agentName: "main", message: "2", wait: true });
  using reader = await openSocket(failing);
  failures = 2;
  await reader.call("rpc.subscribe", { sessions });
  await reader.pushed("turn.completed", ({ reply }) => reply === "2");
  expect(reader.names()).toHaveLength(6);
  expect(failing.linesOf("store.failed", { operation: "readEntries" })).toHaveLength(2);
});

describe("a stream that began anew", () => {
  test("is said to, when the session was deleted and made again under its id, and goes on from now", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "new-1", "old", { wait: true });
    const { sessions } = await socket.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
      sessions: { "new-1": null },
    });
    await socket.call("session.delete", { sessionId: "new-1" });
    await socket.pushed("session.deleted", ({ sessionId, seq }) => sessionId === "new-1" && seq === 7);
    await send(socket, "new-1", "new", { wait: true });

    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { sessions: { "new-1": sessions["new-1"] } });
    const { cursor } = await reader.pushed("stream.reset", ({ sessionId }) => sessionId === "new-1");
    expect(cursor).not.toBe(sessions["new-1"]);
    await send(socket, "new-1", "newer", { wait: true });
    await reader.pushed("turn.completed");
    expect(reader.names().slice(0, 2)).toEqual(["stream.reset", "message.created"]);

    using again = await openSocket(gateway);
    await again.call("rpc.subscribe", { sessions: { "new-1": cursor } });
    await again.pushed("turn.completed");
    expect(again.pushes).toEqual(reader.pushes.slice(1));
  });

  test("is said to, when the session is gone, and begins with the session that takes its id", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "new-2", "old", { wait: true });
    const { sessions } = await socket.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
      sessions: { "new-2": null },
    });
    await socket.call("session.delete", { sessionId: "new-2" });
    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { sessions: { "new-2": sessions["new-2"] } });
    await reader.pushed("stream.reset");
    await send(socket, "new-2", "new");
    await reader.pushed("turn.completed");
    expect(reader.pushes.map(({ params }) => "seq" in params && params.seq)).toEqual([false, 1, 2, 3, 4, 5, 6]);
  });

  test("is said to, when the cursor is another gateway's or an earlier run's", async () => {
    using socket = await openSocket(gateway);
    await send(socket, "new-3", "x", { wait: true });
    const foreign = (place: string) => Buffer.from(place).toString("base64url");
    await socket.call("rpc.subscribe", {
      sessions: { "new-3": foreign("s.elsewhere.1.3") },
      gateway: foreign("g.elsewhere.0.3"),
    });
    await socket.until(() => socket.pushesOf("stream.reset").length === 2);
    expect(
      socket
        .pushesOf("stream.reset")
        .map(({ sessionId }) => sessionId)
        .sort(),
    ).toEqual(["new-3", undefined]);
  });
});

/** Makes the session, if it is not there, and says where it is now. */
const begun = async (socket: TestSocket, sessionId: string) => {
  await socket.call("agent.sendMessage", { agentName: "main", sessionId, message: "0", wait: true });
  return socket.call<{ sessions: Record<string, string> }>("rpc.subscribe", { sessions: { [sessionId]: null } });
};

const tellGateway = (agentName: string) =>
  gateway.gateway.store.appendGatewayEntry(
    { name: "event.queued", eventId: "evt_01M7YN1B2AZD4Q9RXC5HT7N3MA", agentName },
    { now: Date.now(), keep: 10_000 },
  );
