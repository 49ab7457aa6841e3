import { GatewayError } from "#kit/errors.ts";
import type { Claim, ClaimedTurn, ClaimRequest, Entry, Store, Turn, TurnOrder, TurnStart } from "#store/store.ts";
import { turnOf } from "#store/views.ts";
import { compactionOfClaim } from "./compactions.ts";
import { findEvents, takeEvents } from "./events.ts";
import { bookLate } from "./late-attempts.ts";
import { bySession, limitPassed, NO_SEQ, newTurnRow, type TakenEvents, type TurnRow } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";
import {
  append,
  bytesOf,
  joinQueue,
  openSession,
  readEndedTurn,
  type State,
  sessionOfTurn,
  tell,
  tellWork,
} from "./state.ts";
import { cancelledAt, countUsage, finish, requeue } from "./turn-ends.ts";

type TurnMethods = Pick<
  Store,
  | "startTurn"
  | "findReplay"
  | "claimTurns"
  | "extendClaims"
  | "endTurn"
  | "releaseTurn"
  | "cancelTurn"
  | "failQueuedTurns"
  | "getTurn"
>;

const BUSY_HINT_MS = 1_000;

export const turnMethods = (state: State): TurnMethods => ({
  startTurn: (order) => {
    const turn = order.idempotency && replayOf(state, order.idempotency, order.now);
    if (turn) return { turn, replayed: true, claimed: undefined };
    return order.events ? startWithEvents(state, order, order.events) : start(state, order, undefined);
  },

  findReplay: async (key, now) => replayOf(state, key, now),

  claimTurns: async ({ free, freeOf, newMessageId, ...request }) => {
    const nextDueInMs = state.ready.wake(state.clock.monotonic());
    const rows = state.ready.take(free, (agent) => (isPaused(state, agent) ? 0 : freeOf(agent)));
    return { turns: rows.map((row) => claim(state, row, { ...request, replyMessageId: newMessageId() })), nextDueInMs };
  },

  extendClaims: async (claims, leaseMs) => {
    const lost: Claim[] = [];
    for (const held of claims) {
      const row = rowOfClaim(state, held) ?? compactionOfClaim(state, held);
      if (row) row.leaseEnds = state.clock.monotonic() + leaseMs;
      else lost.push(held);
    }
    return lost;
  },

  endTurn: (held, end) => {
    const row = rowOfClaim(state, held);
    if (row) finish(state, row, end);
    else bookLate(state, held, end);
    return row !== undefined;
  },

  releaseTurn: (held, { now, delayMs, usage }) => {
    const row = rowOfClaim(state, held);
    if (!row) {
      bookLate(state, held, { now, usage });
      return false;
    }
    if (usage) {
      countUsage(state, row, now, usage);
      row.spentMs += usage.latencyMs;
    }
    requeue(state, row, now, delayMs);
    return true;
  },

  cancelTurn: async (turnId, now) => {
    const row = state.active.get(turnId);
    if (!row) throw notCancelled(turnId, readEndedTurn(state, turnId));
    if (row.status === "queued") {
      finish(state, row, cancelledAt(now));
    } else {
      row.cancelled = true;
      for (const watcher of state.watchers) watcher.cancel(turnId);
    }
    return turnOf(row);
  },

  failQueuedTurns: async (agent, error, now) => {
    const rows = state.active.values().filter((row) => row.agent === agent && row.status === "queued");
    rows.sort(bySession);
    for (const row of rows) finish(state, row, { now, status: "failed", reply: "", error, usage: undefined });
    return rows.length;
  },

  getTurn: async (turnId) => {
    const row = state.active.get(turnId);
    return row ? turnOf(row) : readEndedTurn(state, turnId);
  },
});

const notCancelled = (turnId: string, turn: Turn | undefined): GatewayError =>
  turn
    ? new GatewayError("turn-ended", `The turn is ${turn.status}.`, { turnId })
    : new GatewayError("turn-not-found", `No turn has the id ${turnId}.`);

const replayOf = (state: State, { key, hash }: { key: string; hash: string }, now: number): Turn | undefined => {
  const known = state.idempotency.get(key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== hash || known.turnId === undefined)
    throw new GatewayError("idempotency-mismatch", "The key was used with another body.");
  const row = state.active.get(known.turnId);
  const turn = row ? turnOf(row) : readEndedTurn(state, known.turnId);
  if (!turn) throw new GatewayError("turn-not-found", "The turn of this idempotency key is not kept any more.");
  return turn;
};

/**
 * What a turn with events does more stands outside of what every turn runs through: compiled code that meets a branch for the first time
 * is thrown away, and an agent's first beat would slow all calls down for as long as it takes to compile them again.
 */
