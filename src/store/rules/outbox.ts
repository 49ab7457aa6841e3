/** The outbox: messages to endpoints outside, each in the queue of its endpoint until it ends. */
import type { ClaimedMessage, Outgoing, OutgoingClaim, OutgoingResult } from "#store/store.ts";
import { addDeliveryStep, notifyOutcome } from "./deliveries.ts";
import { firstOf, holds, leaseFor, makeDueReady, withoutLease } from "./leases.ts";
import type { Lease, OutgoingRecord, Records, Rule } from "./records.ts";
import { findTurn } from "./turn-lookup.ts";

/** Puts a message at the end of its endpoint's queue. `ordinal`: the session with which it is deleted. */
export function addOutgoing(records: Records, message: Outgoing, ordinal: number): void {
  records.outgoing.put({
    message,
    ordinal,
    place: records.next("place"),
    dueAt: undefined,
    fence: 0,
    lease: undefined,
  });
  records.notify({ kind: "work", of: "outgoing" });
}

export const claimOutgoing: Rule<"claimOutgoing"> = (records, { node, leaseMs, free, others }) => {
  const ready = (record: OutgoingRecord) => ({ ...record, dueAt: undefined });
  const nextDueInMs = makeDueReady(records, records.outgoing, ready);
  const freeOfEndpoints = new Map<string, number>();
  for (const endpoint of records.outgoing.readyEndpoints()) {
    freeOfEndpoints.set(endpoint, free[endpoint] ?? others.free);
  }
  const firstReady = (endpoint: string) => {
    const first = records.outgoing.firstReady(endpoint);
    const isClaimable = first && (endpoint in free || first.message.createdAt < others.before);
    return isClaimable ? first : undefined;
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

export function extendOutgoing(records: Records, claim: OutgoingClaim, lease: Lease): boolean {
  const record = messageOfClaim(records, claim);
  if (record) records.outgoing.put({ ...record, lease });
  return record !== undefined;
}

export const endOutgoing: Rule<"endOutgoing"> = (records, claim, end) => {
  const record = messageOfClaim(records, claim);
  if (!record) return false;
  records.outgoing.delete(record);
  showAttempt(records, record.message, end);
  return true;
};

export const releaseOutgoing: Rule<"releaseOutgoing"> = (records, claim, { delayMs, ...result }) => {
  const record = messageOfClaim(records, claim);
  if (!record) return false;
  const message = { ...record.message, attempts: record.message.attempts + 1 };
  records.outgoing.put({ ...record, message, ...withoutLease(records, delayMs) });
  records.notify({ kind: "work", of: "outgoing" });
  showAttempt(records, message, result);
  return true;
};

function messageOfClaim(records: Records, claim: OutgoingClaim): OutgoingRecord | undefined {
  const record = records.outgoing.find(claim.id);
  return record && holds(claim, record.lease, record.fence) ? record : undefined;
}

/** Sets the state on the announcement's turn, if it changes, and adds the step to the timeline of its delivery. */
function showAttempt(
  records: Records,
  { id, channel, hops, deliveryId }: Outgoing,
  { state, reason, step }: OutgoingResult,
): void {
  const turn = state && findTurn(records, id);
  if (turn) records.turns.put({ ...turn, turn: { ...turn.turn, announcement: { channel, hops, state, reason } } });
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
