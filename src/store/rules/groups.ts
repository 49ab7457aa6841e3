/**
 * Groups of webhooks that become one turn. While its group is open, the turn is queued and due when the group closes. It has no place in its session's queue and
 * no entries in the journal yet, so it blocks no other turn.
 */
import type { Delivery, OpenGroup, TurnGroup, TurnOrder, TurnStart } from "#store/store.ts";
import { budgetsOfOrder } from "./budget-turns.ts";
import { eraseContent, storeDelivery } from "./deliveries.ts";
import { closeGroup, type GroupedTurn, isGrouped, noteOnFirst, stepOf } from "./group-ends.ts";
import { BEHIND_ALL } from "./group-records.ts";
import { storeKey } from "./keys.ts";
import { checkBytes } from "./limits.ts";
import { checkSession, newTurn } from "./new-turns.ts";
import { previewOf } from "./previews.ts";
import { isOpen, type OpenTurnRecord, type Records, type Rule } from "./records.ts";
import { newSession } from "./sessions.ts";
import { bytesOfTurn, checkBytesOfShare, countTurnBytes, countWaitingTurn } from "./shares.ts";

const BETWEEN_MESSAGES = "\n\n";
/** The joins of a group that its first delivery's timeline shows. The other steps need room, too. */
const MOST_JOINS_SHOWN = 100;
/** The joined deliveries that keep their content until they are erased with their turn. Each further join erases the content of the oldest one. */
const MOST_JOINS_STORED = 100;
/** The close of a group deletes its key. Until then no sweep may delete it: the clocks of gateways differ, and a reload may raise `maxWait`. */
const KEY_MARGIN_MS = 48 * 3_600_000;

/** Joins the open group of the key, or opens one. */
export function startInGroup(records: Records, order: TurnOrder, group: TurnGroup): TurnStart {
  const found = findGrouped(records, group.key);
  if (found?.turn.agent !== order.session.agent) return openGroup(records, order, group, undefined);
  const { time } = records.moment;
  const { dueAt = 0, group: before } = found.open;
  const isOver = Math.min(dueAt, before.began + group.maxWaitMs) <= time;
  const text = group.take === "all" ? before.text + BETWEEN_MESSAGES + order.text : order.text;
  const isTooLong = group.take === "all" && text.length > group.longestText;
  return isOver || isTooLong ? openGroup(records, order, group, found) : joinGroup(records, order, group, found, text);
}

/** The turn of the key's group that has not closed yet, though its time may be over. */
function findGrouped(records: Records, key: string): GroupedTurn | undefined {
  const turnId = records.keys.find(key)?.turnId;
  const record = turnId === undefined ? undefined : records.turns.find(turnId);
  return record && isOpen(record) && isGrouped(record) && record.open.group.key === key ? record : undefined;
}

/** `before` is the key's earlier group, which closes now. */
function openGroup(
  records: Records,
  order: TurnOrder,
  { key, windowMs, maxWaitMs }: TurnGroup,
  before: GroupedTurn | undefined,
): TurnStart {
  checkSession(records, records.sessions.find(order.session.sessionId), order);
  budgetsOfOrder(records, order);
  if (before) records.turns.put(closeGroup(records, before));
  const { now, turnId, text, outside, context, idempotency } = order;
  const known = records.sessions.find(order.session.sessionId);
  const { session, ...rest } = known ?? newSession(records, order);
  const bytes = bytesOfTurn(order, known === undefined);
  const queued = newTurn(records, order, { session, ...rest }, undefined, false, previewOf(text), undefined, bytes);
  const delayMs = Math.min(windowMs, maxWaitMs);
  const { time } = records.moment;
  const group = { key, began: time, requests: 1, text, outside, context };
  const record: OpenTurnRecord = {
    ...queued,
    turn: { ...queued.turn, seq: 0 },
    place: BEHIND_ALL + queued.place,
    open: { ...queued.open, dueAt: time + delayMs, group },
  };
  records.sessions.put({ session: { ...session, updatedAt: now, turnsQueued: session.turnsQueued + 1 }, ...rest });
  records.turns.put(record);
  records.agents.count(session.agent, { queued: 1, grouped: 1 });
  if (bytes !== undefined) countTurnBytes(records, record, bytes);
  countWaitingTurn(records, record, 1);
  storeKey(records, { key, hash: "", expiresAt: now + maxWaitMs + KEY_MARGIN_MS }, { turnId });
  if (idempotency) storeKey(records, idempotency, { turnId });
  if (order.delivery) {
    const steps = [...order.delivery.steps, stepOf(now, "group.opened", { closes_at: timestampOf(now + delayMs) })];
    storeOf(records, order, { ...order.delivery, steps }, record);
  }
  records.notify({ kind: "work", of: "turn", dueInMs: before ? 0 : delayMs });
  return { turn: record.turn, replayed: false, claimed: undefined };
}

