import { addUsage, isUnreported, NO_USAGE } from "#kit/usages.ts";
import type { Entry, Turn, TurnEnd, TurnError, UsageRow } from "#store/store.ts";
import { countEndOfTurn } from "./agents.ts";
import { announceReply } from "./announcements.ts";
import { countEstimate, release } from "./budgets.ts";
import { endCompaction } from "./compactions.ts";
import { endDelivery } from "./deliveries.ts";
import { endEvents } from "./events.ts";
import { closeGroup, isGrouped } from "./group-ends.ts";
import { appendEntries, NO_SEQ } from "./journal.ts";
import { withoutLease } from "./leases.ts";
import { notifyEnd } from "./notifications.ts";
import { previewOf } from "./previews.ts";
import { passOn } from "./queues.ts";
import {
  isCompaction,
  type OpenTurn,
  type OpenTurnRecord,
  type Records,
  type SessionRecord,
  type TurnRecord,
} from "./records.ts";
import { bytesOfReply, countTurnBytes, countWaitingTurn } from "./shares.ts";
import { countAttempt, countEnd, replyBytesOf } from "./usage.ts";

export function cancelledAt(now: number): TurnEnd {
  return { now, status: "cancelled", reply: "", error: undefined, usage: undefined };
}

/** Ends a queued or running turn, its events with it, and lets the next turn of its session start. Closes its open group first. */
export function finishTurn(records: Records, record: OpenTurnRecord, end: TurnEnd): Turn {
  const before = isGrouped(record) ? closeGroup(records, record) : record;
  const { now, status, usage, error, model } = end;
  const { ordinal, turn, open, place } = before;
  const session = records.sessions.at(ordinal, turn.sessionId) as SessionRecord;
  const isRunning = turn.status === "running";
  const reply = isRunning && hasReply(end) ? end.reply : undefined;
  const ended: Turn = {
    ...turn,
    status,
    endedAt: now,
    error,
    usage: usage ? addUsage(turn.usage, usage.usage) : (turn.usage ?? NO_USAGE),
    model: model ?? turn.model,
    replyPreview: reply === undefined ? undefined : previewOf(reply),
    announcement: status === "completed" ? announceReply(records, before, now) : undefined,
  };
  const isFirst = records.turns.firstInQueue(ordinal)?.place === place;
  const entries = endEntries(ended, open.replyMessageId, reply, end);
  const { lastSeq } = appendEntries(records, session, now, entries, {
    messages: reply === undefined ? 0 : 1,
    bytes: Buffer.byteLength(reply ?? ""),
    queued: isRunning ? 0 : -1,
    deliveryId: turn.deliveryId,
    usage: addUsage(session.session.usage, usage?.usage ?? NO_USAGE),
  });
  const added = reply === undefined ? 0 : bytesOfReply(reply, end.toolCalls);
  const replySeq = reply === undefined ? 0 : lastSeq - 1;
  const bytes = before.bytes === undefined ? undefined : before.bytes + added;
  const after: TurnRecord = { turn: ended, ordinal, place, replySeq, open: undefined, bytes };
  records.turns.put(before.joined ? { ...after, joined: before.joined } : after);
  countTurnBytes(records, before, added);
  if (!isRunning) countWaitingTurn(records, before, -1);
  const hops = open.announce?.hops ?? 0;
  countEndOfTurn(records, turn, end, hops);
  if (usage) countAttempt(records, now, turn, usage, status);
  else countEnd(records, now, turn, open.countedModel, status);
  if (usage && isUnreported(usage.usage))
    countEstimate(records, turn, usage.usage, contextBytesOf(session, open), replyBytesOf(end));
  endDelivery(records, turn.deliveryId);
  endEvents(records, before, end);
  notifyEnd(records, ended, hops);
  if (isFirst) passOn(records, ordinal);
  release(records, open.reservation);
  return ended;
}

