import { expect, test } from "vitest";
import { yieldToOthers } from "#kit/yield.ts";
import { Pump, type PushSink } from "#wire/socket/pump.ts";
import { subscribers } from "#wire/socket/subscriber.ts";
import { type Owner, SessionSubscription } from "#wire/socket/subscription.ts";
import { isSaid, startCore } from "../../core/start-core.ts";
import { createManualClock } from "../../harness/clock.ts";

/** A connection that counts its frames. */
function createSink(): PushSink & { frames: number; cuts: number } {
  return {
    isOpen: true,
    isFull: false,
    hasRoom: true,
    frames: 0,
    cuts: 0,
    push() {
      this.frames++;
    },
    hold() {},
    cut() {
      this.cuts++;
    },
  };
}

test("a subscription to an agent follows a session only until its reply is complete", async () => {
  await using core = await startCore();
  const events = { storeFailed() {} };
  const sink = createSink();
  const create = subscribers({ ...core.core, events, requireAgent() {}, hideInJson: (json) => json });
  const isFollowed = () => core.core.streams.wants({ sessionId: "chat:a", agent: "" });
  await create(sink).subscribe({ agents: ["main"] });
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
  expect(sink.frames).toBe(7);
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
