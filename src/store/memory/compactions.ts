import { GatewayError } from "#kit/errors.ts";
import type { Claim, Store } from "#store/store.ts";
import { type CompactionRow, NO_SEQ, type QueueRow } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";
import { append, bytesOf, joinQueue, leaveQueue, type State, tell, tellWork } from "./state.ts";

const BUSY_HINT_MS = 1_000;
/** A compaction is claimed once, when it is queued. */
const FENCE = 1;

export const compactionMethods = (state: State): Pick<Store, "queueCompaction" | "endCompaction" | "readSummary"> => ({
  queueCompaction: async ({ sessionId, compactionId, node, leaseMs, limits }) => {
    const session = state.sessions.get(sessionId);
    if (!session) throw new GatewayError("session-not-found", `No session has the id ${sessionId}.`);
    const waiting = session.queue.filter(({ status }) => status !== "running").length;
    if (waiting >= limits.turnsPerSession) throw busy(`${waiting} turns and compactions wait in the session.`);
    const bytes = bytesOf(state);
    if (bytes >= limits.storeBytes) {
      const detail = `The store holds ${bytes} bytes, limits.storeBytes.`;
      throw new GatewayError("store-full", detail, { retryAfterMs: BUSY_HINT_MS });
    }
    const leaseEnds = state.clock.monotonic() + leaseMs;
    const row: CompactionRow = { status: "compaction", compactionId, session, node, leaseEnds };
    joinQueue(session, row);
    state.compactions.set(compactionId, row);
    const claim = { turnId: compactionId, sessionId, node, fence: FENCE };
    return { claim, agent: session.agent, seq: session.lastSeq, isFirst: session.queue[0] === row };
  },

  endCompaction: async (claim, { now, compacted }) => {
    const row = compactionOfClaim(state, claim);
    const session = row?.session;
    if (!row || !session) return false;
    const isFirst = session.queue[0] === row;
    if (compacted && isFirst) {
      const { before, after, freedBytes } = compacted;
      append(state, session, { seq: NO_SEQ, at: now, turnId: "", name: "session.compacted", before, after });
      state.summaries.put(session.ordinal, compacted);
      // It was looked at with the marks of the summary before.
      state.ageing = undefined;
      session.contextBytes -= freedBytes;
      session.compactedCount += before.messages - after.messages;
      tell(state, session);
    }
    leave(state, row);
    return isFirst || compacted === undefined;
  },

  readSummary: async (sessionId) => {
    const session = state.sessions.get(sessionId);
    return session && state.summaries.read(session.ordinal);
  },
});

const busy = (detail: string): GatewayError => new GatewayError("session-busy", detail, { retryAfterMs: BUSY_HINT_MS });

export const compactionOfClaim = (state: State, { turnId, node, fence }: Claim): CompactionRow | undefined => {
  const row = state.compactions.get(turnId);
  return row?.node === node && fence === FENCE ? row : undefined;
};

/** Lets who is first in a session's queue now begin. */
export const passOn = (state: State, next: QueueRow): void => {
  if (next.status === "compaction") {
    for (const watcher of state.watchers) watcher.compaction(next.compactionId);
  } else {
    state.ready.push(next);
    tellWork(state);
  }
};

const leave = (state: State, row: CompactionRow): void => {
  state.compactions.delete(row.compactionId);
  const next = leaveQueue(row.session, row);
  if (next) passOn(state, next);
};

/** Those whose node has let their lease end must not hold up their session. */
export const dropLostCompactions = (state: State, time: number): void => {
  for (const row of state.compactions.values()) if (row.leaseEnds <= time) leave(state, row);
};

/** Those of a session that is about to be erased. Nobody is told but by the session's end. */
export const dropCompactionsOf = (state: State, session: SessionRow): void => {
  const places = session.queue.filter((row) => row.status === "compaction");
  if (places.length === 0) return;
  session.queue = session.queue.filter((row) => row.status !== "compaction");
  for (const { compactionId } of places) state.compactions.delete(compactionId);
};
