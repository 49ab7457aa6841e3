import type { Store } from "#store/store.ts";
import { SESSION_BYTES, type SessionRow, TURN_BYTES } from "./rows.ts";
import type { State } from "./state.ts";
import { finish, requeue } from "./turns.ts";

/** How much a sweep does before it lets others run: about a millisecond. */
const SLICE = 500;

export const sweepMethod = (state: State): Pick<Store, "sweep" | "deleteSession"> => ({
  deleteSession: async (sessionId, now) => {
    const session = state.sessions.get(sessionId);
    if (session) forgetSession(state, session, now);
    return session !== undefined;
  },

  sweep: async ({ now, maxAttempts, lost, sessionsBefore, webhookSessionsBefore, usageBefore }) => {
    const time = state.clock.monotonic();
    for (const row of state.running) {
      if (row.leaseEnds > time) continue;
      if (row.attempt < maxAttempts) requeue(state, row, now, 0);
      else finish(state, row, { now, status: "failed", reply: "", error: lost, usage: undefined });
    }
    state.usage.forgetBefore(usageBefore);
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
    return false;
  },
});

const forgetSession = (state: State, session: SessionRow, now: number): void => {
  for (const row of [...session.queue].reverse()) {
    if (row.status === "queued")
      finish(state, row, { now, status: "cancelled", reply: "", error: undefined, usage: undefined });
  }
  session.gone = true;
  const running = session.queue[0];
  state.sessions.delete(session.sessionId);
  state.order.forget();
  state.orderOfAgent.get(session.agent)?.forget();
  state.bytes -= SESSION_BYTES + session.sessionId.length;
  for (const entry of session.entries) {
    if (entry.name === "message.created") state.bytes -= entry.text.length;
    if (entry.name === "message.completed") state.bytes -= entry.text.length;
    if (entry.name !== "turn.queued") continue;
    const row = state.turns.get(entry.turnId);
    if (!row) continue;
    state.turns.delete(entry.turnId);
    state.bytes -= TURN_BYTES;
    if (row.deliveryId) state.deliveries.eraseBody(row.deliveryId);
  }
  session.entries = [];
  if (running) {
    state.running.delete(running);
    if (running.deliveryId) state.deliveries.finish(running.deliveryId);
    for (const watcher of state.watchers) watcher.cancel(running.turnId);
  }
  for (const watcher of state.watchers) watcher.sessionDeleted(session.sessionId);
};
