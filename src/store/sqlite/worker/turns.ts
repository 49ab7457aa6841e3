import { GatewayError } from "#kit/errors.ts";
import { NOWHERE } from "#kit/tables.ts";
import { NO_USAGE } from "#kit/usages.ts";
import type { Claim, ClaimedTurn, ClaimRequest, Entry, Turn, TurnError, UsageRow } from "#store/store.ts";
import { turnOf } from "#store/views.ts";
import {
  claimEntries,
  type EndAnswer,
  type PackedEnd,
  type StartAnswer,
  type StartOrder,
  unpackEnd,
  unpackStart,
} from "../turn-orders.ts";
import { compactionOfClaim } from "./compactions.ts";
import { findEvents, takeEvents } from "./events.ts";
import { bookLate } from "./late-attempts.ts";
import { readEndedTurn } from "./read-turns.ts";
import { checkLimits, inOrder, type SessionRow, type TurnRow } from "./rows.ts";
import { append, forgetTold, type State, tell, tellCancel, tellOf } from "./state.ts";
import { cancelledAt, countUsage, finish, requeue } from "./turn-ends.ts";

/** The `seq` of an entry that has no place yet. */
export const NO_SEQ = 0;

export type ClaimOrder = Omit<ClaimRequest, "replyMessageId"> & {
  limit: number;
  /** How many of each agent may be claimed; of others none. */
  free: ReadonlyMap<string, number>;
  /** For the replies, as many as may be claimed. */
  messageIds: readonly string[];
};

export const turnMethods = {
  /** A repeat is answered with its turn. */
  startTurn: (state: State, packed: Parameters<typeof unpackStart>[0], time: number): StartAnswer | Turn => {
    const order = unpackStart(packed);
    const known = order.idempotency && replayOf(state, order.idempotency, order.now);
    return known ?? start(state, order, time);
  },

  claimTurns: (
    state: State,
    { limit, free, messageIds, ...request }: ClaimOrder,
    time: number,
  ): { turns: ClaimedTurn[]; nextDueInMs: number | undefined } => {
    const nextDueInMs = state.ready.wake(time);
    const mayBegin = new Map([...free].filter(([agent]) => !state.agents.isPaused(agent)));
    const rows = state.ready.take(Math.min(limit, messageIds.length), mayBegin);
    const turns = rows.map((row, n) => {
      const { session, seq } = row;
      const told = state.journal.entry(session.ordinal, seq - 1);
      const { text, outside, context } = told?.name === "message.created" ? told : NO_MESSAGE;
      append(state, session, claimRow(state, row, { ...request, replyMessageId: messageIds[n] as string }, time));
      tell(state, session);
      return claimedOf(row, { text, outside, context });
    });
    return { turns, nextDueInMs };
  },

  endTurn: (state: State, packed: PackedEnd): EndAnswer | false => {
    const { claim, end } = unpackEnd(packed);
    const row = rowOfClaim(state, claim);
    if (!row) {
      bookLate(state, claim, end);
      return false;
    }
    finish(state, row, end, "caller");
    const { agent, ordinal, contextBytes, lastSeq } = row.session;
    const { input, output, more } = row.usage ?? NO_USAGE;
    return [agent, ordinal, contextBytes, lastSeq, input, output, row.replyMessageId, more];
  },

  releaseTurn: (
    state: State,
    { claim, now, delayMs, usage }: { claim: Claim; now: number; delayMs: number; usage: UsageRow | undefined },
    time: number,
  ): boolean => {
    const row = rowOfClaim(state, claim);
    if (!row) {
      bookLate(state, claim, { now, usage });
      return false;
    }
    if (usage) {
      countUsage(state, row, now, usage);
      row.spentMs += usage.latencyMs;
    }
    requeue(state, row, now, delayMs > 0 ? time + delayMs : 0);
    return true;
  },

  cancelTurn: (state: State, { turnId, now }: { turnId: string; now: number }): Turn => {
    const row = state.turns.get(turnId);
    if (!row) throw notCancelled(turnId, readEndedTurn(state, turnId));
    if (row.status === "queued") {
      finish(state, row, cancelledAt(now));
    } else {
      row.cancelled = true;
      state.turns.touch(row);
      tellCancel(state, turnId);
    }
    return turnOf(row);
  },

  failQueuedTurns: (state: State, { agent, error, now }: { agent: string; error: TurnError; now: number }): number => {
    const rows = inOrder(state.turns.list().filter((row) => row.agent === agent && row.status === "queued"));
    for (const row of rows) finish(state, row, { now, status: "failed", reply: "", error, usage: undefined });
    return rows.length;
  },
};

/** Leases live as long as the process: nothing is written. */
export const extendClaims = (
  state: State,
  { claims, leaseMs }: { claims: readonly Claim[]; leaseMs: number },
  time: number,
): Claim[] => {
  const lost: Claim[] = [];
  for (const held of claims) {
    const row = rowOfClaim(state, held) ?? compactionOfClaim(state, held);
    if (row) row.leaseEnds = time + leaseMs;
    else lost.push(held);
  }
  return lost;
};

