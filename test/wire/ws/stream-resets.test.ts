import { describe, expect, test } from "vitest";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { send, shareLiveGateway } from "./live-gateway.ts";
import { openSocket, type TestSocket } from "./socket.ts";

const { gateway } = await shareLiveGateway();

test("the stream of a session that is deleted while a reader is behind ends with the deletion", async () => {
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

test("a store that fails for a moment is read again, and nothing is missed", async () => {
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
  const { text } = await failing.rest.send("GET", "/metrics", { key: SECRETS.rpcToken });
  expect(text).toContain('gateway_store_failures_total{operation="readEntries"} 2\n');
});

describe("a stream that was reset", () => {
  test("says so if the session was deleted and created again under its id, and continues from now", async () => {
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

  test("says so if the session was deleted, and starts with the next session of that id", async () => {
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

  test("says so if the cursor is from another gateway or an earlier run", async () => {
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

/** Creates the session if it does not exist, and returns its position. */
async function begun(socket: TestSocket, sessionId: string) {
  await socket.call("agent.sendMessage", { agentName: "main", sessionId, message: "0", wait: true });
  return socket.call<{ sessions: Record<string, string> }>("rpc.subscribe", { sessions: { [sessionId]: null } });
}
