import { expect, test } from "vitest";
import { createTurnsPerMinute } from "#core/turns/turns-per-minute.ts";
import { BackendError } from "#kit/errors.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { startCore } from "./start-core.ts";

const MINUTE = 60_000;

test("turns are counted by the minute of the clock, the oldest first", async () => {
  const clock = createManualClock();
  await clock.advance(30_000);
  const turns = createTurnsPerMinute(clock);
  expect(turns.read()).toEqual(new Array(60).fill(0));
  turns.count("main");
  turns.count("main");
  expect(turns.read().slice(-2)).toEqual([0, 2]);
  await clock.advance(29_999);
  turns.count("main");
  expect(turns.read().slice(-2)).toEqual([0, 3]);
  await clock.advance(1);
  expect(turns.read().slice(-2)).toEqual([3, 0]);
  await clock.advance(2 * MINUTE);
  turns.count("main");
  expect(turns.read().slice(-4)).toEqual([3, 0, 0, 1]);
});

test("a minute leaves the hour after 60 minutes", async () => {
  const clock = createManualClock();
  const turns = createTurnsPerMinute(clock);
  turns.count("main");
  await clock.advance(59 * MINUTE);
  expect(turns.read()[0]).toBe(1);
  await clock.advance(MINUTE);
  expect(turns.read()).toEqual(new Array(60).fill(0));
  turns.count("main");
  await clock.advance(1_000 * 60 * MINUTE);
  expect(turns.read()).toEqual(new Array(60).fill(0));
  expect(turns.read()).toHaveLength(60);
});

test("a jump of the wall clock moves no turn", async () => {
  const clock = createManualClock();
  const turns = createTurnsPerMinute(clock);
  turns.count("main");
  clock.jump(-24 * 60 * MINUTE);
  turns.count("main");
  clock.jump(48 * 60 * MINUTE);
  turns.count("main");
  expect(turns.read().at(-1)).toBe(3);
});

test("a turn that is retried is counted once, and one that waits when it starts", async () => {
  await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }] });
  const count = () => core.turnsPerMinute.read().reduce((sum, one) => sum + one, 0);
  await core.start();
  const first = await core.scripted.next();
  await core.start({ text: "waits" });
  expect(count()).toBe(1);
  first.fail(new BackendError("too busy", { retryable: true }));
  await core.clock.advance(500);
  const second = await core.scripted.next();
  expect(count()).toBe(1);
  second.end();
  await core.scripted.next();
  expect(count()).toBe(2);
});
