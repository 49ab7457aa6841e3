import { expect, test } from "vitest";
import { axisOf, type Segment, segmentsOf } from "#console/lib/bar.ts";
import type { Step } from "#console/lib/steps.ts";

const START = Date.UTC(2026, 10, 21, 8);

function step(ms: number, name: string, detail: Step["detail"] = null): Step {
  return { at: new Date(START + ms).toISOString(), name, detail };
}
function shown(segments: readonly Segment[]): string[] {
  return segments.map(({ word, tone, from, to }) => `${word} ${to - from} ${tone}`);
}

test("a timeline is a row of segments, each up to the step that ends it", () => {
  const steps = [
    step(0, "request.received"),
    step(1, "signature.accepted"),
    step(3, "mapping.tried"),
    step(4, "turn.queued"),
    step(24, "turn.started", { attempt: 1 }),
    step(60, "tool.called"),
    step(124, "turn.completed"),
    step(324, "announcement.delivered"),
  ];
  expect(shown(segmentsOf(steps))).toEqual([
    "checks 1 plain",
    "mapping 2 plain",
    "stored 1 plain",
    "wait 20 waiting",
    "run 100 running",
    "reply delivery 200 done",
  ]);
  expect(segmentsOf([])).toEqual([]);
  expect(segmentsOf([step(0, "request.received")])).toEqual([]);
});

test("the wait of a burst is one idle segment, however many requests join", () => {
  const steps = [
    step(0, "request.received"),
    step(2, "message.rendered"),
    step(3, "group.opened"),
    step(1_000, "group.joined"),
    step(2_000, "group.joined"),
  ];
  expect(shown(segmentsOf(steps, START + 3_003))).toEqual(["mapping 2 plain", "stored 1 plain", "burst 3000 waiting"]);
  const closed = [...steps, step(4_003, "group.closed"), step(4_004, "turn.queued"), step(4_014, "turn.started")];
  expect(shown(segmentsOf(closed)).slice(2)).toEqual(["burst 4000 waiting", "stored 1 plain", "wait 10 waiting"]);
});

test("each attempt and each pause has a segment, and failed ones have their own tone", () => {
  const steps = [
    step(0, "turn.queued"),
    step(5, "turn.started", { attempt: 1 }),
    step(105, "turn.returned", { attempt: 1 }),
    step(605, "turn.started", { attempt: 2 }),
    step(705, "turn.returned", { attempt: 2 }),
    step(1705, "turn.started", { attempt: 3 }),
    step(1905, "turn.completed"),
    step(1955, "announcement.retried", { retry_in_ms: 1_000 }),
    step(2985, "announcement.failed"),
  ];
  expect(shown(segmentsOf(steps))).toEqual([
    "wait 5 waiting",
    "attempt 1 100 failed",
    "pause 500 waiting",
    "attempt 2 100 failed",
    "pause 1000 waiting",
    "attempt 3 200 running",
    "reply delivery 50 failed",
    "pause 1000 waiting",
    "reply delivery 30 failed",
  ]);
});

test("an event waits for its heartbeat, whose turn has its own attempts", () => {
  const steps = [
    step(0, "event.queued"),
    step(900, "event.taken"),
    step(901, "turn.started", { attempt: 1 }),
    step(950, "turn.failed"),
    step(950, "event.returned"),
    step(1_900, "event.taken"),
    step(1_901, "turn.started", { attempt: 1 }),
    step(1_951, "turn.completed"),
    step(1_951, "event.handled"),
  ];
  expect(shown(segmentsOf(steps))).toEqual([
    "wait 901 waiting",
    "attempt 1 49 failed",
    "wait 951 waiting",
    "run 50 running",
  ]);
});

test("an open timeline continues until now", () => {
  const queued = [step(0, "request.received"), step(2, "turn.queued")];
  const running = [...queued, step(4, "turn.started", { attempt: 1 }), step(5, "tool.called")];
  expect(shown(segmentsOf(queued, START + 12))).toEqual(["stored 2 plain", "wait 10 waiting"]);
  expect(shown(segmentsOf(running, START + 34))).toEqual(["stored 2 plain", "wait 2 waiting", "run 30 running"]);
  expect(shown(segmentsOf(running, START - 5_000)).at(-1)).toBe("wait 2 waiting");
  const ended = [...running, step(40, "turn.completed")];
  expect(segmentsOf(ended, START + 99).at(-1)?.to).toBe(START + 40);
});

test("a turn that was cancelled while it waited has no run", () => {
  const steps = [step(0, "turn.queued"), step(50, "turn.cancelled")];
  expect(shown(segmentsOf(steps))).toEqual(["wait 50 waiting"]);
});

test("segments have their true lengths on the axis, for up to ten seconds of waiting", () => {
  const segments = segmentsOf([
    step(0, "turn.queued"),
    step(9_950, "turn.started", { attempt: 1 }),
    step(10_000, "turn.completed"),
  ]);
  const axis = axisOf(segments);
  expect(segments.map(axis.isCut)).toEqual([false, false]);
  expect([START, START + 9_950, START + 10_000].map(axis.place)).toEqual([0, 0.995, 1]);
  expect(axis.place(START - 1_000)).toBe(0);
  expect(axis.place(START + 20_000)).toBe(1);
});

test("a longer wait is cut to the length of everything that followed, and a long run is not", () => {
  const cut = segmentsOf([
    step(0, "turn.queued"),
    step(60_000, "turn.started", { attempt: 1 }),
    step(62_000, "turn.completed"),
  ]);
  const axis = axisOf(cut);
  expect(cut.map(axis.isCut)).toEqual([true, false]);
  expect(axis.place(START + 60_000)).toBe(0.5);
  expect(axis.place(START + 61_000)).toBe(0.75);
  const long = segmentsOf([
    step(0, "turn.queued"),
    step(20_000, "turn.started", { attempt: 1 }),
    step(80_000, "turn.completed"),
  ]);
  expect(long.map(axisOf(long).isCut)).toEqual([false, false]);
  const alone = segmentsOf([step(0, "turn.queued")], START + 60_000);
  expect(alone.map(axisOf(alone).isCut)).toEqual([false]);
});

test("an axis without segments has one place", () => {
  expect(axisOf([]).place(START)).toBe(0);
});
