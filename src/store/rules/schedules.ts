/** Schedules: their plans, and their runs, each once on all gateways. */
import { GatewayError } from "#kit/errors.ts";
import type {
  GatewayEntry,
  ScheduledStart,
  ScheduleOrder,
  ScheduleRun,
  ScheduleState,
  TurnStart,
} from "#store/store.ts";
import { recordDelivery } from "./deliveries.ts";
import { appendNews } from "./gateway.ts";
import { NO_SEQ } from "./journal.ts";
import type { Records, Rule } from "./records.ts";
import type { ScheduleRecord } from "./schedule-records.ts";
import { startTurnWith } from "./turns.ts";

export const readSchedules: Rule<"readSchedules"> = ({ schedules }) => schedules.all().map(stateOf);

export const planSchedule: Rule<"planSchedule"> = (records, name, { plan, nextAt, instead }) => {
  const before = findSchedule(records, name);
  const isPaused = before.pausedAt !== undefined;
  if (instead !== undefined) {
    if (before.plan !== plan || before.nextAt !== instead) return stateOf(before);
    return putPlan(records, { ...before, nextAt, handledAt: handledBefore(before, nextAt) });
  }
  if (before.plan === plan && (isPaused || before.nextAt !== undefined)) return stateOf(before);
  return putPlan(records, {
    ...before,
    plan,
    nextAt: isPaused ? undefined : nextAt,
    anchorAt: nextAt,
    handledAt: undefined,
  });
};

export const unplanSchedule: Rule<"unplanSchedule"> = (records, name) => {
  const { schedules } = records;
  const record = schedules.find(name);
  if (record === undefined) return;
  if (record.pausedAt === undefined) schedules.delete(record);
  else schedules.put({ ...record, plan: "", nextAt: undefined });
  records.notify({ kind: "work", of: "schedule" });
};

export const setSchedulePaused: Rule<"setSchedulePaused"> = (records, name, { paused, plan, nextAt, now }) => {
  const before = findSchedule(records, name);
  if ((before.pausedAt !== undefined) === paused) return { state: stateOf(before), isChanged: false };
  const anchorAt = before.plan === plan ? before.anchorAt : nextAt;
  const planned = { plan, nextAt, anchorAt, handledAt: handledBefore(before, nextAt) };
  const change = paused ? { pausedAt: now, nextAt: undefined } : { pausedAt: undefined, ...planned };
  const state = putPlan(records, { ...before, ...change });
  appendRuns(records, [
    { seq: NO_SEQ, at: now, name: `schedule.${paused ? "paused" : "resumed"}`, scheduleName: name },
  ]);
  return { state, isChanged: true };
};

export const runSchedule: Rule<"runSchedule"> = (records, order) => {
  const { name, plan, plannedAt, nextAt, missed, start } = order;
  const before = findSchedule(records, name);
  const isHandled = before.handledAt !== undefined && plannedAt <= before.handledAt;
  if (before.plan !== plan || before.nextAt !== plannedAt || isHandled) return { runs: [], started: undefined };
  const runs: ScheduleRun[] = [];
  if (missed) {
    recordDelivery(records, missed.delivery, order.recorder, { agent: missed.agent });
    runs.push(missed.run);
  }
  const result = start && startOrSkip(records, before, order, start);
  if (result) runs.push(result.run);
  const last = runs.at(-1) ?? before.last;
  const handledAt = Math.max(...runs.map((run) => run.plannedAt), plannedAt);
  const turnId = result?.started?.turn.turnId ?? before.turnId;
  records.schedules.put({ ...before, nextAt, handledAt, last, turnId });
  appendRuns(
    records,
    runs.map((run) => entryOf(name, run)),
  );
  return { runs, started: result?.started };
};

export const requestRun: Rule<"requestRun"> = (records, name, { requestedBy, turn }) => {
  const started = startTurnWith(records, turn, undefined);
  if (started.replayed) return started;
  const { now: at, turnId, delivery } = turn;
  const run = { ...startedRun(at, at, turnId, delivery?.deliveryId ?? ""), requestedBy };
  records.schedules.put({ ...findSchedule(records, name), last: run, turnId });
  appendRuns(records, [entryOf(name, run)]);
  return started;
};

/** Starts the turn, or records why it does not start. */
function startOrSkip(
  records: Records,
  { turnId }: ScheduleRecord,
  { now, recorder }: ScheduleOrder,
  { plannedAt, overlap, agent, delivery, turn }: ScheduledStart,
): { run: ScheduleRun; started?: TurnStart } {
  const { deliveryId } = delivery;
  const skip = (name: string, detail: string) => {
    const step = { planned_at: new Date(plannedAt).toISOString(), reason: name, detail };
    const steps = [{ at: now, name: "schedule.skipped", detail: JSON.stringify(step) }];
    const skipped = { ...delivery, answer: "skipped" as const, steps };
    recordDelivery(records, skipped, recorder, { agent });
    const reason = `${name}: ${detail}`;
    return { run: { ...startedRun(plannedAt, now, undefined, deliveryId), outcome: "skipped" as const, reason } };
  };
  if ("refusal" in turn) return skip(turn.refusal.name, turn.refusal.detail);
  if (overlap === "skip" && turnId !== undefined && records.turns.find(turnId)?.open)
    return skip("overlap", `The turn ${turnId} of the last run has not ended.`);
  try {
    // A refusal comes before the first write of the start.
    const started = startTurnWith(records, turn, undefined);
    return { run: startedRun(plannedAt, now, turn.turnId, deliveryId), started };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return skip(error.name, error.detail ?? "");
  }
}

function startedRun(plannedAt: number, at: number, turnId: string | undefined, deliveryId: string): ScheduleRun {
  return { plannedAt, at, outcome: "started", reason: undefined, turnId, deliveryId, requestedBy: undefined };
}

/** The last handled time of a schedule that continues with `nextAt`; none if the times from `nextAt` on may run again. */
function handledBefore({ handledAt }: ScheduleRecord, nextAt = Infinity): number | undefined {
  return handledAt !== undefined && handledAt < nextAt ? handledAt : undefined;
}

function putPlan(records: Records, record: ScheduleRecord): ScheduleState {
  records.schedules.put(record);
  records.notify({ kind: "work", of: "schedule" });
  return stateOf(record);
}

function findSchedule({ schedules }: Records, name: string): ScheduleRecord {
  return (
    schedules.find(name) ?? {
      name,
      plan: "",
      nextAt: undefined,
      anchorAt: undefined,
      handledAt: undefined,
      pausedAt: undefined,
      last: undefined,
      turnId: undefined,
    }
  );
}

function stateOf({ turnId: _, ...state }: ScheduleRecord): ScheduleState {
  return state;
}

function entryOf(scheduleName: string, { at, outcome, plannedAt, turnId, reason }: ScheduleRun): GatewayEntry {
  const of = { scheduleName, outcome, plannedAt, turnId: turnId ?? null, reason: reason ?? null };
  return { seq: NO_SEQ, at, name: "schedule.ran", ...of };
}

function appendRuns(records: Records, entries: readonly GatewayEntry[]): void {
  appendNews(records, entries, records.bookmarks.policy.streamKeep);
}
