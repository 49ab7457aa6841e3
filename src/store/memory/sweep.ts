import type { Store, TurnError } from "#store/store.ts";
import { ageHead } from "./ageing.ts";
import { noteEnd } from "./agent-counters.ts";
import { tellAnnouncement } from "./announcements.ts";
import { freeLostBeats } from "./beats.ts";
import { dropCompactionsOf, dropLostCompactions } from "./compactions.ts";
import { KEPT } from "./delivery-codec.ts";
import { eraseLog, eraseMore } from "./erasing.ts";
import { endEvents } from "./events.ts";
import { bySession, type TurnRow } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";
import { type State, tellGateway } from "./state.ts";
import { cancelledAt, finish, requeue } from "./turn-ends.ts";

/** How much a sweep does before it lets others run: about a millisecond. */
const SLICE = 500;
/** So many entries are as much work to look at, and to erase, as another record. */
const ENTRIES_A_STEP = 8;

export const sweepMethod = (state: State): Pick<Store, "sweep" | "deleteSession"> => ({
  deleteSession: async (sessionId, now) => {
    const session = state.sessions.get(sessionId);
    if (!session) return undefined;
    const turnsCancelled = session.queue.filter(({ status }) => status !== "compaction").length;
    forgetSession(state, session, now);
    return { turnsCancelled };
  },

  sweep: async ({
    now,
    maxAttempts,
    lost,
    sessionsBefore,
    webhookSessionsBefore,
    usageBefore,
    gatewayBefore,
    eventsBefore,
    keysBefore,
  }) => {
    const time = state.clock.monotonic();
    const isLost = ({ leaseEnds }: TurnRow) => leaseEnds <= time;
    for (const row of state.running.list().filter(isLost).sort(bySession)) {
      state.late.keep(row, time);
      if (row.attempt < maxAttempts || row.cancelled) requeue(state, row, now, 0);
      else finish(state, row, { now, status: "failed", reply: "", error: lost, usage: undefined });
    }
    dropLostCompactions(state, time);
    freeLostBeats(state, time);
    if (state.announcements.freeLost(time)) tellAnnouncement(state);
    state.late.forgetBefore(time);
    state.usage.forgetBefore(usageBefore);
    state.gateway.forgetBefore(gatewayBefore);
    let left = SLICE;
    left -= eraseMore(state, left);
    left -= state.idempotency.forgetUntil(keysBefore, Math.max(left, 0));
    left -= state.events.forgetBefore(eventsBefore, Math.max(left, 0));
    const before = Math.max(sessionsBefore, webhookSessionsBefore);
    for (const slot of state.order.after(state.sweptTo)) {
      const session = state.sessions.at(slot);
      if (left <= 0) return true;
      // Made after that time: the rows behind it are younger still.
      if (session.createdAt > before) break;
      left--;
      const limit = session.sessionId.startsWith("webhook:") ? webhookSessionsBefore : sessionsBefore;
      const isUnfinished = session.queue.length > 0 || state.announcements.has(session);
      if (session.updatedAt <= limit && !isUnfinished) {
        left -= forgetSession(state, session, now) / ENTRIES_A_STEP;
      } else if (session.compactedCount > 0 && state.summaries.mayErase(session.ordinal, limit)) {
        left -= ageHead(state, session, limit, left * ENTRIES_A_STEP) / ENTRIES_A_STEP;
        // There is more of it: the next slice goes on with it.
        if (state.ageing) return true;
      }
      state.sweptTo = session.ordinal;
    }
    state.sweptTo = 0;
    return left <= 0 || state.erasing.size > 0;
  },
});

/** Why a turn that its session took along handled nothing. */
const ERASED: TurnError = { name: "turn-failed", detail: "Its session was deleted." };

/** Answers how many entries it erased. */
const forgetSession = (state: State, session: SessionRow, now: number): number => {
  dropCompactionsOf(state, session);
  for (const row of [...session.queue].reverse()) if (row.status === "queued") finish(state, row, cancelledAt(now));
  const running = session.queue.find((row) => row.status !== "compaction");
  if (running) {
    noteEnd(running, now, "cancelled", undefined);
    state.usage.turn(now, running, running.countedModel, "cancelled");
    state.late.keep(running, state.clock.monotonic());
    state.running.delete(running);
    state.active.delete(running.turnId);
    state.deliveries.finish(running.deliverySlot, KEPT.cancelled);
    endEvents(state, running, { now, status: "failed", error: ERASED });
  }
  state.announcements.forgetOf(session);
  state.summaries.forget(session.ordinal);
  const { sessionId, agent, ordinal, contextBytes, lastSeq } = session;
  const erased = eraseLog(state, session);
  state.order.delete(ordinal);
  state.orderOfAgent.get(agent)?.delete(ordinal);
  state.sessions.delete(session);
  tellGateway(state);
  if (running) for (const watcher of state.watchers) watcher.cancel(running.turnId);
  const end = { seq: lastSeq + 1, at: now };
  for (const watcher of state.watchers) watcher.sessionDeleted({ sessionId, agent, ordinal, contextBytes }, end);
  return erased;
};
