import { GatewayError } from "#kit/errors.ts";
import type { BeatTask, ClaimedTurn, ClaimRequest, Entry, Lane, TurnOrder, TurnStart } from "#store/store.ts";
import { isPaused } from "./agents.ts";
import { beginWithBudgets, budgetsOfOrder, delayForBudget, withReservation } from "./budget-turns.ts";
import { findNoRoom, readyTurn } from "./budgets.ts";
import { storeDelivery } from "./deliveries.ts";
import { closeAllGroups, closeGroup, closeGroupsOver, isGrouped } from "./group-ends.ts";
import { startInGroup } from "./groups.ts";
import { appendEntries, NO_SEQ } from "./journal.ts";
import { findKey, storeKey } from "./keys.ts";
import { firstOf, laneOf, leaseFor, makeDueReady, timeUntilDue } from "./leases.ts";
import { refuse } from "./limits.ts";
import { checkSession, messageEntry, newTurn } from "./new-turns.ts";
import { extendOutgoing } from "./outbox.ts";
import { previewOf } from "./previews.ts";
import {
  isCompaction,
  isOpen,
  type OpenTurnRecord,
  type Records,
  type Rule,
  type SessionRecord,
  type TurnRecord,
} from "./records.ts";
import { newSession } from "./sessions.ts";
import { bytesOfTurn, countTurnBytes, countWaitingTurn } from "./shares.ts";
import { addUsed, cancelledAt, endOpenTurn, requeueTurn } from "./turn-ends.ts";
import { findTurn, turnOfClaim, withReply } from "./turn-lookup.ts";
import { countLateAttempt, countMessage, replyBytesOf } from "./usage.ts";

export const startTurn: Rule<"startTurn"> = (records, order) => startTurnWith(records, order, undefined);

/** Starts a turn, or one with a task. */
export function startTurnWith(records: Records, order: TurnOrder, task: BeatTask | undefined): TurnStart {
  const replay = order.idempotency && findReplay(records, order.idempotency, order.now);
  if (replay) return { replayed: true, claimed: undefined, ...replay };
  if (order.group) return startInGroup(records, order, order.group);
  const { now, turnId, text, idempotency, delivery, claim } = order;
  const known = records.sessions.find(order.session.sessionId);
  checkSession(records, known, order);
  const budgets = budgetsOfOrder(records, order);

  const isChanged = known && records.totals.open.grouped ? closeGroupsOver(records, known.session.ordinal) : false;
  const before = (isChanged ? records.sessions.find(order.session.sessionId) : known) ?? newSession(records, order);
  const { agent, ordinal } = before.session;
  const isFirst = records.turns.firstInQueue(ordinal) === undefined;
  const mayBegin = isFirst && claim !== undefined && !isPaused(records, agent) && !hasReady(records, agent);
  const noRoom = mayBegin ? findNoRoom(records, budgets) : undefined;
  const isClaimed = mayBegin && !noRoom;
  const preview = previewOf(text);
  const bytes = bytesOfTurn(order, known === undefined);
  const begun = newTurn(records, order, before, isClaimed ? claim : undefined, isFirst, preview, task, bytes);
  const queued: Entry = { seq: NO_SEQ, at: now, turnId, name: "turn.queued" };
  const entries = isClaimed
    ? [messageEntry(order), queued, startedEntry(begun), replyEntry(begun)]
    : [messageEntry(order), queued];
  const { sessionId, lastSeq, contextBytes } = appendEntries(records, before, now, entries, {
    messages: 1,
    bytes: Buffer.byteLength(text),
    queued: isClaimed ? 0 : 1,
    deliveryId: delivery?.deliveryId,
    preview,
  });
  const record =
    budgets.length === 0 ? begun : beginWithBudgets(records, begun, budgets, contextBytes, order.context, noRoom);
  records.turns.put(record);
  records.agents.count(agent, isClaimed ? { running: 1 } : { queued: 1 });
  if (bytes !== undefined) countTurnBytes(records, record, bytes);
  if (!isClaimed) countWaitingTurn(records, record, 1);
  countMessage(records, now, record.turn, order.countedModel);
  if (idempotency) storeKey(records, idempotency, { turnId });
  if (delivery) {
    storeDelivery(records, delivery, { turnId, sessionId, messageId: order.messageId, agent }, order.recorder);
  }
  if (isClaimed)
    return { turn: record.turn, replayed: false, claimed: claimedTurn(record, claim.node, order, lastSeq) };
  if (isFirst && !noRoom) records.notify({ kind: "work", of: "turn" });
  return { turn: record.turn, replayed: false, claimed: undefined };
}

