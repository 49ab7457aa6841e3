import type { Store, TurnError } from "#store/store.ts";
import { ageHeads } from "./ageing.ts";
import { dropCompactionsOf, dropLostCompactions } from "./compactions.ts";
import { eraseDelivery, finishDelivery } from "./deliveries.ts";
import { eraseJournal, eraseMore } from "./erasing.ts";
import { endEvents } from "./events.ts";
import { giveBackLost } from "./lost-turns.ts";
import type { SessionRow } from "./rows.ts";
import { type State, tellCancel, tellDeleted, tellGateway } from "./state.ts";
import { forgetInbound, freeLost } from "./sweep-inbound.ts";
import { cancelledAt, finish } from "./turn-ends.ts";

type SweepRequest = Parameters<Store["sweep"]>[0];

/** How much a sweep does before it lets others run: some milliseconds of the worker's time. */
const SLICE = 200;
const MINUTE = 60_000;
const START = { used: -1, ordinal: 0 };

export const sweepMethods = {
  deleteSession: (
    state: State,
    { sessionId, now }: { sessionId: string; now: number },
    time: number,
  ): { turnsCancelled: number } | undefined => {
    const session = state.sessions.get(sessionId);
    if (!session) return undefined;
    const turnsCancelled = session.queue.filter(({ status }) => status !== "compaction").length;
    forgetSession(state, session, now, time);
    return { turnsCancelled };
  },

  sweep: (state: State, request: SweepRequest, time: number): boolean => {
    const { now, sessionsBefore, webhookSessionsBefore } = request;
    giveBackLost(state, { ...request, time });
    dropLostCompactions(state, time);
    state.late.forgetBefore(time);
    freeLost(state, now, time);
    const before = { webhook: webhookSessionsBefore, other: sessionsBefore };
    // Each answers how much of the limit it used: all of it when there is more to do.
    const parts = [
      (limit: number) => forgetInbound(state, request, limit),
      (limit: number) => eraseMore(state, limit),
      (limit: number) => forgetUnused(state, "webhook", before.webhook, { now, time, limit }),
      (limit: number) => forgetUnused(state, "other", before.other, { now, time, limit }),
      (limit: number) => ageHeads(state, before, limit),
    ];
    // They take turns in going first: under load each of them can fill a slice, again and again.
    const first = state.sweeps.count++ % parts.length;
    let left = SLICE;
    for (const part of [...parts.slice(first), ...parts.slice(0, first)]) if (left > 0) left -= part(left);
    return left <= 0 || state.erasing.size > 0;
  },
};

/** Erases sessions that nobody used since `before`. */
const forgetUnused = (
  state: State,
  kind: "webhook" | "other",
  before: number,
  { now, time, limit }: { now: number; time: number; limit: number },
): number => {
  const places = state.sweeps.unused;
  const found = state.sessions.unused(kind === "webhook", places[kind], Math.floor(before / MINUTE), limit);
  let used = 0;
  for (const session of found) {
    if (used >= limit) return used;
    used++;
    places[kind] = { used: session.storedUse, ordinal: session.ordinal };
    const isUnfinished = session.queue.length > 0 || state.announcements.hasOf(session.ordinal);
    if (session.updatedAt <= before && !isUnfinished) used += forgetSession(state, session, now, time);
    else state.sessions.refile(session);
  }
  if (found.length === limit) return Math.max(used, limit);
  places[kind] = START;
  return used;
};

/** Why a turn that its session took along handled nothing. */
const ERASED: TurnError = { name: "turn-failed", detail: "Its session was deleted." };

/** Answers how many rows it erased. */
const forgetSession = (state: State, session: SessionRow, now: number, time: number): number => {
  dropCompactionsOf(state, session);
  for (const row of [...session.queue].reverse()) if (row.status === "queued") finish(state, row, cancelledAt(now));
  const [running] = session.queue;
  if (running && running.status !== "compaction") {
    state.agents.noteEnd(running, now, "cancelled", undefined);
    state.usage.turn(now, running, running.countedModel, "cancelled");
    state.late.keep(running, time);
    state.turns.delete(running);
    finishDelivery(state, running.deliveryId);
    eraseDelivery(state, running.deliveryId);
    endEvents(state, running, { now, status: "failed", error: ERASED });
  }
  state.announcements.forgetOf(session.ordinal);
  state.summaries.forget(session.ordinal);
  const erased = eraseJournal(state, session.ordinal);
  state.sessions.delete(session);
  tellGateway(state);
  if (running && running.status !== "compaction") tellCancel(state, running.turnId);
  tellDeleted(state, session, { seq: session.lastSeq + 1, at: now });
  return erased;
};
