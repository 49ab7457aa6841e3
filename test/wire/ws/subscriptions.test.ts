import { expect, test } from "vitest";
import { yieldToOthers } from "#kit/yield.ts";
import type { Store } from "#store/store.ts";
import { Pump } from "#wire/socket/pump.ts";
import { type Owner, SessionSubscription } from "#wire/socket/subscription.ts";
import { isSaid, startCore } from "../../core/start-core.ts";
import { createManualClock } from "../../harness/clock.ts";
import { createSink, subscriberOf } from "./sink.ts";

test("a subscription to an agent follows a session only until its reply is complete", async () => {
  await using core = await startCore();
  const sink = createSink();
  const isFollowed = () => core.core.streams.wants({ sessionId: "chat:a", agent: "" });
  await subscriberOf(core, sink).subscribe({ agents: ["main"] });
  expect(isFollowed()).toBe(false);
  const turn = await core.start();
  const run = await core.scripted.next();
  const reader = core.follow(turn);
  run.say("half");
  await reader.until(isSaid("half"));
  reader.stop();
  expect(isFollowed()).toBe(true);
  run.end();
  await core.ended(turn);
  expect(isFollowed()).toBe(false);
  expect(sink.names).toHaveLength(7);
});

test("a session of a subscribed agent is not followed after its subscription by id ends, until its next entry", async () => {
  await using core = await startCore();
  const sink = createSink();
  const subscriber = subscriberOf(core, sink);
  const isFollowed = () => core.core.streams.wants({ sessionId: "chat:a", agent: "" });
  const complete = async (): Promise<void> => {
    const turn = await core.start();
    (await core.scripted.next()).end();
    await core.ended(turn);
  };
  await complete();
  await subscriber.subscribe({ agents: ["main"], sessions: { "chat:a": null } });
  await core.clock.settle();
  expect(isFollowed()).toBe(true);
  await subscriber.unsubscribe({ sessions: ["chat:a"] });
  expect(isFollowed()).toBe(false);
  await complete();
  expect(sink.names).toHaveLength(6);
});

test("a subscription that has ended does not remove its successor", async () => {
  await using core = await startCore();
  const sink = createSink();
  const ended: unknown[] = [];
  const pump = new Pump(sink, { clock: core.clock, events: { storeFailed() {} } });
  const owner = { sink, pump, agents: new Set(), forget: (one: unknown) => ended.push(one) } as unknown as Owner;
  const first = new SessionSubscription(owner, core.core.streams.of("chat:a"));
  first.leave();
  new SessionSubscription(owner, core.core.streams.of("chat:a"));
  // The end of its turn is also read for its sender, later.
  first.removeSender({ turnId: "turn_1", seq: 1, stream: false, call: { pushAfterAnswer() {} } });
  expect(ended).toEqual([first]);
});

test("a connection is closed when it is behind in more than 10 000 streams", () => {
  const sink = createSink();
  const pump = new Pump(sink, { clock: createManualClock(), events: { storeFailed() {} } });
  const source = () => ({ page: () => Promise.resolve(false) });
  for (let n = 0; n < 10_000; n++) pump.add(source());
  expect(sink.cuts).toBe(0);
  pump.add(source());
  expect(sink.cuts).toBe(1);
});

test("while reads fail, one read a second is tried, however many sources are added", async () => {
  const clock = createManualClock();
  let failures = 0;
  const pump = new Pump(createSink(), { clock, events: { storeFailed: () => void failures++ } });
  let reads = 0;
  const source = () => ({
    async page() {
      if (++reads <= 5) throw new Error("the store does not answer");
      return false;
    },
  });
  for (let n = 0; n < 3; n++) {
    pump.add(source());
    await clock.settle();
  }
  expect(reads).toBe(1);
  await clock.advance(2_000);
  expect(reads).toBe(3);
  await clock.advance(60_000);
  expect([reads, failures]).toEqual([8, 5]);
});

test("a subscription whose session is deleted during a read is not reset afterwards", async () => {
  let mayRead: Promise<void> | undefined;
  let answer = () => {};
  const wrapStore = (store: Store): Partial<Store> => ({
    getSession: async (id) => {
      await mayRead;
      return store.getSession(id);
    },
  });
  await using core = await startCore({ wrapStore });
  const sink = createSink();
  const subscriber = subscriberOf(core, sink);
  const cursor = Buffer.from(`s.elsewhere.1.3`).toString("base64url");
  await subscriber.subscribe({ sessions: { "chat:a": cursor } });
  mayRead = new Promise((resolve) => (answer = resolve));
  await core.clock.settle();
  const turn = await core.start();
  (await core.scripted.next()).end();
  await core.ended(turn);
  await core.store.deleteSession("chat:a", core.clock.now());
  answer();
  await core.clock.settle();
  expect(sink.names).toEqual(["session.deleted"]);
});

test("a source that is added while it is read is read again", async () => {
  const pump = new Pump(createSink(), { clock: createManualClock(), events: { storeFailed() {} } });
  let reads = 0;
  const source = {
    async page() {
      if (++reads === 1) pump.add(source);
      await yieldToOthers();
      return false;
    },
  };
  pump.add(source);
  for (let n = 0; n < 10; n++) await yieldToOthers();
  expect(reads).toBe(2);
});
