import { GatewayError } from "#core/errors.ts";
import type {
  Claim,
  ClaimedTurn,
  ClaimRequest,
  Store,
  TurnEnd,
  TurnError,
  TurnOrder,
  TurnStart,
  UsageRow,
} from "#store/store.ts";
import { limitPassed, type SessionRow, TURN_BYTES, type TurnRow, turnOf } from "./rows.ts";
import { append, openSession, type State, tell, tellWork } from "./state.ts";
import type { Outcome } from "./usage-counters.ts";

type TurnMethods = Pick<
  Store,
  "startTurn" | "claimTurns" | "extendClaims" | "endTurn" | "releaseTurn" | "cancelTurn" | "failQueuedTurns" | "getTurn"
>;

const NO_USAGE = { input: 0, output: 0 };
const BUSY_HINT_MS = 1_000;

export const turnMethods = (state: State): TurnMethods => ({
  startTurn: async (order) => replayOf(state, order) ?? start(state, order),

  claimTurns: async ({ free, freeOf, newMessageId, ...request }) => {
    const nextDueInMs = state.ready.wake(state.clock.monotonic());
    const rows = state.ready.take(free, freeOf);
    return { turns: rows.map((row) => claim(state, row, { ...request, replyMessageId: newMessageId() })), nextDueInMs };
  },

  extendClaims: async (claims, leaseMs) => {
    const lost: Claim[] = [];
    for (const held of claims) {
      const row = rowOfClaim(state, held);
      if (row) row.leaseEnds = state.clock.monotonic() + leaseMs;
      else lost.push(held);
    }
    return lost;
  },

  endTurn: async (held, end) => {
    const row = rowOfClaim(state, held);
    if (row) finish(state, row, end);
    return row !== undefined;
  },

  releaseTurn: async (held, { now, delayMs, usage }) => {
    const row = rowOfClaim(state, held);
    if (!row) return false;
    if (usage) countUsage(state, row, now, usage, "released");
    requeue(state, row, now, delayMs);
    return true;
  },

  cancelTurn: async (turnId, now) => {
    const row = state.turns.get(turnId);
    if (!row) throw new GatewayError("turn-not-found", `no turn ${turnId}`);
    if (row.status === "running") {
      row.cancelled = true;
      for (const watcher of state.watchers) watcher.cancel(turnId);
    } else if (row.status === "queued") {
      finish(state, row, { now, status: "cancelled", reply: "", error: undefined, usage: undefined });
    } else {
      throw new GatewayError("turn-ended", `the turn is ${row.status}`, { turnId });
    }
    return turnOf(row);
  },

  failQueuedTurns: async (agent, error, now) => {
    const rows = [...state.turns.values()].filter((row) => row.agent === agent && row.status === "queued");
    for (const row of rows) finish(state, row, failedWith(error, now));
    return rows.length;
  },

  getTurn: async (turnId) => {
    const row = state.turns.get(turnId);
    return row && turnOf(row);
  },
});

const failedWith = (error: TurnError, now: number): TurnEnd => ({
  now,
  status: "failed",
  reply: "",
  error,
  usage: undefined,
});

const replayOf = (state: State, { idempotency, now }: TurnOrder): TurnStart | undefined => {
  const known = idempotency && state.idempotency.get(idempotency.key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== idempotency.hash)
    throw new GatewayError("idempotency-mismatch", "the key was used with another body");
  const row = state.turns.get(known.turnId);
  if (!row) throw new GatewayError("turn-not-found", "the turn of this idempotency key was deleted with its session");
  return { turn: turnOf(row), replayed: true, claimed: undefined };
};

const start = (state: State, order: TurnOrder): TurnStart => {
  const { now, turnId, text, outside } = order;
  const known = state.sessions.get(order.session.sessionId);
  if (known && known.agent !== order.session.agent) {
    throw new GatewayError("session-conflict", `the session belongs to the agent ${known.agent}`);
  }
  const passed = limitPassed(known, state.queued, state.bytes, order.limits);
  if (passed)
    throw new GatewayError(passed, undefined, passed === "session-full" ? {} : { retryAfterMs: BUSY_HINT_MS });

  const session = known ?? openSession(state, order.session, now);
  const { messageId } = order;
  const first = append(session, { at: now, turnId, name: "message.created", messageId, role: "user", text, outside });
  session.messageCount++;
  const row = queueTurn(state, session, order, append(session, { at: now, turnId, name: "turn.queued" }).seq);
  const next = session.queue.length === 1;
  const claimed = order.claim && next && state.ready.isIdle(row.agent) ? claimRow(state, row, order.claim) : undefined;
  tell(state, session, first.seq);
  if (next && !claimed) {
    state.ready.push(row);
    tellWork(state);
  }
  return { turn: turnOf(row), replayed: false, claimed };
};

