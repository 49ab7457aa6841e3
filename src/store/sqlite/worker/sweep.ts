import type { Store, TurnError } from "#store/store.ts";
import { ageHeads } from "./ageing.ts";
import { dropCompactionsOf, dropLostCompactions } from "./compactions.ts";
import { eraseDelivery, finishDelivery } from "./deliveries.ts";
import { eraseJournal, eraseMore } from "./erasing.ts";
import { endEvents } from "./events.ts";
import { giveBackLost } from "./lost-turns.ts";
import type { SessionRow } from "./rows.ts";
import { type State, tellCancel, tellDeleted, tellGateway } from "./state.ts";
import { sweepInbound } from "./sweep-inbound.ts";
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
    let left = SLICE;
    left -= sweepInbound(state, request, { time, limit: left });
    left -= eraseMore(state, Math.max(left, 0));
    left = forgetUnused(state, "webhook", webhookSessionsBefore, { now, time, left });
    left = forgetUnused(state, "other", sessionsBefore, { now, time, left });
    if (left > 0) left -= ageHeads(state, { webhook: webhookSessionsBefore, other: sessionsBefore }, left);
    return left <= 0 || state.erasing.size > 0;
  },
};

/** Sessions that nobody used since `before`. Answers how much of the slice is left; none when it is to go on. */
const forgetUnused = (
  state: State,
  kind: "webhook" | "other",
  before: number,
  { now, time, left }: { now: number; time: number; left: number },
): number => {
  if (left <= 0) return left;
  const places = state.sweeps.unused;
  const found = state.sessions.unused(kind === "webhook", places[kind], Math.floor(before / MINUTE), left);
  let rest = left;
  for (const session of found) {
    if (rest <= 0) return 0;
    rest--;
    places[kind] = { used: session.storedUse, ordinal: session.ordinal };
    const isUnfinished = session.queue.length > 0 || state.announcements.hasOf(session.ordinal);
    if (session.updatedAt <= before && !isUnfinished) rest -= forgetSession(state, session, now, time);
    else state.sessions.refile(session);
  }
  if (found.length < left) places[kind] = START;
  return found.length < left ? rest : 0;
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
