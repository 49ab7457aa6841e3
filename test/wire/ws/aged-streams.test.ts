import { describe, expect, test } from "vitest";
import type { Store } from "#store/store.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { sweepOrder } from "#test/stores/world.ts";
import { send } from "./live-gateway.ts";
import { openSocket, type TestSocket } from "./socket.ts";

let store: Store;
/** What readers of journals wait for. */
let gate = Promise.resolve();
const gateway = await shareGateway({
  wrapStore: (given) => {
    store = given;
    return {
      ...given,
      readEntries: async (...query) => {
        await gate;
        return given.readEntries(...query);
      },
    };
  },
});

async function place(socket: TestSocket, sessionId: string): Promise<string> {
  const { sessions } = await socket.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
    sessions: { [sessionId]: null },
  });
  return sessions[sessionId] as string;
}

/** Sends messages, and returns the position of the stream after each. */
async function talk(socket: TestSocket, sessionId: string, texts: readonly string[]): Promise<string[]> {
  const cursors: string[] = [];
  for (const text of texts) {
    await send(socket, sessionId, text, { wait: true });
    using other = await openSocket(gateway);
    cursors.push(await place(other, sessionId));
  }
  return cursors;
}

/** Compacts all but the last message with its reply, and erases the compacted part by age, while the session continues. */
async function age(socket: TestSocket, sessionId: string): Promise<void> {
  await socket.call("session.compact", { sessionId, keep: 2 });
  const sessionsBefore = (await store.getSession(sessionId))?.updatedAt ?? 0;
  while (Date.now() <= sessionsBefore) await new Promise((resolve) => setTimeout(resolve, 1));
  await send(socket, sessionId, "later", { wait: true });
  while (await store.sweep(sweepOrder(Date.now(), { sessionsBefore })));
}

describe("a stream whose first entries were deleted by age", () => {
  test("continues with the stored entries for a reader that has the last entry before them", async () => {
    using socket = await openSocket(gateway);
    const [, last] = await talk(socket, "aged-1", ["one", "two", "three"]);
    await age(socket, "aged-1");
    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { sessions: { "aged-1": last } });
    await reader.pushed("turn.completed", ({ reply }) => reply === "later");
    expect(reader.pushesOf("stream.reset")).toEqual([]);
    expect(reader.pushesOf("message.completed").map(({ seq, text }) => [seq, text])).toEqual([
      [17, "three"],
      [24, "later"],
    ]);
  });

  test("is reset for an earlier cursor, and continues from now", async () => {
    using socket = await openSocket(gateway);
    const [first] = await talk(socket, "aged-2", ["one", "two", "three"]);
    await age(socket, "aged-2");
    const now = await place(socket, "aged-2");
    using reader = await openSocket(gateway);
    const { sessions } = await reader.call<{ sessions: object }>("rpc.subscribe", { sessions: { "aged-2": first } });
    expect(sessions).toEqual({ "aged-2": now });
    expect(await reader.pushed("stream.reset")).toEqual({ sessionId: "aged-2", cursor: now });
    await send(socket, "aged-2", "newer", { wait: true });
    await reader.pushed("turn.completed");
    expect(reader.names()).toEqual(["stream.reset", ...ENTRIES]);
  });

  test("is reset for a reader that was behind at the deletion, and continues with the stored entries", async () => {
    using socket = await openSocket(gateway);
    const [first] = await talk(socket, "aged-3", ["one", "two", "three"]);
    let open = () => {};
    gate = new Promise((resolve) => (open = resolve));
    using reader = await openSocket(gateway);
    await reader.call("rpc.subscribe", { sessions: { "aged-3": first } });
    await age(socket, "aged-3");
    open();
    await reader.pushed("turn.completed", ({ reply }) => reply === "later");
    const [reset, ...rest] = reader.pushes;
    expect(reset?.method).toBe("stream.reset");
    expect(rest.map(({ params }) => "seq" in params && params.seq)).toEqual(
      Array.from({ length: 13 }, (_, n) => 13 + n),
    );

    using again = await openSocket(gateway);
    await again.call("rpc.subscribe", { sessions: { "aged-3": reset?.params.cursor } });
    await again.pushed("turn.completed", ({ reply }) => reply === "later");
    expect(again.pushes).toEqual(rest);
  });
});

describe("a turn that was deleted by age", () => {
  test("is not found any more, nor its events, and a repeat of its key says so", async () => {
    using socket = await openSocket(gateway);
    const once = { idempotencyKey: "aged-once", wait: true };
    const { turnId } = await send(socket, "aged-4", "one", once);
    await talk(socket, "aged-4", ["two"]);
    const path = { turn_id: turnId };
    expect((await gateway.rest.call("turns.get", { path })).status).toBe(200);
    await age(socket, "aged-4");
    for (const operation of ["turns.get", "turns.events", "turns.cancel"] as const) {
      expect((await gateway.rest.call(operation, { path })).error, operation).toBe("turn-not-found");
    }
    const repeat = { agentName: "main", sessionId: "aged-4", message: "one", ...once };
    expect(await socket.refusal("agent.sendMessage", repeat)).toMatchObject({ name: "turn-not-found" });
    const { session, messages } = await socket.call<{ session: object; messages: { text: string }[] }>("session.get", {
      sessionId: "aged-4",
      includeCompacted: true,
    });
    expect(session).toMatchObject({ messageCount: 6 });
    expect(messages.map(({ text }) => text)).toEqual(["later", "later", "two", "two"]);
  });
});

/** A turn that completes. */
const ENTRIES = [
  "message.created",
  "turn.queued",
  "turn.started",
  "message.created",
  "message.completed",
  "turn.completed",
];