const queueTurn = (state: State, session: SessionRow, order: TurnOrder, seq: number): TurnRow => {
  const { turnId, now, idempotency, delivery } = order;
  const row: TurnRow = {
    turnId,
    sessionId: session.sessionId,
    agent: session.agent,
    surface: order.surface,
    caller: order.caller,
    status: "queued",
    attempt: 0,
    createdAt: now,
    startedAt: undefined,
    endedAt: undefined,
    model: order.model,
    skillIds: order.skillIds,
    messageId: order.messageId,
    seq,
    reply: undefined,
    error: undefined,
    usage: undefined,
    deliveryId: delivery?.deliveryId,
    session,
    text: order.text,
    outside: order.outside,
    waited: order.waited,
    replyMessageId: "",
    replySeq: 0,
    leaseEnds: 0,
    node: "",
    cancelled: false,
    delayed: false,
  };
  state.turns.set(turnId, row);
  session.queue.push(row);
  session.turnsQueued++;
  state.queued++;
  state.bytes += TURN_BYTES + order.text.length;
  if (idempotency) {
    const kept = { ...idempotency, turnId };
    state.idempotency.set(kept.key, kept);
    state.idempotencyByAge.push(kept);
  }
  if (delivery) state.deliveries.add(delivery, true, order.recorder);
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
  append(session, { at: now, turnId, name: "turn.started", attempt: row.attempt });
  const created = { name: "message.created", role: "assistant", text: "", outside: false } as const;
  row.replyMessageId = replyMessageId;
  row.replySeq = append(session, { at: now, turnId, messageId: replyMessageId, ...created }).seq;
  return {
    claim: { turnId, sessionId: row.sessionId, node: request.node, fence: row.attempt },
    turn: turnOf(row),
    message: { text: row.text, outside: row.outside },
    replyMessageId,
    replySeq: row.replySeq,
  };
};

const claim = (state: State, row: TurnRow, request: ClaimRequest): ClaimedTurn => {
  const claimed = claimRow(state, row, request);
  tell(state, row.session, claimed.replySeq - 1);
  return claimed;
};

const rowOfClaim = (state: State, { turnId, node, fence }: Claim): TurnRow | undefined => {
  const row = state.turns.get(turnId);
  return row?.status === "running" && row.node === node && row.attempt === fence ? row : undefined;
};

/** Ends a queued or running turn, and makes the next of its session ready. */
export const finish = (state: State, row: TurnRow, { now, status, reply, error, usage }: TurnEnd): void => {
  const { session, turnId, replyMessageId: messageId } = row;
  const from = session.lastSeq + 1;
  if (row.status === "running") {
    if (status === "completed" || reply !== "") {
      append(session, { at: now, turnId, name: "message.completed", messageId, text: reply });
      session.messageCount++;
    }
    state.running.delete(row);
  } else {
    session.turnsQueued--;
    state.queued--;
  }
  if (usage) countUsage(state, row, now, usage, status);
  const used = row.usage ?? NO_USAGE;
  if (status === "completed") append(session, { at: now, turnId, name: "turn.completed", usage: used, reply });
  else if (status === "cancelled") append(session, { at: now, turnId, name: "turn.cancelled", usage: used, reply });
  else append(session, { at: now, turnId, name: "turn.failed", usage: used, error: error as TurnError });
  row.status = status;
  row.endedAt = now;
  row.reply = status === "completed" || reply !== "" ? reply : undefined;
  row.error = error;
  row.usage = used;
  state.bytes += reply.length;
  if (row.deliveryId) state.deliveries.finish(row.deliveryId);
  leaveQueue(state, row);
  if (!session.gone) tell(state, session, from);
};

/** Adds what an attempt used to its turn, its session and the counters. */
const countUsage = (state: State, row: TurnRow, now: number, used: UsageRow, outcome: Outcome): void => {
  const { input, output } = used.usage;
  row.usage = { input: (row.usage?.input ?? 0) + input, output: (row.usage?.output ?? 0) + output };
  row.session.usage.input += input;
  row.session.usage.output += output;
  state.usage.add(now, row, used, outcome);
};

const leaveQueue = (state: State, row: TurnRow): void => {
  const { queue } = row.session;
  const wasFirst = queue[0] === row;
  queue.splice(queue.indexOf(row), 1);
  const next = queue[0];
  if (!wasFirst || !next) return;
  state.ready.push(next);
  tellWork(state);
};

/** Gives a running turn back to the head of its session's queue. */
export const requeue = (state: State, row: TurnRow, now: number, delayMs: number): void => {
  const { session, turnId } = row;
  if (row.cancelled) {
    finish(state, row, { now, status: "cancelled", reply: "", error: undefined, usage: undefined });
    return;
  }
  state.running.delete(row);
  row.status = "queued";
  session.turnsQueued++;
  state.queued++;
  const entry = append(session, { at: now, turnId, name: "turn.queued" });
  if (delayMs > 0) state.ready.pushLater(row, state.clock.monotonic() + delayMs);
  else state.ready.push(row);
  tell(state, session, entry.seq);
  tellWork(state);
};
