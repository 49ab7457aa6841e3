import type { GatewayEntry } from "#store/store.ts";
import { isPaused } from "./agents.ts";
import { appendNews } from "./gateway.ts";
import { NO_SEQ } from "./journal.ts";
import type { BeatRecord, BeatRun, Records, Rule } from "./records.ts";

export const planBeat: Rule<"planBeat"> = (records, agent, { delayMs, soonest }) => {
  const record = findBeat(records, agent);
  if (record.isAsked) return;
  const dueAt = delayMs === undefined ? undefined : records.moment.time + delayMs;
  const isSooner = dueAt !== undefined && (record.dueAt === undefined || dueAt < record.dueAt);
  if (soonest && !isSooner) return;
  // The agent may be configured again before the last turn of its beat has ended.
  putBeat(records, { ...record, dueAt, run: record.run && { ...record.run, isLast: false } });
  if (isSooner && !record.run) records.notify({ kind: "work", of: "beat" });
};

export const readBeat: Rule<"readBeat"> = (records, agent) => {
  const record = findBeat(records, agent);
  return { agent, nextAt: wallTimeOf(records, record.dueAt), running: record.run !== undefined };
};

export const dueBeats: Rule<"dueBeats"> = (records, agents) => {
  const due: string[] = [];
  let nextDueAt = Infinity;
  for (const agent of agents) {
    const record = findBeat(records, agent);
    if (isDue(records, record)) due.push(agent);
    else if (!record.run && !isPaused(records, agent)) nextDueAt = Math.min(nextDueAt, record.dueAt ?? Infinity);
  }
  return { due, nextDueInMs: nextDueAt === Infinity ? undefined : nextDueAt - records.moment.time };
};

export const removeBeat: Rule<"removeBeat"> = (records, agent, { now, streamKeep }) => {
  const record = findBeat(records, agent);
  const { run } = record;
  const isOver = run?.openTurnId === undefined;
  putBeat(records, { ...record, dueAt: undefined, isAsked: false, run: run && { ...run, isLast: true } });
  if (run && isOver) endRun(records, agent, run, { now, delayMs: undefined, streamKeep });
};

/** Requests the agent's next beat at once, for an event that asks for it. */
export function requestBeat(records: Records, agent: string): void {
  const record = findBeat(records, agent);
  if (record.isAsked) return;
  if (record.run) {
    putBeat(records, { ...record, isAsked: true });
    return;
  }
  putBeat(records, { ...record, isAsked: true, dueAt: records.moment.time });
  records.notify({ kind: "work", of: "beat" });
}

/** Makes the beats due that a budget delays. One that still has no room is delayed again. */
export function requestDelayedBeats(records: Records): void {
  const { now, time } = records.moment;
  let hasFound = false;
  for (const agent of Object.keys(records.bookmarks.policy.reserves)) {
    const record = findBeat(records, agent);
    if (record.run || (record.delayedUntil ?? 0) <= now) continue;
    putBeat(records, { ...record, dueAt: time });
    hasFound = true;
  }
  if (hasFound) records.notify({ kind: "work", of: "beat" });
}

/**
 * Called when a turn of the agent's beat has ended. Any gateway can continue the beat. Version 0.2.0 may have left a second turn. In this case,
 * only that turn has the range of events.
 */
export function endBatch(
  records: Records,
  { agent, turnId }: { agent: string; turnId: string },
  { dead, returned }: { dead: readonly string[]; returned: number },
  end: { now: number; streamKeep: number },
): void {
  const record = findBeat(records, agent);
  const before = record.run;
  if (!before?.turnIds.includes(turnId)) return;
  const later = before.turnIds.slice(before.turnIds.indexOf(turnId) + 1);
  const openTurnId =
    before.openTurnId === turnId ? later.find((id) => records.turns.find(id)?.open) : before.openTurnId;
  const run = { ...before, openTurnId, dead: [...before.dead, ...dead], returned: before.returned + returned };
  putBeat(records, { ...record, run });
  if (openTurnId !== undefined) return;
  if (run.isLast) endRun(records, agent, run, { ...end, delayMs: undefined });
  records.notify({ kind: "work", of: "beat" });
}

/** Ends a beat and plans the next for `delayMs` from now (undefined: no further beat), or immediately if one was requested in the meantime. */
export function endRun(
  records: Records,
  agent: string,
  { events, turnIds, isLast }: BeatRun,
  { now, delayMs, streamKeep }: { now: number; delayMs: number | undefined; streamKeep: number },
): void {
  const record = findBeat(records, agent);
  const { time } = records.moment;
  const planned = delayMs === undefined ? undefined : time + delayMs;
  const dueAt = record.isAsked ? time : isLast ? record.dueAt : planned;
  putBeat(records, { ...record, run: undefined, dueAt });
  if (events === 0) return;
  const nextAt = wallTimeOf(records, dueAt) ?? null;
  const ran: GatewayEntry = { seq: NO_SEQ, at: now, name: "heartbeat.ran", agentName: agent, events, turnIds, nextAt };
  appendNews(records, [ran], streamKeep);
}

/** The events that a turn of the agent's beat works on: the queued ones with `before` < ordinal <= `after`. */
export function batchOf(
  records: Records,
  agent: string,
): { turnId: string; before: number; after: number } | undefined {
  const run = records.beats.find(agent)?.run;
  return run?.openTurnId === undefined ? undefined : { turnId: run.openTurnId, before: run.before, after: run.after };
}

export function findBeat(records: Records, agent: string): BeatRecord {
  return records.beats.find(agent) ?? { agent, dueAt: undefined, nextAt: undefined, isAsked: false, run: undefined };
}

export function putBeat(records: Records, record: BeatRecord): void {
  records.beats.put({ ...record, nextAt: record.run ? record.nextAt : wallTimeOf(records, record.dueAt) });
}

/** True if the beat can begin or continue. A pause of the agent prevents only a new beat: the next turn of a running beat waits in the queue. */
export function isDue(records: Records, { agent, run, dueAt = Infinity }: BeatRecord): boolean {
  return run ? run.openTurnId === undefined : dueAt <= records.moment.time && !isPaused(records, agent);
}

/** The due time by the wall clock as it is now. A jump of that clock does not move the beat itself. */
function wallTimeOf({ moment: { now, time } }: Records, dueAt: number | undefined): number | undefined {
  return dueAt === undefined ? undefined : Math.round(now + dueAt - time);
}
