import { type Segment, segmentsOf } from "./bar.ts";
import type { Step } from "./steps.ts";

/** A tool call as a step of a timeline has it. */
export type CalledTool = {
  tool: string;
  ok: boolean;
  ms: number;
  at?: string;
  reason?: string;
  arguments?: string;
  result?: string;
};
/** A row of the waterfall. The model calls and tool calls of an attempt follow it and have `isInside`. */
export type Row = Segment & { isInside: boolean; call?: CalledTool };

const ATTEMPT = /^(?:run|attempt)/;

/** The rows of a turn: all that the bar has, and in each attempt that called tools its model calls and tool calls. `until`: as in `segmentsOf`. */
export function rowsOf(steps: readonly Step[], until?: number): Row[] {
  const calls = steps.filter(({ name }) => name === "tool.called").map(callOf);
  return segmentsOf(steps, until).flatMap((segment) => {
    const row = { ...segment, isInside: false };
    if (!ATTEMPT.test(segment.word)) return [row];
    const own = calls.filter(({ to }) => to >= segment.from && to <= segment.to);
    return [row, ...(own.length === 0 ? [] : insideOf(segment, own))];
  });
}

function callOf({ at, detail }: Step): Row & { call: CalledTool } {
  const call = detail as CalledTool;
  const to = Date.parse(at);
  const from = Math.min(to, call.at === undefined ? to - call.ms : Date.parse(call.at));
  return { word: call.tool, tone: call.ok ? "done" : "failed", from, to, isIdle: false, isInside: true, call };
}

/** The tool calls of an attempt, and the model calls: the time in which no tool ran. */
function insideOf({ from, to, tone }: Segment, calls: readonly Row[]): Row[] {
  const rows: Row[] = [];
  let since = from;
  const model = (until: number, toneOf: Segment["tone"]) => {
    if (until > since)
      rows.push({ word: "model call", tone: toneOf, from: since, to: until, isIdle: false, isInside: true });
  };
  for (const call of [...calls].sort((one, other) => one.from - other.from)) {
    const begins = Math.max(from, call.from);
    model(begins, "running");
    rows.push({ ...call, from: begins });
    since = Math.max(since, call.to);
  }
  model(to, tone);
  return rows;
}

type EndedTurn = {
  status: string;
  attempt: number;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
};

/** The steps of a turn without a recorded request, as far as the turn and the tool calls of its reply show them. */
export function stepsOfTurn(turn: EndedTurn, calls: readonly CalledTool[]): Step[] {
  const { status, attempt, created_at, started_at, ended_at } = turn;
  const steps: Step[] = [{ name: "turn.queued", at: created_at, detail: null }];
  if (started_at) steps.push({ name: "turn.started", at: started_at, detail: { attempt } });
  for (const call of calls)
    if (call.at)
      steps.push({ name: "tool.called", at: new Date(Date.parse(call.at) + call.ms).toISOString(), detail: call });
  if (ended_at) steps.push({ name: `turn.${status}`, at: ended_at, detail: null });
  return steps;
}
