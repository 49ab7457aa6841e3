import { describe, expect, test } from "vitest";
import { createPushQueue } from "#generated/clients/typescript/src/push-queue.ts";
import type { Push } from "#generated/clients/typescript/src/push-types.ts";
import { readEvents } from "#generated/clients/typescript/src/sse.ts";
import { createSubscriptions } from "#generated/clients/typescript/src/subscriptions.ts";
import { collect } from "./serve.ts";

describe("a stream of events", () => {
  const read = async (...chunks: string[]) => {
    const bytes = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(bytes.encode(chunk));
        controller.close();
      },
    });
    return collect(readEvents(new Response(body)));
  };

  test("is read event by event, whatever pieces it arrives in", async () => {
    const text = ': hello\n\nevent: a\nid: 1\ndata: {"x":\ndata:  1}\n\ndata:plain\n\n';
    const events = [
      { event: "a", id: "1", data: '{"x":\n 1}' },
      { event: "message", id: "1", data: "plain" },
    ];
    expect(await read(text)).toEqual(events);
    expect(await read(...text)).toEqual(events);
    expect(await read(...text.replaceAll("\n", "\r\n"))).toEqual(events);
    expect(await read(...text.replaceAll("\n", "\r"), "\n")).toEqual(events);
  });

  test("omits comments, events without data, and an incomplete one", async () => {
    expect(await read(": a\n\nevent: b\n\nid: 2\n\nevent: c\ndata: 1\n")).toEqual([]);
  });

  test("preserves a character that is split over two pieces", async () => {
    const bytes = new TextEncoder().encode("data: 😀\n\n");
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    expect(await collect(readEvents(new Response(body)))).toEqual([{ event: "message", id: "", data: "😀" }]);
  });
});

describe("a reader's queue", () => {
  const push = (seq: number) => ({ jsonrpc: "2.0", method: "turn.queued", params: { seq } }) as Push;

  test("returns pushes in order, to readers that started before and after them", async () => {
    const queue = createPushQueue(() => {});
    const early = queue.next();
    queue.add(push(1));
    queue.add(push(2));
    expect([await early, await queue.next()]).toEqual([push(1), push(2)].map((value) => ({ done: false, value })));
  });

  test("ends a reader that is too far behind, with an error, once", async () => {
    let ended = 0;
    const queue = createPushQueue(() => {
      ended += 1;
    });
    for (let seq = 0; seq <= 10_000; seq += 1) queue.add(push(seq));
    expect(ended).toBe(1);
    for (let seq = 0; seq <= 10_000; seq += 1) await queue.next();
    await expect(queue.next()).rejects.toThrow("10000 pushes were not read in time");
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  test("releases waiting readers when it ends", async () => {
    const queue = createPushQueue(() => {});
    const waiting = [queue.next(), queue.next()];
    await queue.return?.();
    expect(await Promise.all(waiting)).toEqual([1, 2].map(() => ({ done: true, value: undefined })));
  });
});

describe("subscriptions", () => {
  const push = (method: string, params: object) => ({ jsonrpc: "2.0", method, params }) as Push;

  test("follow the cursors of their own streams only", () => {
    const subscriptions = createSubscriptions();
    expect(subscriptions.current()).toBeUndefined();
    subscriptions.note(push("turn.queued", { sessionId: "other", cursor: "o1" }));
    subscriptions.note(push("health.changed", { cursor: "g0" }));
    expect(subscriptions.current()).toBeUndefined();

    subscriptions.add({ sessions: { a: null, b: "b0" }, gateway: null });
    subscriptions.note(push("turn.queued", { sessionId: "a", cursor: "a1" }));
    subscriptions.note(push("stream.reset", { sessionId: "b", cursor: "b9" }));
    subscriptions.note(push("health.changed", { cursor: "g1" }));
    expect(subscriptions.current()).toEqual({ sessions: { a: "a1", b: "b9" }, gateway: "g1" });

    subscriptions.note(push("session.deleted", { sessionId: "a", cursor: "a2" }));
    subscriptions.remove({ gateway: true });
    expect(subscriptions.current()).toEqual({ sessions: { b: "b9" } });
  });

  test("to deliveries continue with the gateway's stream, and end with it or separately", () => {
    const subscriptions = createSubscriptions();
    subscriptions.add({ gateway: null, deliveries: true }, { gateway: "g0" });
    expect(subscriptions.current()).toEqual({ gateway: "g0", deliveries: true });
    subscriptions.remove({ deliveries: true });
    expect(subscriptions.current()).toEqual({ gateway: "g0" });
    subscriptions.add({ deliveries: true });
    subscriptions.remove({ gateway: true });
    expect(subscriptions.current()).toBeUndefined();
  });

  test("start where the gateway says, and continue there even if nothing was pushed", () => {
    const subscriptions = createSubscriptions();
    subscriptions.add(
      { sessions: { a: null, b: "b0" }, agents: ["main"], gateway: null },
      { sessions: { a: "a0", b: "b0" }, gateway: "g0" },
    );
    expect(subscriptions.current()).toEqual({ sessions: { a: "a0", b: "b0" }, agents: ["main"], gateway: "g0" });

    subscriptions.note(push("turn.queued", { sessionId: "other", cursor: "o1" }));
    subscriptions.moved({ sessions: { a: "a5", b: "b0", other: "o1" }, gateway: "g7" });
    expect(subscriptions.current()?.sessions).toEqual({ a: "a5", b: "b0", other: "o1" });
    subscriptions.remove({ agents: ["main"] });
    expect(subscriptions.current()).toEqual({ sessions: { a: "a5", b: "b0" }, gateway: "g7" });
  });

  test("continue with the sessions that were pushed for an agent, the latest thousand", () => {
    const subscriptions = createSubscriptions();
    subscriptions.add({ agents: ["main"], sessions: { mine: null } });
    for (let n = 0; n < 1500; n += 1) subscriptions.note(push("turn.queued", { sessionId: `s${n}`, cursor: `c${n}` }));
    const { sessions = {}, agents } = subscriptions.current() ?? {};
    expect(agents).toEqual(["main"]);
    expect(Object.keys(sessions)).toHaveLength(1000);
    expect(sessions).toMatchObject({ mine: null, s1499: "c1499" });
    subscriptions.remove({ agents: ["main"] });
    expect(subscriptions.current()).toEqual({ sessions: { mine: null } });
  });
});
