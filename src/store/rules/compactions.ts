import type { Claim, Compacted } from "#store/store.ts";
import { appendEntries, NO_SEQ } from "./journal.ts";
import { holds, leaseFor } from "./leases.ts";
import { checkBytes, refuse } from "./limits.ts";
import type { CompactionRecord, Records, Rule, SessionRecord } from "./records.ts";
import { passOn } from "./turn-ends.ts";

/** A compaction is claimed once, when it is queued. */
const FENCE = 1;

export const queueCompaction: Rule<"queueCompaction"> = (records, order) => {
  const { sessionId, compactionId, node, leaseMs, limits } = order;
  const found = records.sessions.find(sessionId);
  if (!found) throw refuse("session-not-found", `No session has the id ${sessionId}.`);
  const { ordinal, agent, lastSeq } = found.session;
  const queue = records.queue(ordinal);
  const waiting = queue.filter((of) => !("turn" in of) || of.turn.status === "queued").length;
  if (waiting >= limits.turnsPerSession) {
    throw refuse("session-busy", `${waiting} turns and compactions wait in the session.`);
  }
  checkBytes(records, limits.storeBytes);
  const isFirst = queue.length === 0;
  const lease = leaseFor(records, node, leaseMs);
  records.compactions.put({ compactionId, ordinal, place: records.next("place"), lease });
  return { claim: { turnId: compactionId, sessionId, node, fence: FENCE }, agent, seq: lastSeq, isFirst };
};

export const endCompaction: Rule<"endCompaction"> = (records, claim, { now, compacted }) => {
  const record = compactionOfClaim(records, claim);
  const session = record && records.sessions.at(record.ordinal, claim.sessionId);
  if (!record || !session) return false;
  const isFirst = records.firstInQueue(record.ordinal)?.place === record.place;
  if (compacted && isFirst) keepSummary(records, session, compacted, now);
  dropCompaction(records, record);
  return isFirst || compacted === undefined;
};

function keepSummary(records: Records, before: SessionRecord, compacted: Compacted, now: number): void {
  const { before: sizeBefore, after: sizeAfter, freedBytes, summary: text, outside, except } = compacted;
  const { ordinal, contextBytes } = before.session;
  const through = Math.max(compacted.through, records.summaries.find(ordinal)?.through ?? 0);
  records.summaries.put({ ordinal, summary: { text, outside }, through, except });
  const record: SessionRecord = {
    session: { ...before.session, contextBytes: contextBytes - freedBytes },
    compactedCount: before.compactedCount + sizeBefore.messages - sizeAfter.messages,
    headDueAt: 0,
  };
  const entry = { seq: NO_SEQ, at: now, turnId: "", name: "session.compacted" } as const;
  appendEntries(records, record, now, [{ ...entry, before: sizeBefore, after: sizeAfter }]);
}

export const readSummary: Rule<"readSummary"> = (records, sessionId) => {
  const found = records.sessions.find(sessionId);
  return found && records.summaries.find(found.session.ordinal)?.summary;
};

export function compactionOfClaim(records: Records, claim: Claim): CompactionRecord | undefined {
  const record = records.compactions.find(claim.turnId);
  return record && holds(claim, record.lease, FENCE) ? record : undefined;
}

/** Takes a compaction out of its session's queue, and lets the next begin. */
export function dropCompaction(records: Records, record: CompactionRecord): void {
  const isFirst = records.firstInQueue(record.ordinal)?.place === record.place;
  records.compactions.delete(record);
  if (isFirst) passOn(records, record.ordinal);
}