export const findReplay: Rule<"findReplay"> = (records, key, now) => {
  const known = findKey(records, key, now, "turnId");
  if (known?.turnId === undefined) return undefined;
  const record = findTurn(records, known.turnId);
  if (!record) throw refuse("turn-not-found", "The turn of this idempotency key is no longer stored.");
  return { turn: withReply(records, record), joinedBy: known.deliveryId };
};

const WAITED_NEXT = ["waited", "other"] as const;
const OTHER_NEXT = ["other", "waited"] as const;

export const claimTurns: Rule<"claimTurns"> = (records, request) => {
  const { free, freeOf } = request;
  if (request.closesGroups) closeAllGroups(records);
  let nextDueInMs = makeDueReady(records, records.turns, (record: OpenTurnRecord) =>
    isGrouped(record) ? closeGroup(records, record) : readyTurn(records, record),
  );
  const freeOfAgents = new Map<string, number>();
  const freeToCompact = new Map<string, number>();
  for (const agent of records.turns.readyAgents()) {
    freeOfAgents.set(agent, isPaused(records, agent) ? 0 : freeOf(agent, "other"));
    freeToCompact.set(agent, freeOf(agent, "compact"));
  }
  const placesOf = (lane: Lane) => (lane === "compact" ? freeToCompact : freeOfAgents);
  const firstReady = (lane: Lane) => firstOf(placesOf(lane), (agent) => records.turns.firstReady(agent, lane), orderOf);
  const turns: ClaimedTurn[] = [];
  // No compaction becomes ready within a claim.
  let hasCompactions = true;
  let delayed = 0;
  let refusedBy: string[] | undefined;
  while (turns.length < free && delayed < DELAYED_AT_ONCE) {
    const lanes = records.bookmarks.isWaitedNext ? WAITED_NEXT : OTHER_NEXT;
    const compaction: OpenTurnRecord | undefined = hasCompactions ? firstReady("compact") : undefined;
    hasCompactions = compaction !== undefined;
    const record = compaction ?? firstReady(lanes[0]) ?? firstReady(lanes[1]);
    if (!record) break;
    const delay = delayForBudget(records, record, request.now);
    if (delay) {
      delayed++;
      if (delay.isEnded) refusedBy = [...(refusedBy ?? []), delay.budget];
      continue;
    }
    const { agent } = record.turn;
    const lane = laneOf(record.open);
    const places = placesOf(lane);
    if (lane !== "compact") records.setBookmarks({ isWaitedNext: lane === "other" });
    places.set(agent, (places.get(agent) ?? 0) - 1);
    turns.push(claimTurn(records, record, request, request.newMessageId()));
  }
  if (delayed > 0) nextDueInMs = timeUntilDue(records, records.turns);
  if (delayed === DELAYED_AT_ONCE) records.notify({ kind: "work", of: "turn" });
  return refusedBy ? { turns, nextDueInMs, refusedBy } : { turns, nextDueInMs };
};

/** The turns without room in a budget that one claim delays or ends. The next claim continues. */
const DELAYED_AT_ONCE = 64;

function hasReady(records: Records, agent: string): boolean {
  return (records.turns.firstReady(agent, "waited") ?? records.turns.firstReady(agent, "other")) !== undefined;
}

function orderOf({ open }: OpenTurnRecord): number {
  return open.readyOrder ?? Infinity;
}

type ClaimBy = Omit<ClaimRequest, "replyMessageId">;

function claimTurn(records: Records, queued: OpenTurnRecord, by: ClaimBy, replyMessageId: string): ClaimedTurn {
  const { ordinal } = queued;
  const { sessionId, agent, seq, deliveryId } = queued.turn;
  const record = withReservation(records, begun(records, queued, by, replyMessageId));
  if (isCompaction(record)) {
    records.turns.put(record);
    records.agents.count(agent, { compactions: -1 });
    return claimedTurn(record, by.node, NO_MESSAGE, 0);
  }
  const session = records.sessions.at(ordinal, sessionId) as SessionRecord;
  const entries = [startedEntry(record), replyEntry(record)];
  const { lastSeq } = appendEntries(records, session, by.now, entries, { queued: -1, deliveryId });
  records.turns.put(record);
  records.agents.count(agent, { queued: -1, running: 1 });
  countWaitingTurn(records, record, -1);
  return claimedTurn(record, by.node, messageBefore(records.journal(ordinal).after(seq - 2, 1)[0]), lastSeq);
}

