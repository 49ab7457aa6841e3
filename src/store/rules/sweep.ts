import type { Entry, Store } from "#store/store.ts";
import type { BudgetRecord } from "./budget-records.ts";
import { releaseHeld } from "./budgets.ts";
import { forgetEventsBefore } from "./events.ts";
import { forgetNewsBefore } from "./gateway.ts";
import { marksOf } from "./journal.ts";
import { freeLostMessages } from "./outbox.ts";
import type { Records, Rule, SessionRecord, TurnRecord } from "./records.ts";
import { boundOf, idleAt } from "./retention.ts";
import { eraseJournal, eraseTurn, forgetSession } from "./sessions.ts";
import { endOpenTurn, requeueTurn } from "./turn-ends.ts";
import { bySession } from "./turns.ts";
import { forgetUsageBefore, storeLateAttempt } from "./usage.ts";

/** The number of records that a sweep looks at before it lets others run: a millisecond or two. */
const SLICE = 250;
/** Looking at this many entries, and erasing them, is as much work as one other record. */
const ENTRIES_A_STEP = 8;
const SESSIONS_A_SLICE = 50;
/** After a change of the policy, only sweeps let held turns begin. */
const HELD_A_SWEEP = 64;
/** The longest window, a month whose clocks are set back. */
const LONGEST_WINDOW_MS = 32 * 86_400_000;

type SweepRequest = Parameters<Store["sweep"]>[0];

/** Handles all that is past its time. Answers true if there is more. */
export const sweep: Rule<"sweep"> = (records, request) => {
  returnLostTurns(records, request);
  freeLostMessages(records);
  const hasHeld = releaseHeld(records, records.turns.holdingBudgets(), HELD_A_SWEEP);
  forgetBudgets(records);
  for (const late of records.lateAttempts.endedBy(records.moment.time)) records.lateAttempts.delete(late);
  forgetUsageBefore(records, request.usageBefore);
  forgetNewsBefore(records, request.gatewayBefore);
  let left = SLICE;
  left -= eraseMore(records, left * ENTRIES_A_STEP) / ENTRIES_A_STEP;
  left -= forgetKeys(records, request.keysBefore, Math.max(Math.ceil(left), 0));
  left -= forgetEventsBefore(records, request.eventsBefore, Math.max(Math.ceil(left), 0));
  const hasMoreEnded = records.notifications.eraseEnded(records.bookmarks.policy.notifications);
  const hasMore = sweepSessions(records, request, left);
  return hasMore || hasHeld || hasMoreEnded || records.erasures.first() !== undefined;
};

/** Turns whose lease ended go back to their queue, or fail after as many attempts as they may have. */
function returnLostTurns(records: Records, { now, maxAttempts, lost }: SweepRequest): void {
  for (const record of records.turns.leaseEnded(records.moment.time).sort(bySession)) {
    storeLateAttempt(records, record);
    if (record.turn.attempt < maxAttempts || record.open.isCancelled) requeueTurn(records, record, now, 0);
    else endOpenTurn(records, record, { now, status: "failed", reply: "", error: lost, usage: undefined });
  }
}

/** Continues to erase deleted sessions. Returns the work, in entries. */
function eraseMore(records: Records, limit: number): number {
  let left = limit;
  for (let ordinal = records.erasures.first(); ordinal !== undefined && left > 0; ordinal = records.erasures.first()) {
    left -= Math.max(eraseJournal(records, ordinal, left), 1);
  }
  return limit - left;
}

function forgetKeys(records: Records, time: number, limit: number): number {
  const ended = records.keys.endedBy(time, limit);
  for (const record of ended) records.keys.delete(record);
  return ended.length;
}

/** Deletes the records of budgets that were removed from the policy, such as those of deleted keys, once their windows are over. */
function forgetBudgets(records: Records): void {
  const { now } = records.moment;
  const isOver = ({ windowStart, reserved, grants }: BudgetRecord) =>
    windowStart + LONGEST_WINDOW_MS <= now &&
    reserved.tokens + reserved.cost === 0 &&
    grants.every(({ until }) => until <= now);
  const over = records.budgets.all().filter(isOver);
  if (over.length === 0) return;
  const names = new Set(records.bookmarks.policy.budgets.map(({ name }) => name));
  for (const record of over) if (!names.has(record.name)) records.budgets.delete(record);
}

