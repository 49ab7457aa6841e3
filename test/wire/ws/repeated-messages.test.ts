import { expect, test } from "vitest";
import type { Turn } from "#store/store.ts";
import { startCore, type TestCore } from "../../core/start-core.ts";
import { createSink, subscriberOf, type TestSink } from "./sink.ts";

/** Sends a message and waits for its turn. */
async function complete(core: TestCore, text = "x"): Promise<Turn> {
  const turn = await core.start();
  const run = await core.scripted.next();
  run.say(text);
  run.end();
  return await core.ended(turn);
}

/** The call of a sender. Its pushes are recorded with those of the connection, after `>`. */
function callOn(sink: TestSink) {
  const own = createSink();
  return {
    pushAfterAnswer(frame: Parameters<TestSink["push"]>[0]) {
      own.push(frame);
      sink.names.push(`>${own.names.pop()}`);
    },
  };
}

function isFollowed({ core }: TestCore): boolean {
  return core.streams.wants({ sessionId: "chat:a", agent: "" });
}

const OPTIONS = { stream: true, replySeq: undefined };

test("a sender that repeats its message gets the end of the turn once, and is then forgotten", async () => {
  await using core = await startCore();
  const turn = await complete(core);
  const sink = createSink();
  subscriberOf(core, sink).follow(callOn(sink), turn, OPTIONS);
  await core.clock.settle();
  expect(sink.names).toEqual([">turn.completed"]);
  expect(isFollowed(core)).toBe(false);
});

test("a subscriber that repeats its message gets the end of the turn once, before or after its place", async () => {
  await using core = await startCore();
  const turn = await complete(core);
  const cursor = (seq: number) => Buffer.from(`s.${core.store.epoch}.1.${seq}`).toString("base64url");
  for (const [from, names] of [
    [4, ["message.completed", "turn.completed"]],
    [6, [">turn.completed"]],
  ] as const) {
    const sink = createSink();
    const subscriber = subscriberOf(core, sink);
    await subscriber.subscribe({ sessions: { "chat:a": cursor(from) } });
    subscriber.follow(callOn(sink), turn, OPTIONS);
    await core.clock.settle();
    await core.clock.settle();
    expect(sink.names, `after ${from}`).toEqual(names);
    subscriber.leave();
  }
  expect(isFollowed(core)).toBe(false);
});

test("a subscriber that repeats its message gets the deletion of the session once", async () => {
  await using core = await startCore();
  const turn = await complete(core);
  const sink = createSink();
  const subscriber = subscriberOf(core, sink);
  await subscriber.subscribe({ sessions: { "chat:a": null } });
  await core.clock.settle();
  subscriber.follow(callOn(sink), turn, OPTIONS);
  await core.store.deleteSession("chat:a", core.clock.now());
  await core.clock.settle();
  expect(sink.names).toEqual(["session.deleted"]);
  expect(isFollowed(core)).toBe(false);
});

test("a sender is forgotten if the end of its turn was deleted", async () => {
  await using core = await startCore();
  const turn = await complete(core);
  const sink = createSink();
  subscriberOf(core, sink).follow(callOn(sink), { ...turn, turnId: "turn_deleted" }, OPTIONS);
  await core.clock.settle();
  expect(sink.names).toEqual([]);
  expect(isFollowed(core)).toBe(false);
});

test("a connection that closes forgets senders if the end of their turn was not read yet", async () => {
  await using core = await startCore();
  const turn = await complete(core);
  const sink = createSink();
  const subscriber = subscriberOf(core, sink);
  subscriber.follow(callOn(sink), turn, OPTIONS);
  subscriber.leave();
  await core.clock.settle();
  expect(sink.names).toEqual([]);
  expect(isFollowed(core)).toBe(false);
});

test("a sender with `stream` gets the reply before the end of a turn that ended on another gateway", async () => {
  await using core = await startCore();
  const last = await core.start();
  const running = await core.scripted.next();
  const repeated = await core.start();
  const queued = await core.start();
  const sink = createSink();
  const subscriber = subscriberOf(core, sink, true);
  subscriber.follow(callOn(sink), queued, { stream: false, replySeq: undefined });
  await core.clock.settle();
  running.end();
  await core.ended(last);
  const run = await core.scripted.next();
  run.say("Good morning");
  run.end();
  await core.ended(repeated);
  expect(sink.names).toEqual([]);
  // The turn was read before it ended.
  subscriber.follow(callOn(sink), repeated, OPTIONS);
  await core.clock.settle();
  expect(sink.names).toEqual([">message.delta", ">turn.completed"]);
  (await core.scripted.next()).end();
  await core.ended(queued);
  expect(sink.names.slice(2)).toEqual([">turn.completed"]);
  expect(isFollowed(core)).toBe(false);
});

test("a sender that subscribes between the last piece and the end of its turn gets no piece twice", async () => {
  await using core = await startCore();
  const running = await core.start();
  const run = await core.scripted.next();
  run.say("Good morning");
  run.end();
  await core.ended(running);
  const sink = createSink();
  const subscriber = subscriberOf(core, sink, true);
  const call = callOn(sink);
  const pushAfterAnswer: typeof call.pushAfterAnswer = (frame) => {
    call.pushAfterAnswer(frame);
    sink.hasRoom = false;
  };
  subscriber.follow({ pushAfterAnswer }, running, OPTIONS);
  await core.clock.settle();
  expect(sink.names).toEqual([">message.delta"]);
  await subscriber.subscribe({ sessions: { "chat:a": null } });
  sink.hasRoom = true;
  subscriber.pump.startSoon();
  await core.clock.settle();
  expect(sink.names).toEqual([">message.delta", ">turn.completed"]);
});