/** `text` is the message with that of the order. */
function joinGroup(
  records: Records,
  order: TurnOrder,
  { key, windowMs, maxWaitMs }: TurnGroup,
  record: GroupedTurn,
  text: string,
): TurnStart {
  const { now, limits, model, skillIds, outside, context, idempotency, delivery } = order;
  const { turn, open } = record;
  checkBytes(records, limits.storeBytes);
  checkBytesOfShare(records, turn, limits);
  budgetsOfOrder(records, order);
  const { requests, ...before } = open.group;
  const { time } = records.moment;
  // The clock may have been set back while no process had the store.
  const began = Math.min(before.began, time);
  const dueAt = Math.min(time + windowMs, began + maxWaitMs);
  const group = { key, began, requests: requests + 1, text, outside: outside || before.outside, context };
  const added = (bytesOfMessage(group) - bytesOfMessage(before)) * (record.bytes === undefined ? 0 : 1);
  const joined: OpenTurnRecord = {
    ...record,
    turn: { ...turn, model, skillIds, preview: previewOf(text) },
    open: {
      ...open,
      countedModel: order.countedModel,
      announce: latestOf(open.announce, order.announce),
      dueAt,
      group,
    },
    ...(record.bytes !== undefined && { bytes: record.bytes + added }),
    ...(delivery && { joined: joinedWith(records, record.joined, delivery.deliveryId) }),
  };
  records.turns.put(joined);
  countTurnBytes(records, joined, added);
  const { turnId, deliveryId: first } = turn;
  const joinedBy = delivery?.deliveryId ?? "";
  if (idempotency) storeKey(records, idempotency, { turnId, deliveryId: joinedBy });
  if (delivery) {
    const detail = { turn_id: turnId, delivery_id: first ?? null, requests: group.requests };
    const steps = [...delivery.steps, stepOf(now, "request.coalesced", detail)];
    storeOf(records, order, { ...delivery, answer: "coalesced", steps }, joined, records.next("order"));
  }
  if (first !== undefined && requests <= MOST_JOINS_SHOWN) {
    const detail = { delivery_id: joinedBy, requests: group.requests, closes_at: timestampOf(now + dueAt - time) };
    noteOnFirst(records, first, stepOf(now, "group.joined", detail));
  }
  if (open.dueAt === undefined || dueAt < open.dueAt)
    records.notify({ kind: "work", of: "turn", dueInMs: dueAt - time });
  return { turn: joined.turn, replayed: false, claimed: undefined, joinedBy };
}

function joinedWith(records: Records, before: readonly string[] = [], deliveryId: string): readonly string[] {
  if (before.length < MOST_JOINS_STORED) return [...before, deliveryId];
  const [oldest, ...others] = before;
  eraseContent(records, oldest);
  return [...others, deliveryId];
}

function bytesOfMessage({ text, context = "" }: { text: string; context: string | undefined }): number {
  return Buffer.byteLength(text) + Buffer.byteLength(context);
}

/** The announcement of the last request. Loops are found by the most hops. */
function latestOf(before: TurnOrder["announce"], last: TurnOrder["announce"]): TurnOrder["announce"] {
  if (!before || before.hops <= (last?.hops ?? 0)) return last;
  return { channel: undefined, ...last, hops: before.hops };
}

function storeOf(
  records: Records,
  { recorder }: TurnOrder,
  delivery: Delivery,
  { turn: { turnId, sessionId, messageId, agent } }: OpenTurnRecord,
  endedOrder?: number,
): void {
  storeDelivery(records, delivery, { turnId, sessionId, messageId, agent }, recorder, endedOrder);
  records.notify({ kind: "recorded", deliveryId: delivery.deliveryId });
}

function timestampOf(time: number): string {
  return new Date(time).toISOString();
}

export const findGroup: Rule<"findGroup"> = (records, key, now): OpenGroup | undefined => {
  const found = findGrouped(records, key);
  const { time } = records.moment;
  if (!found || (found.open.dueAt ?? 0) <= time) return undefined;
  const { turnId, sessionId, deliveryId, createdAt: openedAt } = found.turn;
  const closesAt = now + (found.open.dueAt ?? 0) - time;
  return { turnId, sessionId, deliveryId, requests: found.open.group.requests, openedAt, closesAt };
};