/** A turn that a budget stopped keeps its tool calls, which are stored with the reply. */
function hasReply({ status, reply, error, toolCalls }: TurnEnd): boolean {
  if (status === "completed" || reply !== "") return true;
  return error?.name === "budget-exceeded" && toolCalls !== undefined && toolCalls.length > 0;
}

function contextBytesOf({ session }: SessionRecord, { contextBytes = 0 }: OpenTurn): number {
  return session.contextBytes + contextBytes;
}

/** Ends any open turn: one that compacts is deleted. */
export function endOpenTurn(records: Records, record: OpenTurnRecord, end: TurnEnd): Turn {
  if (!isCompaction(record)) return finishTurn(records, record, end);
  endCompaction(records, record, end);
  return record.turn;
}

/** The entries that the end of a turn appends to the journal. `turn` is the ended one. */
function endEntries(
  { turnId, usage = NO_USAGE }: Turn,
  messageId: string,
  reply: string | undefined,
  end: TurnEnd,
): Entry[] {
  const { now: at, status, model, toolCalls } = end;
  const ended: Entry =
    status === "failed"
      ? { seq: NO_SEQ, at, turnId, name: "turn.failed", usage, model, error: end.error as TurnError }
      : { seq: NO_SEQ, at, turnId, name: `turn.${status}`, usage, model, reply: end.reply };
  if (reply === undefined) return [ended];
  return [{ seq: NO_SEQ, at, turnId, name: "message.completed", messageId, text: reply, toolCalls }, ended];
}

/** Adds the usage of an attempt to its turn, its session and the counters. */
export function addUsed(
  records: Records,
  record: OpenTurnRecord,
  now: number,
  used: UsageRow,
  replyBytes: number | undefined,
): OpenTurnRecord {
  const session = records.sessions.at(record.ordinal, record.turn.sessionId) as SessionRecord;
  countEstimate(records, record.turn, used.usage, contextBytesOf(session, record.open), replyBytes);
  if (isCompaction(record)) {
    countAttempt(records, now, record.turn, used);
    return record;
  }
  const after = usedTurn(record, used);
  records.turns.put(after);
  records.sessions.put(usedSession(session, used));
  countAttempt(records, now, after.turn, used);
  return after;
}

function usedTurn(record: OpenTurnRecord, { usage, latencyMs }: UsageRow): OpenTurnRecord {
  return {
    ...record,
    turn: { ...record.turn, usage: addUsage(record.turn.usage, usage) },
    open: { ...record.open, spentMs: record.open.spentMs + latencyMs },
  };
}

function usedSession(record: SessionRecord, { usage }: UsageRow): SessionRecord {
  return {
    ...record,
    session: { ...record.session, usage: addUsage(record.session.usage, usage) },
  };
}

/** Gives a running turn back to the head of its session's queue; one that was to be cancelled ends as that. */
export function requeueTurn(records: Records, record: OpenTurnRecord, now: number, delayMs: number): void {
  const { turn, ordinal, open } = record;
  if (open.isCancelled) {
    endOpenTurn(records, record, cancelledAt(now));
    return;
  }
  if (isCompaction(record)) {
    records.agents.count(turn.agent, { compactions: 1 });
  } else {
    const session = records.sessions.at(ordinal, turn.sessionId) as SessionRecord;
    const entry: Entry = { seq: NO_SEQ, at: now, turnId: turn.turnId, name: "turn.queued" };
    appendEntries(records, session, now, [entry], { queued: 1, deliveryId: turn.deliveryId });
    records.agents.count(turn.agent, { queued: 1, running: -1 });
    countWaitingTurn(records, record, 1);
  }
  const readyOrder = delayMs > 0 ? undefined : records.next("order");
  records.turns.put({
    ...record,
    turn: { ...turn, status: "queued" },
    open: {
      ...open,
      ...(open.reservation && { reservation: undefined }),
      readyOrder,
      ...withoutLease(records, delayMs),
    },
  });
  release(records, open.reservation);
  records.notify({ kind: "work", of: "turn" });
}
