import { GatewayError } from "#kit/errors.ts";
import type { Claim, Compacted, CompactionOrder, CompactionPlace, Summary } from "#store/store.ts";
import { busy, bytesOfLimit, type CompactionRow, checkBytes, type QueueRow, type SessionRow } from "./rows.ts";
import { append, type State, tell, tellCompaction, tellOf } from "./state.ts";
import { leaveQueue } from "./turn-ends.ts";

/** A compaction is claimed once, when it is queued. */
const FENCE = 1;
const NO_SEQ = 0;

export const compactionMethods = {
  queueCompaction: (state: State, order: CompactionOrder, time: number): CompactionPlace => {
    const { sessionId, compactionId, node, leaseMs, limits } = order;
    const session = state.sessions.get(sessionId);
    if (!session) throw new GatewayError("session-not-found", `No session has the id ${sessionId}.`);
    const waiting = session.queue.filter(({ status }) => status !== "running").length;
    if (waiting >= limits.turnsPerSession) {
      throw busy("session-busy", `${waiting} turns and compactions wait in the session.`);
    }
    checkBytes(bytesOfLimit(state.totals.counts), limits.storeBytes);
    const row: CompactionRow = { status: "compaction", compactionId, session, node, leaseEnds: time + leaseMs };
    session.queue.push(row);
    state.compactions.set(compactionId, row);
    const claim = { turnId: compactionId, sessionId, node, fence: FENCE };
    return { claim, agent: session.agent, seq: session.lastSeq, isFirst: session.queue[0] === row };
  },

  endCompaction: (
    state: State,
    { claim, now, compacted }: { claim: Claim; now: number; compacted: Compacted | undefined },
  ): boolean => {
    const row = compactionOfClaim(state, claim);
    if (!row) return false;
    const { session } = row;
    const isFirst = session.queue[0] === row;
    if (compacted && isFirst) {
      const { before, after, freedBytes } = compacted;
      session.contextBytes -= freedBytes;
      session.compactedCount += before.messages - after.messages;
      session.head = 0;
      state.summaries.put(session.ordinal, compacted);
      append(state, session, [{ seq: NO_SEQ, at: now, turnId: "", name: "session.compacted", before, after }]);
      tell(state, session);
    }
    leave(state, row);
    return isFirst || compacted === undefined;
  },
};

export const readSummary = (state: State, sessionId: string): Summary | undefined => {
  const session = state.sessions.get(sessionId);
  return session && state.summaries.read(session.ordinal);
};

export const compactionOfClaim = (state: State, { turnId, node, fence }: Claim): CompactionRow | undefined => {
  const row = state.compactions.get(turnId);
  return row?.node === node && fence === FENCE ? row : undefined;
};

/** Lets who is first in a session's queue now begin. */
export const passOn = (state: State, next: QueueRow): void => {
  if (next.status === "compaction") {
    tellCompaction(state, next.compactionId);
  } else {
    state.ready.push(next);
    tellOf(state, "work");
  }
};

const leave = (state: State, row: CompactionRow): void => {
  state.compactions.delete(row.compactionId);
  const next = leaveQueue(row);
  if (next) passOn(state, next);
};

/** Those whose node has let their lease end must not hold up their session. */
export const dropLostCompactions = (state: State, time: number): void => {
  for (const row of state.compactions.values()) if (row.leaseEnds <= time) leave(state, row);
};

/** Those of a session that is about to be erased. Nobody is told but by the session's end. */
export const dropCompactionsOf = (state: State, session: SessionRow): void => {
  for (const row of session.queue) if (row.status === "compaction") state.compactions.delete(row.compactionId);
  session.queue = session.queue.filter(({ status }) => status !== "compaction");
};
