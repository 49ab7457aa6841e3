import { describe, expect, test } from "vitest";
import { axisOf, segmentsOf } from "#console/lib/bar.ts";
import { pretty } from "#console/lib/format.ts";
import type { Step } from "#console/lib/steps.ts";
import { rowsOf, stepsOfTurn } from "#console/lib/waterfall.ts";

const START = Date.parse("2026-11-21T08:54:31.000Z");
function at(ms: number): string {
  return new Date(START + ms).toISOString();
}
function step(ms: number, name: string, detail: object | null = null): Step {
  return { at: at(ms), name, detail: detail as Step["detail"] };
}
function called(to: number, tool: string, ms: number, more: object = {}): Step {
  return step(to, "tool.called", { tool, ok: true, ms, at: at(to - ms), ...more });
}
function shown(steps: readonly Step[], until?: number) {
  return rowsOf(steps, until).map(({ word, from, to, isInside, tone }) => [
    `${isInside ? "  " : ""}${word}`,
    from - START,
    to - START,
    tone,
  ]);
}

describe("the waterfall of a turn", () => {
  const begun = [step(0, "turn.queued"), step(100, "turn.started", { attempt: 1 })];

  test("has only the attempt for a turn without tool calls", () => {
    expect(shown([...begun, step(400, "turn.completed")])).toEqual([
      ["wait", 0, 100, "waiting"],
      ["run", 100, 400, "running"],
    ]);
  });

  test("has a model call for each part of an attempt in which no tool ran", () => {
    const steps = [
      ...begun,
      called(250, "find", 50),
      called(500, "refund", 100, { ok: false }),
      step(600, "turn.completed"),
    ];
    expect(shown(steps)).toEqual([
      ["wait", 0, 100, "waiting"],
      ["run", 100, 600, "running"],
      ["  model call", 100, 200, "running"],
      ["  find", 200, 250, "done"],
      ["  model call", 250, 400, "running"],
      ["  refund", 400, 500, "failed"],
      ["  model call", 500, 600, "running"],
    ]);
  });

  test("has concurrent tool calls in the order of their starts", () => {
    const steps = [...begun, called(250, "short", 30), called(300, "long", 180), step(300, "turn.completed")];
    expect(shown(steps).slice(2)).toEqual([
      ["  model call", 100, 120, "running"],
      ["  long", 120, 300, "done"],
      ["  short", 220, 250, "done"],
    ]);
  });

  test("has each attempt with its own calls, and the pause between them", () => {
    const steps = [
      ...begun,
      called(200, "find", 50),
      step(300, "turn.returned", { attempt: 1, delay_ms: 500 }),
      step(800, "turn.started", { attempt: 2 }),
      called(900, "find", 50),
      step(900, "turn.failed"),
    ];
    expect(shown(steps)).toEqual([
      ["wait", 0, 100, "waiting"],
      ["attempt 1", 100, 300, "failed"],
      ["  model call", 100, 150, "running"],
      ["  find", 150, 200, "done"],
      ["  model call", 200, 300, "failed"],
      ["pause", 300, 800, "waiting"],
      ["attempt 2", 800, 900, "failed"],
      ["  model call", 800, 850, "running"],
      ["  find", 850, 900, "done"],
    ]);
  });

  test("continues until now while the turn runs", () => {
    expect(shown([...begun, called(200, "find", 50)], START + 1_000).at(-1)).toEqual([
      "  model call",
      200,
      1_000,
      "running",
    ]);
  });

  test("never starts a call before its attempt, and positions a call without a start by its duration", () => {
    const steps = [...begun, step(150, "tool.called", { tool: "old", ok: true, ms: 400 }), step(200, "turn.completed")];
    expect(shown(steps).slice(2)).toEqual([
      ["  old", 100, 150, "done"],
      ["  model call", 150, 200, "running"],
    ]);
  });

  test("has every row within the axis, in true proportion", () => {
    const steps = [...begun, called(250, "find", 50), step(1_100, "turn.completed")];
    const axis = axisOf(segmentsOf(steps));
    const places = rowsOf(steps).map(({ from, to }) => [axis.place(from), axis.place(to)]);
    expect(places[3]?.map((place) => Math.round(place * 1_100))).toEqual([200, 250]);
    for (const [from = -1, to = -1] of places) expect(from >= 0 && to >= from && to <= 1).toBe(true);
  });

  test("shows a turn without a recorded request by the tool calls of its reply", () => {
    const turn = { status: "completed", attempt: 2, created_at: at(0), started_at: at(100), ended_at: at(600) };
    const calls = [
      { tool: "find", ok: true, ms: 50, at: at(200) },
      { tool: "old", ok: true, ms: 5 },
    ];
    expect(shown(stepsOfTurn(turn, calls)).map(([word]) => word)).toEqual([
      "pause",
      "attempt 2",
      "  model call",
      "  find",
      "  model call",
    ]);
    expect(shown(stepsOfTurn({ ...turn, status: "queued", started_at: null, ended_at: null }, []), START + 5)).toEqual([
      ["wait", 0, 5, "waiting"],
    ]);
  });
});

test.each([
  ['{"a":[1,{"b":"x y"}]}', '{\n  "a": [\n    1,\n    {\n      "b": "x y"\n    }\n  ]\n}'],
  ['{"a": 1}', '{\n  "a": 1\n}'],
  ['{"a":12345678901234567890}', '{"a":12345678901234567890}'],
  ['{"a":1.0}', '{"a":1.0}'],
  ['{"a":"cut…', '{"a":"cut…'],
  ["plain text", "plain text"],
])("shows %s without a change of its values", (text, expected) => {
  expect(pretty(text)).toBe(expected);
});
