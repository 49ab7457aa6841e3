import type { ClaimedAnnouncement, TurnAnnouncement } from "#store/store.ts";
import { addDeliveryStep, notifyOutcome } from "./deliveries.ts";
import { firstOf, holds, leaseFor } from "./leases.ts";
import { refuse } from "./limits.ts";
import type { OpenTurnRecord, Records, Rule, TurnRecord } from "./records.ts";
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
  const { time } = records.moment;
  for (const record of records.announcements.dueBy(time)) records.announcements.put({ ...record, dueAt: undefined });
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
  const nextDueAt = records.announcements.nextDueAt();
  return { announcements, nextDueInMs: nextDueAt === undefined ? undefined : nextDueAt - time };
};

export const endAnnouncement: Rule<"endAnnouncement"> = (records, claim, { retryInMs, state, reason, step }) => {
  // The turn comes first: with it goes the lock of its session, which a deletion takes before it deletes announcements.
  const turn = findTurn(records, claim.turnId);
  const record = records.announcements.find(claim.turnId);
  if (!record || !holds(claim, record.lease, record.fence)) return false;
  const { announcement } = record;
  if (retryInMs === undefined) {
    records.announcements.delete(record);
  } else {
    const again = { ...announcement, attempts: announcement.attempts + 1 };
    const dueAt = records.moment.time + retryInMs;
    records.announcements.put({ ...record, announcement: again, dueAt, lease: undefined });
  }
  const { channel, hops, deliveryId } = announcement;
  if (turn && state !== undefined)
    records.turns.put({ ...turn, turn: { ...turn.turn, announcement: { channel, hops, state, reason } } });
  if (deliveryId !== undefined) {
    addDeliveryStep(records, deliveryId, step);
    notifyOutcome(records, deliveryId);
  }
  return true;
};

/** Announcements whose node has let their lease end can be claimed again. */
export function freeLostAnnouncements(records: Records): void {
  const lost = records.announcements.leaseEnded(records.moment.time);
  for (const record of lost) records.announcements.put({ ...record, lease: undefined });
  if (lost.length > 0) records.notify({ kind: "work", of: "announcement" });
}
