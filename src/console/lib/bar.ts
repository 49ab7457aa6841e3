import type { Step, StepTone } from "./steps.ts";

/** A span of time with one thing in it, from and to a time of the clock. Nothing happens in an idle one. */
export type Segment = { word: string; tone: StepTone; from: number; to: number; isIdle: boolean };
/** Places of times, from 0 to 1. Long idle segments are cut short. */
export type Axis = { place(at: number): number; isCut(segment: Segment): boolean };

/** Idle segments up to this length are always drawn in true proportion. */
const CUT_FROM_MS = 10_000;

type Kind = Pick<Segment, "word" | "tone"> & { isIdle?: boolean };
type Detail = Record<string, unknown>;

const CHECKED: Kind = { word: "checks", tone: "plain" };
const MATCHED: Kind = { word: "mapping", tone: "plain" };
const STORED: Kind = { word: "stored", tone: "plain" };
const COLLECTED: Kind = { word: "burst", tone: "waiting", isIdle: true };
const WAITED: Kind = { word: "wait", tone: "waiting", isIdle: true };
const PAUSE: Kind = { word: "pause", tone: "waiting", isIdle: true };
const DELIVERED: Kind = { word: "reply delivery", tone: "done" };
const UNDELIVERED: Kind = { word: "reply delivery", tone: "failed" };

function attemptOf(tone: StepTone): (d: Detail, attempt: number) => Kind {
  return (_, attempt) => ({ word: attempt > 1 || tone === "failed" ? `attempt ${Math.max(1, attempt)}` : "run", tone });
}

/** The kind of the segment that ends with a step of this name. Steps of other names lie within a segment. */
const ENDS: Readonly<Record<string, Kind | ((d: Detail, attempt: number) => Kind)>> = {
  "request.edited": CHECKED,
  "token.accepted": CHECKED,
  "token.refused": CHECKED,
  "signature.accepted": CHECKED,
  "signature.refused": CHECKED,
  "rate-limit.counted": CHECKED,
  "request.refused": CHECKED,
  "request.repeated": CHECKED,
  "challenge.answered": CHECKED,
  "mapping.tried": MATCHED,
  "message.rendered": MATCHED,
  "request.coalesced": STORED,
  "group.opened": STORED,
  "group.closed": COLLECTED,
  "schedule.fired": CHECKED,
  "schedule.requested": CHECKED,
  "schedule.skipped": CHECKED,
  "schedule.missed": CHECKED,
  "turn.queued": STORED,
  "event.queued": STORED,
  "turn.started": ({ attempt }) => (Number(attempt) > 1 ? PAUSE : WAITED),
  "event.taken": WAITED,
  "event.requeued": WAITED,
  "turn.returned": attemptOf("failed"),
  "turn.failed": attemptOf("failed"),
  "turn.completed": attemptOf("running"),
  "turn.cancelled": attemptOf("plain"),
  "announcement.delivered": DELIVERED,
  "announcement.retried": UNDELIVERED,
  "announcement.failed": UNDELIVERED,
  "announcement.returned": WAITED,
  "announcement.requeued": WAITED,
};

/** The kind of the segment that starts with a step of this name and has not ended. */
const OPENS: Readonly<Record<string, Kind | ((d: Detail, attempt: number) => Kind)>> = {
  "group.opened": COLLECTED,
  "turn.queued": WAITED,
  "event.queued": WAITED,
  "event.returned": WAITED,
  "event.requeued": WAITED,
  "turn.started": attemptOf("running"),
  "turn.returned": PAUSE,
  "announcement.retried": PAUSE,
};

/** The segments of a timeline, in order and without gaps. `until`: the time up to which an open one has lasted. */
export function segmentsOf(steps: readonly Step[], until?: number): Segment[] {
  const segments: Segment[] = [];
  let from = steps[0] ? Date.parse(steps[0].at) : 0;
  let attempt = 0;
  let retryAt = 0;
  const add = (of: (typeof ENDS)[string] | undefined, detail: Detail, to: number) => {
    if (of === undefined || to <= from) return;
    const { word, tone, isIdle = false } = typeof of === "function" ? of(detail, attempt) : of;
    const last = segments.at(-1);
    if (last && last.word === word && last.tone === tone) last.to = to;
    else segments.push({ word, tone, isIdle, from, to });
    from = to;
  };
  for (const { at, name, detail } of steps) {
    const to = Date.parse(at);
    if (retryAt > from && name.startsWith("announcement.")) add(PAUSE, {}, Math.min(retryAt, to));
    // A turn that ended while it waited has not run.
    add(attempt === 0 && /^turn\.(?:failed|cancelled)$/.test(name) ? WAITED : ENDS[name], detail ?? {}, to);
    if (name === "turn.started") attempt = Number(detail?.attempt ?? 1);
    if (name === "announcement.retried") retryAt = to + Number(detail?.retry_in_ms ?? 0);
    if (name === "event.taken" || name === "event.requeued") attempt = 0;
  }
  const open = steps.findLast(({ name }) => name in ENDS || name in OPENS);
  if (until !== undefined && open) add(OPENS[open.name], open.detail ?? {}, until);
  return segments;
}

/** The axis of segments that follow each other. An idle segment is cut if it is long, and longer than all that happened. */
export function axisOf(segments: readonly Segment[]): Axis {
  const busy = segments.reduce((sum, { isIdle, from, to }) => sum + (isIdle ? 0 : to - from), 0);
  const isCut = ({ isIdle, from, to }: Segment) =>
    isIdle && to - from > Math.max(CUT_FROM_MS, busy) && segments.length > 1;
  const lengths = segments.map((segment) => (isCut(segment) ? Math.max(1, busy) : segment.to - segment.from));
  const whole = Math.max(
    1,
    lengths.reduce((sum, length) => sum + length, 0),
  );
  return {
    isCut,
    place(at) {
      let drawn = 0;
      for (const [n, { from, to }] of segments.entries()) {
        const length = lengths[n] as number;
        if (at < to) return (drawn + length * Math.max(0, (at - from) / (to - from))) / whole;
        drawn += length;
      }
      return drawn / whole;
    },
  };
}
