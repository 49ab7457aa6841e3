/** The outbox: messages to endpoints outside, each in the queue of its endpoint until it ends. */
import type {
  ClaimedMessage,
  Outgoing,
  OutgoingClaim,
  OutgoingNotification,
  OutgoingReply,
  OutgoingResult,
  TurnAnnouncement,
} from "#store/store.ts";
import { addDeliveryStep, notifyOutcome } from "./deliveries.ts";
import { firstOf, holds, leaseFor, makeDueReady, withoutLease } from "./leases.ts";
import { eventIdOf, noteEvent, putEnded } from "./notifications.ts";
import { isReply } from "./outgoing.ts";
import type { Lease, OutgoingRecord, Records, Rule } from "./records.ts";
import { findTurn } from "./turn-lookup.ts";

export const claimOutgoing: Rule<"claimOutgoing"> = (records, { node, leaseMs, free, others, before = {} }) => {
  const ready = (record: OutgoingRecord) => ({ ...record, dueAt: undefined, place: placeOf(records, record) });
  const nextDueInMs = makeDueReady(records, records.outgoing, ready);
  const freeOfEndpoints = new Map<string, number>();
  for (const endpoint of records.outgoing.readyEndpoints()) {
    freeOfEndpoints.set(endpoint, free[endpoint] ?? others.free);
  }
  const firstReady = (endpoint: string) => {
    const first = records.outgoing.firstReady(endpoint);
    const bound = before[endpoint] ?? (endpoint in free ? Number.POSITIVE_INFINITY : others.before);
    return first && first.message.createdAt < bound ? first : undefined;
  };
  const claimed: ClaimedMessage[] = [];
  for (;;) {
    const record = firstOf(freeOfEndpoints, firstReady, ({ place }) => place);
    if (!record) return { claimed, nextDueInMs };
    const { message } = record;
    const { id, endpoint } = message;
    freeOfEndpoints.set(endpoint, (freeOfEndpoints.get(endpoint) ?? 0) - 1);
    // A new fence, because a late end of an earlier message with this id may still arrive.
    const fence = records.next("order");
    records.outgoing.put({ ...record, fence, lease: leaseFor(records, node, leaseMs) });
    claimed.push({ claim: { id, node, fence }, message });
  }
};

/** The place of a message that is retried. A notification goes behind all waiting ones, so a permanently failing one does not delay the others. */
function placeOf(records: Records, { message, place }: OutgoingRecord): number {
  return isReply(message) ? place : records.next("place");
}

export function extendOutgoing(records: Records, claim: OutgoingClaim, lease: Lease): boolean {
  const record = messageOfClaim(records, claim);
  if (record) records.outgoing.put({ ...record, lease });
  return record !== undefined;
}

export const endOutgoing: Rule<"endOutgoing"> = (records, claim, end) => {
  const record = messageOfClaim(records, claim);
  if (!record) return false;
  const { message } = record;
  records.outgoing.delete(record);
  const tried = { ...message, attempts: message.attempts + (end.isUnsent ? 0 : 1) };
  showAttempt(records, tried, end, undefined);
  if (isReply(tried) && end.state === "failed") noteDead(records, tried, end, record.place);
  return true;
};

export const releaseOutgoing: Rule<"releaseOutgoing"> = (records, claim, { delayMs, ...result }) => {
  const record = messageOfClaim(records, claim);
  if (!record) return false;
  const message = { ...record.message, attempts: record.message.attempts + (result.isUnsent ? 0 : 1) };
  records.outgoing.put({ ...record, message, ...withoutLease(records, delayMs) });
  records.notify({ kind: "work", of: "outgoing" });
  showAttempt(records, message, result, delayMs);
  return true;
};

function messageOfClaim(records: Records, claim: OutgoingClaim): OutgoingRecord | undefined {
  const record = records.outgoing.find(claim.id);
  return record && holds(claim, record.lease, record.fence) ? record : undefined;
}

function showAttempt(records: Records, message: Outgoing, result: OutgoingResult, delayMs: number | undefined): void {
  if (isReply(message)) showReply(records, message, result);
  else showNotification(records, message, result, delayMs);
}

/** Sets the result on the notification. Without `delayMs`, it has ended. */
function showNotification(
  records: Records,
  { id, attempts }: OutgoingNotification,
  { state, reason, code, isUnsent }: OutgoingResult,
  delayMs: number | undefined,
): void {
  const record = records.notifications.find(id);
  if (!record) return;
  const { now } = records.moment;
  const shown = state && { state, reason, code: isUnsent ? record.notification.code : code };
  const nextAt = state === "retrying" && delayMs !== undefined ? now + delayMs : undefined;
  const notification = { ...record.notification, ...shown, attempts, nextAt };
  if (delayMs === undefined) putEnded(records, record, { ...notification, endedAt: now });
  else records.notifications.put({ ...record, notification });
}

/** Notifies endpoints of a reply that failed. A reply that is announced again has another `place`. */
function noteDead(records: Records, reply: OutgoingReply, { reason = "" }: OutgoingResult, place: number): void {
  const { id: turnId, sessionId, agent, channel, hops, attempts, deliveryId = null } = reply;
  const eventId = eventIdOf(turnId, `announcement_${place}`);
  const event = { eventId, type: "announcement.dead", at: records.moment.now, agent, turnId, sessionId, hops };
  noteEvent(records, event, () => ({ turnId, sessionId, agent, channel, attempts, reason, deliveryId }));
}

/** Sets the state on the announcement's turn, if it changes, and adds the step to the timeline of its delivery. */
function showReply(
  records: Records,
  { id, channel, hops, deliveryId }: OutgoingReply,
  { state, reason, step }: OutgoingResult,
): void {
  const turn = state && findTurn(records, id);
  if (turn) {
    const { to, thread } = turn.turn.announcement ?? {};
    const announcement: TurnAnnouncement = { channel, hops, to, thread, state, reason };
    records.turns.put({ ...turn, turn: { ...turn.turn, announcement } });
  }
  if (deliveryId === undefined) return;
  addDeliveryStep(records, deliveryId, step);
  notifyOutcome(records, deliveryId);
}

/** Messages whose node has let their lease end can be claimed again. */
export function freeLostMessages(records: Records): void {
  const lost = records.outgoing.leaseEnded(records.moment.time);
  for (const record of lost) records.outgoing.put({ ...record, ...withoutLease(records) });
  if (lost.length > 0) records.notify({ kind: "work", of: "outgoing" });
}