/** A queued turn as it is once a node has claimed it. */
function begun(
  records: Records,
  queued: OpenTurnRecord,
  { now, node, leaseMs }: ClaimBy,
  replyMessageId: string,
): OpenTurnRecord {
  return {
    ...queued,
    turn: { ...queued.turn, status: "running", attempt: queued.turn.attempt + 1, startedAt: now },
    open: { ...queued.open, replyMessageId, readyOrder: undefined, lease: leaseFor(records, node, leaseMs) },
  };
}

function startedEntry({ turn: { turnId, attempt, startedAt: at = 0 } }: OpenTurnRecord): Entry {
  return { seq: NO_SEQ, at, turnId, name: "turn.started", attempt };
}

/** The entry that holds the reply's place in the journal until its text is stored. */
function replyEntry({ turn: { turnId, startedAt: at = 0 }, open: { replyMessageId } }: OpenTurnRecord): Entry {
  return {
    seq: NO_SEQ,
    at,
    turnId,
    name: "message.created",
    messageId: replyMessageId,
    role: "assistant",
    text: "",
    outside: false,
    context: undefined,
  };
}

const NO_MESSAGE: ClaimedTurn["message"] = { text: "", outside: false, context: undefined };

function claimedTurn(
  { turn, open }: OpenTurnRecord,
  node: string,
  { text, outside, context }: ClaimedTurn["message"],
  replySeq: number,
): ClaimedTurn {
  const claimed: ClaimedTurn = {
    claim: { turnId: turn.turnId, sessionId: turn.sessionId, node, fence: turn.attempt },
    turn,
    message: { text, outside, context },
    replyMessageId: open.replyMessageId,
    replySeq,
    spentMs: open.spentMs,
    hops: open.announce?.hops ?? 0,
    task: open.task,
  };
  if (open.reservation) claimed.hasBudget = true;
  if (open.groupedMs) claimed.groupedMs = open.groupedMs;
  return claimed;
}

/** The message of the turn whose `turn.queued` entry comes next. */
function messageBefore(entry: Entry | undefined): ClaimedTurn["message"] {
  if (entry?.name !== "message.created") return NO_MESSAGE;
  const { text, outside, context } = entry;
  return { text, outside, context };
}

export const extendClaims: Rule<"extendClaims"> = (records, claims, leaseMs) =>
  claims.filter((claim) => {
    const lease = leaseFor(records, claim.node, leaseMs);
    if (!("sessionId" in claim)) return !extendOutgoing(records, claim, lease);
    const record = turnOfClaim(records, claim);
    if (record) records.turns.put({ ...record, open: { ...record.open, lease } });
    return !record;
  });

export const endTurn: Rule<"endTurn"> = (records, claim, end) => {
  const record = turnOfClaim(records, claim);
  if (record) endOpenTurn(records, record, end);
  else countLateAttempt(records, claim, end, replyBytesOf(end));
  return record !== undefined;
};

export const releaseTurn: Rule<"releaseTurn"> = (records, claim, { now, delayMs, usage, replyBytes }) => {
  const held = turnOfClaim(records, claim);
  if (!held) {
    countLateAttempt(records, claim, { now, usage }, replyBytes);
    return false;
  }
  requeueTurn(records, usage ? addUsed(records, held, now, usage, replyBytes) : held, now, delayMs);
  return true;
};

export const cancelTurn: Rule<"cancelTurn"> = (records, turnId, now) => {
  const record = findTurn(records, turnId);
  if (!record) throw refuse("turn-not-found", `No turn has the id ${turnId}.`);
  const { turn } = record;
  if (!isOpen(record)) throw new GatewayError("turn-ended", `The turn is ${turn.status}.`, { turnId });
  if (turn.status === "queued") return endOpenTurn(records, record, cancelledAt(now));
  records.turns.put({ ...record, open: { ...record.open, isCancelled: true } });
  records.notify({ kind: "cancel", turnId });
  return turn;
};

export const failQueuedTurns: Rule<"failQueuedTurns"> = (records, agent, error, now) => {
  const queued = records.turns.open(agent).filter(({ turn }) => turn.status === "queued");
  for (const { turn } of queued.sort(bySession)) {
    // The end of one makes the next of its session ready.
    const record = records.turns.find(turn.turnId) as OpenTurnRecord;
    endOpenTurn(records, record, { now, status: "failed", reply: "", error, usage: undefined });
  }
  return queued.filter((record) => !isCompaction(record)).length;
};

/** Session by session as they were made, and in each in the order of its queue. */
export function bySession(a: TurnRecord, b: TurnRecord): number {
  return a.ordinal - b.ordinal || a.place - b.place;
}