const startWithEvents = (state: State, order: TurnOrder, wanted: NonNullable<TurnOrder["events"]>): TurnStart => {
  const events = findEvents(state, order.session.agent, wanted);
  const started = start(state, order, events);
  takeEvents(state, state.active.get(order.turnId) as TurnRow, events);
  return started;
};

const start = (state: State, order: TurnOrder, events: TakenEvents | undefined): TurnStart => {
  const { now, turnId, text, outside } = order;
  const known = state.sessions.get(order.session.sessionId);
  if (known && known.agent !== order.session.agent) {
    throw new GatewayError("session-conflict", `The session belongs to the agent ${known.agent}.`);
  }
  const passed = limitPassed(known, state.queued, bytesOf(state), order.limits);
  if (passed) {
    throw new GatewayError(
      passed.name,
      passed.detail,
      passed.name === "session-full" ? {} : { retryAfterMs: BUSY_HINT_MS },
    );
  }
  const session = known ?? openSession(state, order.session, now);
  const { messageId } = order;
  const bytes = Buffer.byteLength(text);
  const asked: Entry = {
    seq: NO_SEQ,
    at: now,
    turnId,
    name: "message.created",
    messageId,
    role: "user",
    text,
    outside,
    context: order.context,
  };
  append(state, session, asked, undefined, false, bytes);
  session.messageCount++;
  session.contextBytes += bytes;
  const row = queueTurn(state, session, order, events);
  const next = session.queue.length === 1;
  const mayBegin = next && row.counts.pausedAt === undefined && state.ready.isIdle(row.agent);
  const claimed = order.claim && mayBegin ? claimRow(state, row, order.claim) : undefined;
  const turn = claimed?.turn ?? turnOf(row);
  tell(state, session);
  if (next && !claimed) {
    state.ready.push(row);
    tellWork(state);
  }
  return { turn, replayed: false, claimed };
};

const queueTurn = (state: State, session: SessionRow, order: TurnOrder, events: TakenEvents | undefined): TurnRow => {
  const { turnId, now: at, idempotency, delivery, surface, caller, model, skillIds, messageId } = order;
  const queued = { surface, caller, model, skillIds, messageId, deliveryId: delivery?.deliveryId };
  const { seq } = append(state, session, { seq: NO_SEQ, at, turnId, name: "turn.queued" }, queued);
  const place = { ordinal: session.ordinal, seq };
  const number = state.turnLog.push(place, (older) => sessionOfTurn(state, older) !== undefined);
  const row = newTurnRow(session, order, { seq, number, events, counts: state.agents.of(session.agent) });
  state.active.set(turnId, row);
  state.index.add(turnId, place);
  joinQueue(session, row);
  session.turnsQueued++;
  state.queued++;
  row.counts.queued++;
  state.usage.message(at, row);
  if (idempotency) state.idempotency.keep(idempotency, { turnId, eventId: undefined });
  if (delivery) {
    row.deliverySlot = state.deliveries.addOfTurn(delivery, order.recorder, turnId, session.sessionId);
  }
  return row;
};

/** Claims a turn whose entries nobody was told of yet. */
const claimRow = (state: State, row: TurnRow, request: ClaimRequest): ClaimedTurn => {
  const { session, turnId } = row;
  const { now, replyMessageId } = request;
  row.status = "running";
  row.attempt++;
  row.startedAt = now;
  row.leaseEnds = state.clock.monotonic() + request.leaseMs;
  row.node = request.node;
  session.turnsQueued--;
  state.queued--;
  state.running.add(row);
  row.counts.queued--;
  row.counts.running++;
  append(state, session, { seq: NO_SEQ, at: now, turnId, name: "turn.started", attempt: row.attempt });
  row.replyMessageId = replyMessageId;
  const replySeq = append(state, session, {
    seq: NO_SEQ,
    at: now,
    turnId,
    name: "message.created",
    messageId: replyMessageId,
    role: "assistant",
    text: "",
    outside: false,
    context: undefined,
  }).seq;
  return {
    claim: { turnId, sessionId: row.sessionId, node: request.node, fence: row.attempt },
    turn: turnOf(row),
    message: { text: row.text, outside: row.outside, context: row.context },
    replyMessageId,
    replySeq,
    spentMs: row.spentMs,
    hops: row.announce?.hops ?? 0,
  };
};

const claim = (state: State, row: TurnRow, request: ClaimRequest): ClaimedTurn => {
  const claimed = claimRow(state, row, request);
  tell(state, row.session);
  return claimed;
};

const isPaused = (state: State, agent: string): boolean => state.agents.read(agent).pausedAt !== undefined;

const rowOfClaim = (state: State, { turnId, node, fence }: Claim): TurnRow | undefined => {
  const row = state.active.get(turnId);
  return row?.status === "running" && row.node === node && row.attempt === fence ? row : undefined;
};
