import type { Compacted, CompactionResult, TurnEnd } from "#store/store.ts";
import { countEstimate, release } from "./budgets.ts";
import { appendEntries, NO_SEQ } from "./journal.ts";
import { passOn } from "./queues.ts";
import type { CompactionRecord, Records, Rule, SessionRecord } from "./records.ts";
import { countAttempt, replyBytesOf } from "./usage.ts";

/** Ends a turn that compacts, with its result or as failed or cancelled. The turn is deleted, and the next turn of the session can begin. */
export function endCompaction(records: Records, record: CompactionRecord, end: CompactionTurnEnd): void {
  const { now, status, error, compaction, usage } = end;
  const { ordinal, turn } = record;
  const session = records.sessions.at(ordinal, turn.sessionId) as SessionRecord;
  if (compaction?.compacted) storeSummary(records, session, turn.turnId, compaction.compacted, now);
  if (usage) {
    countAttempt(records, now, turn, usage);
    const replyBytes = replyBytesOf({ status, reply: compaction?.compacted?.summary ?? "", error });
    countEstimate(records, turn, usage.usage, session.session.contextBytes, replyBytes);
  }
  deleteCompaction(records, record, resultOf(end));
}

/** Deletes a compaction, which leaves the queue of its session. */
export function deleteCompaction(records: Records, record: CompactionRecord, result: CompactionResult): void {
  const { ordinal, place, turn, open } = record;
  const isFirst = records.turns.firstInQueue(ordinal)?.place === place;
  records.turns.delete(record);
  if (turn.status === "queued") records.agents.count(turn.agent, { compactions: -1 });
  if (isFirst) passOn(records, ordinal);
  release(records, open.reservation);
  records.notify({ kind: "compacted", turnId: turn.turnId, result });
}

type CompactionTurnEnd = Pick<TurnEnd, "now" | "status" | "error" | "usage" | "compaction">;

function resultOf({ status, error, compaction }: CompactionTurnEnd): CompactionResult {
  if (!compaction) return { error: error ?? { name: "turn-failed", detail: `The compaction was ${status}.` } };
  const { before, after, reason, compacted } = compaction;
  return { before, after, reason, isCompacted: compacted !== undefined, error: undefined };
}

function storeSummary(
  records: Records,
  before: SessionRecord,
  turnId: string,
  compacted: Compacted,
  now: number,
): void {
  const { before: sizeBefore, after: sizeAfter, freedBytes, summary: text, outside, except } = compacted;
  const { ordinal, contextBytes } = before.session;
  const through = Math.max(compacted.through, records.summaries.find(ordinal)?.through ?? 0);
  records.summaries.put({ ordinal, summary: { text, outside }, through, except });
  const record: SessionRecord = {
    session: { ...before.session, contextBytes: contextBytes - freedBytes },
    compactedCount: before.compactedCount + sizeBefore.messages - sizeAfter.messages,
    headDueAt: 0,
  };
  const entry = { seq: NO_SEQ, at: now, turnId, name: "session.compacted" } as const;
  appendEntries(records, record, now, [{ ...entry, before: sizeBefore, after: sizeAfter }]);
}

export const readSummary: Rule<"readSummary"> = (records, sessionId) => {
  const found = records.sessions.find(sessionId);
  return found && records.summaries.find(found.session.ordinal)?.summary;
};
