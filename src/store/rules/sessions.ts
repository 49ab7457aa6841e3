import { NO_USAGE } from "#kit/usages.ts";
import type { ListedSession, Turn, TurnError, TurnOrder } from "#store/store.ts";
import { countEndOfTurn } from "./agents.ts";
import { release } from "./budgets.ts";
import { deleteCompaction } from "./compactions.ts";
import { endDelivery, eraseContent, notifyOutcome } from "./deliveries.ts";
import { endEvents } from "./events.ts";
import { refOf } from "./journal.ts";
import { notifyEnd } from "./notifications.ts";
import { decodeCursor, encodeCursor } from "./pages.ts";
import {
  type CompactionRecord,
  isCompaction,
  type OpenTurnRecord,
  type Records,
  type Rule,
  type SessionRecord,
  type TurnRecord,
} from "./records.ts";
import { countTurnBytes } from "./shares.ts";
import { cancelledAt, finishTurn } from "./turn-ends.ts";
import { countEnd, storeLateAttempt } from "./usage.ts";

/** The most entries of a session that is erased at once. A sweep erases a longer one in pieces, as other calls would wait. */
const ENTRIES_AT_ONCE = 100;
/** Erasing the content of a joined delivery is as much work as erasing this many entries. */
const ENTRIES_A_DELIVERY = 8;
/** Why a turn that its session took along handled nothing. */
const ERASED: TurnError = { name: "turn-failed", detail: "Its session was deleted." };

/** A session that is about to get its first turn; nothing is kept yet. */
export function newSession(records: Records, { session, now }: TurnOrder): SessionRecord {
  return {
    session: {
      sessionId: session.sessionId,
      agent: session.agent,
      channel: session.channel,
      userId: session.userId,
      createdAt: now,
      updatedAt: now,
      lastSeq: 0,
      firstSeq: 1,
      messageCount: 0,
      turnsQueued: 0,
      usage: NO_USAGE,
      ordinal: records.next("session"),
      contextBytes: 0,
      preview: undefined,
    },
    compactedCount: 0,
    headDueAt: undefined,
  };
}

export const getSession: Rule<"getSession"> = (records, sessionId) => {
  const found = records.sessions.find(sessionId);
  return found && withRunning(records, found);
};

/** Only the first of a session's queue may run. */
function withRunning(records: Records, { session }: SessionRecord): ListedSession {
  const first = records.turns.firstInQueue(session.ordinal);
  const turnsRunning = first?.turn.status === "running" && !isCompaction(first) ? 1 : 0;
  return Object.assign({ turnsRunning }, session);
}

export const listSessions: Rule<"listSessions"> = (records, { agents = [undefined], limit, cursor }) => {
  const below = cursor === undefined ? Infinity : decodeCursor(cursor);
  const found = agents
    .flatMap((agent) => records.sessions.before(below, limit + 1, agent))
    .sort((a, b) => b.session.ordinal - a.session.ordinal);
  const items = found.slice(0, limit).map((record) => withRunning(records, record));
  const last = items.at(-1);
  return { items, next: found.length > limit && last ? encodeCursor(last.ordinal) : undefined };
};

export const deleteSession: Rule<"deleteSession"> = (records, sessionId, now, agents) => {
  const found = records.sessions.find(sessionId);
  if (!found || agents?.includes(found.session.agent) === false) return undefined;
  const turnsCancelled = records.turns.queue(found.session.ordinal).filter((record) => !isCompaction(record)).length;
  forgetSession(records, found, now);
  return { turnsCancelled };
};

/**
 * Erases a session and all of its records: its queued turns are cancelled, and a running one loses its claim. Returns the work of what it erased at
 * once, in entries.
 */
export function forgetSession(
  records: Records,
  { session: { sessionId, ordinal } }: SessionRecord,
  now: number,
): number {
  // From the end of the queue, so that no turn behind an ended one becomes ready.
  for (const record of [...records.turns.queue(ordinal)].reverse()) {
    if (isCompaction(record)) abandonCompaction(records, record);
    else if (record.turn.status === "queued") finishTurn(records, record, cancelledAt(now));
  }
  const running = records.turns.firstInQueue(ordinal);
  if (running) abandonTurn(records, running, now);
  for (const message of records.outgoing.ofSession(ordinal)) records.outgoing.delete(message);
  records.summaries.delete(ordinal);
  const last = records.sessions.find(sessionId) as SessionRecord;
  records.sessions.delete(last);
  records.erasures.add(ordinal);
  const work = eraseJournal(records, ordinal, ENTRIES_AT_ONCE);
  if (running) records.notify({ kind: "cancel", turnId: running.turn.turnId });
  records.notify({ kind: "deleted", session: refOf(last.session), end: { seq: last.session.lastSeq + 1, at: now } });
  return work;
}

function abandonCompaction(records: Records, record: CompactionRecord): void {
  const { turnId, sessionId, status } = record.turn;
  storeLateAttempt(records, record);
  const error = { name: "session-not-found", detail: `The session ${sessionId} was deleted.` } as const;
  deleteCompaction(records, record, { error });
  if (status === "running") records.notify({ kind: "cancel", turnId });
}

/** Takes a running turn from its runner. The runner notices this only from its lost claim and the end of the session. */
function abandonTurn(records: Records, record: OpenTurnRecord, now: number): void {
  const { turn, open } = record;
  countEndOfTurn(records, turn, { now, status: "cancelled", error: undefined });
  countEnd(records, now, turn, open.countedModel, "cancelled");
  storeLateAttempt(records, record);
  const ended: Turn = { ...turn, status: "cancelled", endedAt: now };
  records.turns.put({ ...record, turn: ended, open: undefined });
  release(records, open.reservation);
  notifyEnd(records, ended, open.announce?.hops ?? 0);
  endDelivery(records, turn.deliveryId);
  notifyOutcome(records, turn.deliveryId);
  endEvents(records, record, { now, status: "failed", error: ERASED });
}

/** Erases the rest of a deleted session, about `limit` entries of it. Returns the work, in entries. */
export function eraseJournal(records: Records, ordinal: number, limit: number): number {
  const journal = records.journal(ordinal);
  const entries = journal.after(0, limit);
  let work = 0;
  let erased = 0;
  for (const entry of entries) {
    if (work >= limit) break;
    const turn = entry.name === "turn.queued" ? records.turns.find(entry.turnId) : undefined;
    work += turn?.ordinal === ordinal ? eraseTurn(records, turn) : 1;
    erased++;
  }
  journal.erase(erased === entries.length ? entries : entries.slice(0, erased));
  if (erased === entries.length && erased < limit) records.erasures.delete(ordinal);
  return work;
}

/** Deletes the turn and erases its recorded content. Returns the work, in entries. */
export function eraseTurn(records: Records, record: TurnRecord): number {
  const { turn, bytes = 0, joined = [] } = record;
  records.turns.delete(record);
  countTurnBytes(records, record, -bytes);
  eraseContent(records, turn.deliveryId);
  for (const deliveryId of joined) eraseContent(records, deliveryId);
  return 1 + joined.length * ENTRIES_A_DELIVERY;
}