const NO_MESSAGE = { text: "", outside: false, context: undefined };

const notCancelled = (turnId: string, turn: Turn | undefined): GatewayError =>
  turn
    ? new GatewayError("turn-ended", `The turn is ${turn.status}.`, { turnId })
    : new GatewayError("turn-not-found", `No turn has the id ${turnId}.`);

export const replayOf = (state: State, { key, hash }: { key: string; hash: string }, now: number): Turn | undefined => {
  const known = state.idempotency.get(key);
  if (!known || known.expiresAt <= now) return undefined;
  if (known.hash !== hash || known.turnId === undefined) {
    throw new GatewayError("idempotency-mismatch", "The key was used with another body.");
  }
  const row = state.turns.get(known.turnId);
  const turn = row ? turnOf(row) : readEndedTurn(state, known.turnId);
  if (!turn) throw new GatewayError("turn-not-found", "The turn of this idempotency key is not kept any more.");
  return turn;
};

const start = (state: State, order: StartOrder, time: number): StartAnswer => {
  const { now, turnId, messageId, text, outside, context } = order;
  const known = state.sessions.get(order.session.sessionId);
  if (known && known.agent !== order.session.agent) {
    throw new GatewayError("session-conflict", `The session belongs to the agent ${known.agent}.`);
  }
  checkLimits(known, state.totals.counts, order.limits);
  const events = findEvents(state, order);
  const session = known ?? state.sessions.open(order.session, now);
  session.messageCount++;
  session.contextBytes += Buffer.byteLength(text);
  const row = newTurnRow(state, session, order);
  row.events = events;
  if (events) takeEvents(state, row);
  const isFirst = session.queue.length === 0;
  session.queue.push(row);
  state.turns.add(row);
  state.usage.message(now, row);
  if (order.idempotency) state.idempotency.keep(order.idempotency, { turnId, eventId: undefined });
  if (order.delivery) state.deliveries.add(order.delivery, order.recorder);
  const entries: Entry[] = [
    { seq: NO_SEQ, at: now, turnId, name: "message.created", messageId, role: "user", text, outside, context },
    { seq: NO_SEQ, at: now, turnId, name: "turn.queued" },
  ];
  const mayBegin = isFirst && !state.agents.isPaused(row.agent) && state.ready.isIdle(row.agent);
  const isClaimed = order.claim !== undefined && mayBegin;
  if (isClaimed && order.claim) for (const entry of claimRow(state, row, order.claim, time)) entries.push(entry);
  append(state, session, entries, true);
  forgetTold(state);
  if (isFirst && !isClaimed) {
    state.ready.push(row);
    tellOf(state, "work");
  }
  return [session.ordinal, session.contextBytes, row.seq, isClaimed];
};

const newTurnRow = (state: State, session: SessionRow, order: StartOrder): TurnRow => ({
  turnId: order.turnId,
  sessionId: session.sessionId,
  agent: session.agent,
  surface: order.surface,
  caller: order.caller,
  status: "queued",
  attempt: 0,
  createdAt: order.now,
  startedAt: undefined,
  endedAt: undefined,
  model: order.model,
  skillIds: order.skillIds,
  messageId: order.messageId,
  // Its `turn.queued` entry comes after its message.
  seq: session.lastSeq + 2,
  reply: undefined,
  error: undefined,
  usage: undefined,
  deliveryId: order.delivery?.[0],
  place: state.turns.nextPlace(),
  session,
  waited: order.waited,
  countedModel: order.countedModel,
  announce: order.announce,
  events: undefined,
  replyMessageId: "",
  spentMs: 0,
  leaseEnds: 0,
  due: 0,
  node: "",
  cancelled: false,
  at: NOWHERE,
  isDirty: false,
  isStored: false,
  isGone: false,
});

/** Claims a turn. The entries that tell of it are the caller's to append. */
const claimRow = (
  state: State,
  row: TurnRow,
  { now, node, leaseMs, replyMessageId }: ClaimRequest,
  time: number,
): Entry[] => {
  state.turns.move(row, "running");
  row.attempt++;
  row.startedAt = now;
  row.leaseEnds = time + leaseMs;
  row.due = 0;
  row.node = node;
  row.replyMessageId = replyMessageId;
  return claimEntries(row.turnId, now, row.attempt, replyMessageId, NO_SEQ);
};

/** A turn that was claimed just now. */
const claimedOf = (row: TurnRow, message: ClaimedTurn["message"]): ClaimedTurn => ({
  claim: { turnId: row.turnId, sessionId: row.sessionId, node: row.node, fence: row.attempt },
  turn: turnOf(row),
  message,
  replyMessageId: row.replyMessageId,
  replySeq: row.session.lastSeq,
  spentMs: row.spentMs,
  hops: row.announce?.hops ?? 0,
});

const rowOfClaim = (state: State, { turnId, node, fence }: Claim): TurnRow | undefined => {
  const row = state.turns.get(turnId);
  return row?.status === "running" && row.node === node && row.attempt === fence ? row : undefined;
};
