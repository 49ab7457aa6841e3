import type { Store } from "#store/store.ts";
import { noteEnd } from "./agent-counters.ts";
import { dropCompactionsOf, dropLostCompactions } from "./compactions.ts";
import type { SessionRow } from "./rows.ts";
import type { State } from "./state.ts";
import { cancelledAt, finish, requeue } from "./turn-ends.ts";

/** How much a sweep does before it lets others run: about a millisecond. */
const SLICE = 500;

export const sweepMethod = (state: State): Pick<Store, "sweep" | "deleteSession"> => ({
  deleteSession: async (sessionId, now) => {
    const session = state.sessions.get(sessionId);
    if (!session) return undefined;
    const turnsCancelled = session.queue.filter(({ status }) => status !== "compaction").length;
    forgetSession(state, session, now);
    return { turnsCancelled };
  },

  sweep: async ({ now, maxAttempts, lost, sessionsBefore, webhookSessionsBefore, usageBefore, gatewayBefore }) => {
    const time = state.clock.monotonic();
    for (const row of state.running.list()) {
      if (row.leaseEnds > time) continue;
      state.late.keep(row, time);
      if (row.attempt < maxAttempts || row.cancelled) requeue(state, row, now, 0);
      else finish(state, row, { now, status: "failed", reply: "", error: lost, usage: undefined });
    }
    dropLostCompactions(state, time);
    state.late.forgetBefore(time);
    state.usage.forgetBefore(usageBefore);
    state.gateway.forgetBefore(gatewayBefore);
    let left = SLICE;
    for (let row = state.idempotencyByAge.peek(); row && row.expiresAt <= now && left > 0; left--) {
      state.idempotencyByAge.shift();
      if (state.idempotency.get(row.key) === row) state.idempotency.delete(row.key);
      row = state.idempotencyByAge.peek();
    }
    const before = Math.max(sessionsBefore, webhookSessionsBefore);
    for (const session of state.order.after(state.sweptTo)) {
      if (left <= 0) return true;
      // Made after that time: the rows behind it are younger still.
      if (session.createdAt > before) break;
      left--;
      state.sweptTo = session.ordinal;
      const limit = session.sessionId.startsWith("webhook:") ? webhookSessionsBefore : sessionsBefore;
      if (session.updatedAt <= limit && session.queue.length === 0) forgetSession(state, session, now);
    }
    state.sweptTo = 0;
    return left <= 0;
  },
});

const forgetSession = (state: State, session: SessionRow, now: number): void => {
  dropCompactionsOf(state, session);
  for (const row of [...session.queue].reverse()) if (row.status === "queued") finish(state, row, cancelledAt(now));
  const running = session.queue.find((row) => row.status !== "compaction");
  if (running) {
    noteEnd(running, now, "cancelled", undefined);
    state.usage.turn(now, running, running.countedModel, "cancelled");
    state.late.keep(running, state.clock.monotonic());
    state.running.delete(running);
    state.active.delete(running.turnId);
    state.deliveries.finish(running.deliverySlot);
  }
  for (const { entry, queued } of state.logs.read(session, 0, Infinity)) {
    if (!queued) continue;
    state.index.delete(entry.turnId, { ordinal: session.ordinal, seq: entry.seq });
    if (queued.deliveryId) state.deliveries.eraseBody(queued.deliveryId);
  }
  state.logs.erase(session);
  state.summaries.forget(session.ordinal);
  session.gone = true;
  state.sessions.delete(session.sessionId);
  state.order.forget();
  state.orderOfAgent.get(session.agent)?.forget();
  if (running) for (const watcher of state.watchers) watcher.cancel(running.turnId);
  const end = { seq: session.lastSeq + 1, at: now };
  for (const watcher of state.watchers) watcher.sessionDeleted(session, end);
};