/** Erases sessions past their retention, and the heads of journals that continue. Returns true if there is more. */
function sweepSessions(records: Records, request: SweepRequest, limit: number): boolean {
  const before = Math.max(request.sessionsBefore, request.webhookSessionsBefore);
  let left = limit;
  for (;;) {
    const found = records.sessions.after(records.bookmarks.sweptTo, SESSIONS_A_SLICE, request);
    for (const record of found) {
      if (left <= 0) return true;
      // The sessions behind it were made later still.
      if (record.session.createdAt > before && idleAt(record) > before) {
        records.setBookmarks({ sweptTo: undefined });
        return false;
      }
      const { steps, isDone } = sweepSession(records, record, request, left);
      left -= steps;
      if (!isDone) return true;
      records.setBookmarks({ sweptTo: record });
    }
    if (found.length === 0) break;
  }
  records.setBookmarks({ sweptTo: undefined });
  // If no steps were left for sessions, there may be more keys or events.
  return limit <= 0;
}

function sweepSession(
  records: Records,
  record: SessionRecord,
  request: SweepRequest,
  left: number,
): { steps: number; isDone: boolean } {
  const { sessionId, ordinal, updatedAt } = record.session;
  const bound = boundOf(sessionId, request);
  const isUnfinished = records.turns.queue(ordinal).length > 0 || records.outgoing.ofSession(ordinal).length > 0;
  if (updatedAt <= bound && !isUnfinished) {
    return { steps: 1 + forgetSession(records, record, request.now) / ENTRIES_A_STEP, isDone: true };
  }
  if (record.headDueAt === undefined || record.headDueAt > bound) return { steps: 1, isDone: true };
  const { work, isDone } = ageHead(records, record, bound, Math.ceil(left) * ENTRIES_A_STEP);
  return { steps: 1 + work / ENTRIES_A_STEP, isDone };
}

/** It is checked in each sweep: no notification says when it may be erased. */
const WITH_EACH_SWEEP = 0;

/**
 * Erases the erasable entries of a journal's head, checking at most `limit` entries. Returns the work, in entries, and whether it reached the last
 * erasable one.
 */
function ageHead(
  records: Records,
  record: SessionRecord,
  bound: number,
  limit: number,
): { work: number; isDone: boolean } {
  const { ordinal, firstSeq } = record.session;
  const journal = records.journal(ordinal);
  const [first] = journal.after(firstSeq - 1, 1);
  // If nothing is old enough, the rest of the head is not read.
  const entries = first && first.at > bound ? [first] : journal.after(firstSeq - 1, limit);
  const { isCompacted } = marksOf(records, ordinal);
  let headDueAt: number | undefined;
  let cut = firstSeq;
  let work = 0;
  for (const entry of entries) {
    if (work >= limit) break;
    const turn = beginsTurn(entry) ? records.turns.find(entry.turnId) : undefined;
    const until = entry.at > bound ? entry.at : retainedUntil(records, turn, bound, isCompacted);
    if (until !== "gone") {
      headDueAt = until;
      break;
    }
    cut = entry.seq + 1;
    work += turn ? eraseTurn(records, turn) : 1;
  }
  journal.erase(entries.filter(({ seq }) => seq < cut));
  const isDone = work < limit && (entries.length < limit || cut <= (entries.at(-1)?.seq ?? 0));
  records.sessions.put({
    ...record,
    session: { ...record.session, firstSeq: cut },
    headDueAt: isDone ? headDueAt : record.headDueAt,
  });
  return { work: Math.max(work, entries.length), isDone };
}

function beginsTurn(entry: Entry): boolean {
  return entry.name === "message.created" && entry.role !== "assistant";
}

/**
 * The bound from which on a turn may go that begins here; undefined: not before the next compaction. One that is not there went with an
 * earlier entry.
 */
function retainedUntil(
  records: Records,
  record: TurnRecord | undefined,
  bound: number,
  isCompacted: (seq: number) => boolean,
): number | "gone" | undefined {
  if (!record) return "gone";
  const { turn, open, replySeq } = record;
  if (open || records.outgoing.find(turn.turnId)) return WITH_EACH_SWEEP;
  if (turn.endedAt !== undefined && turn.endedAt > bound) return turn.endedAt;
  return isCompacted(turn.seq - 1) && (replySeq === 0 || isCompacted(replySeq)) ? "gone" : undefined;
}
