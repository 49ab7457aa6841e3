import type { AnnouncementClaim, AnnouncementResult, ClaimedAnnouncement, TurnAnnouncement } from "#store/store.ts";
import { addDeliveryStep, notifyOutcome } from "./deliveries.ts";
import { firstOf, holds, leaseFor, makeDueReady, withoutLease } from "./leases.ts";
import { refuse } from "./limits.ts";
import type { AnnouncementRecord, Lease, OpenTurnRecord, Records, Rule, TurnRecord } from "./records.ts";
import { findTurn, withReply } from "./turn-lookup.ts";

/** The turn has completed: its reply goes to the channel that its order named, if any. */
export function announceReply(
  records: Records,
  record: OpenTurnRecord,
  createdAt: number,
): TurnAnnouncement | undefined {
  const { channel, hops = 0 } = record.open.announce ?? {};
  return channel === undefined ? undefined : addAnnouncement(records, record, { channel, hops }, createdAt);
}

function addAnnouncement(
  records: Records,
  { turn, ordinal }: TurnRecord,
  { channel, hops }: { channel: string; hops: number },
  createdAt: number,
): TurnAnnouncement {
  const { turnId, sessionId, agent, deliveryId } = turn;
  records.announcements.put({
    announcement: { turnId, sessionId, agent, channel, hops, deliveryId, createdAt, attempts: 0 },
    ordinal,
    place: records.next("place"),
    dueAt: undefined,
    fence: 0,
    lease: undefined,
  });
  records.notify({ kind: "work", of: "announcement" });
  return { channel, hops, state: "waiting", reason: undefined };
}

export const announceAgain: Rule<"announceAgain"> = (records, turnId, { now, by, hops }) => {
  const record = findTurn(records, turnId);
  if (!record) throw refuse("turn-not-found", `No turn has the id ${turnId}.`);
  const { announcement, deliveryId } = record.turn;
  if (!announcement) throw refuse("reply-not-announceable", "The turn has no reply that was sent to a channel.");
  const { channel, state } = announcement;
  if (records.announcements.find(turnId)) {
    throw refuse("reply-not-announceable", `The reply is ${state} for the channel ${channel}. Wait for the result.`);
  }
  const again = addAnnouncement(records, record, { channel, hops: Math.max(hops, announcement.hops) }, now);
  const after = { ...record, turn: { ...record.turn, announcement: again } };
  records.turns.put(after);
  if (deliveryId !== undefined) {
    const step = { at: now, name: "announcement.requeued", detail: JSON.stringify({ channel, by }) };
    addDeliveryStep(records, deliveryId, step);
    notifyOutcome(records, deliveryId);
  }
  return withReply(records, after);
};

export const claimAnnouncements: Rule<"claimAnnouncements"> = (records, { node, leaseMs, limit, freeOf }) => {
  const ready = (record: AnnouncementRecord) => ({ ...record, dueAt: undefined });
  const nextDueInMs = makeDueReady(records, records.announcements, ready);
  const freeOfChannels = new Map(records.announcements.readyChannels().map((channel) => [channel, freeOf(channel)]));
  const announcements: ClaimedAnnouncement[] = [];
  while (announcements.length < limit) {
    const record = firstOf(
      freeOfChannels,
      (channel) => records.announcements.firstReady(channel),
      ({ place }) => place,
    );
    if (!record) break;
    const { announcement } = record;
    const { channel, turnId } = announcement;
    freeOfChannels.set(channel, (freeOfChannels.get(channel) ?? 0) - 1);
    // A new fence, because a late end of an earlier announcement of the turn may still arrive.
    const fence = records.next("order");
    records.announcements.put({ ...record, fence, lease: leaseFor(records, node, leaseMs) });
    announcements.push({ claim: { turnId, node, fence }, announcement });
  }
  return { announcements, nextDueInMs };
};

export function extendAnnouncement(records: Records, claim: AnnouncementClaim, lease: Lease): boolean {
  const record = announcementOfClaim(records, claim);
  if (record) records.announcements.put({ ...record, lease });
  return record !== undefined;
}

export const endAnnouncement: Rule<"endAnnouncement"> = (records, claim, end) => {
  const turn = findTurn(records, claim.turnId);
  const record = announcementOfClaim(records, claim);
  if (!record) return false;
  records.announcements.delete(record);
  showAttempt(records, turn, record, end);
  return true;
};

export const releaseAnnouncement: Rule<"releaseAnnouncement"> = (records, claim, { delayMs, ...result }) => {
  const turn = findTurn(records, claim.turnId);
  const record = announcementOfClaim(records, claim);
  if (!record) return false;
  const { announcement } = record;
  const again = { ...announcement, attempts: announcement.attempts + 1 };
  records.announcements.put({ ...record, announcement: again, ...withoutLease(records, delayMs) });
  records.notify({ kind: "work", of: "announcement" });
  showAttempt(records, turn, record, result);
  return true;
};

function announcementOfClaim(records: Records, claim: AnnouncementClaim): AnnouncementRecord | undefined {
  const record = records.announcements.find(claim.turnId);
  return record && holds(claim, record.lease, record.fence) ? record : undefined;
}

/** Sets the state on the announcement's turn, if it changes, and adds the step to the timeline of its delivery. */
function showAttempt(
  records: Records,
  turn: TurnRecord | undefined,
  { announcement: { channel, hops, deliveryId } }: AnnouncementRecord,
  { state, reason, step }: AnnouncementResult,
): void {
  if (turn && state)
    records.turns.put({ ...turn, turn: { ...turn.turn, announcement: { channel, hops, state, reason } } });
  if (deliveryId === undefined) return;
  addDeliveryStep(records, deliveryId, step);
  notifyOutcome(records, deliveryId);
}

/** Announcements whose node has let their lease end can be claimed again. */
export function freeLostAnnouncements(records: Records): void {
  const lost = records.announcements.leaseEnded(records.moment.time);
  for (const record of lost) records.announcements.put({ ...record, ...withoutLease(records) });
  if (lost.length > 0) records.notify({ kind: "work", of: "announcement" });
}
