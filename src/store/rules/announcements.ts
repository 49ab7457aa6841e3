import type { ClaimedAnnouncement } from "#store/store.ts";
import { addDeliveryStep } from "./deliveries.ts";
import { firstOf, holds, leaseFor } from "./leases.ts";
import type { OpenTurnRecord, Records, Rule } from "./records.ts";

/** The turn has completed: its reply goes to the channel that its order named, if any. */
export function announceReply(records: Records, { turn, ordinal, open }: OpenTurnRecord, createdAt: number): void {
  if (open.announce?.channel === undefined) return;
  const { channel, hops } = open.announce;
  const { turnId, sessionId, agent, deliveryId } = turn;
  records.announcements.put({
    announcement: { turnId, sessionId, agent, channel, hops, deliveryId, createdAt, attempts: 0 },
    ordinal,
    place: records.next("place"),
    dueAt: undefined,
    fence: 0,
    lease: undefined,
  });
  records.notify({ kind: "announcement" });
}

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
    const fence = record.fence + 1;
    records.announcements.put({ ...record, fence, lease: leaseFor(records, node, leaseMs) });
    announcements.push({ claim: { turnId, node, fence }, announcement });
  }
  const nextDueAt = records.announcements.nextDueAt();
  return { announcements, nextDueInMs: nextDueAt === undefined ? undefined : nextDueAt - time };
};

export const endAnnouncement: Rule<"endAnnouncement"> = (records, claim, { retryInMs, step }) => {
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
  if (announcement.deliveryId !== undefined) addDeliveryStep(records, announcement.deliveryId, step);
  return true;
};

/** Announcements whose node has let their lease end can be claimed again. */
export function freeLostAnnouncements(records: Records): void {
  const lost = records.announcements.leaseEnded(records.moment.time);
  for (const record of lost) records.announcements.put({ ...record, lease: undefined });
  if (lost.length > 0) records.notify({ kind: "announcement" });
}
