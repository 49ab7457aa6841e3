import type { AnnouncementClaim, ClaimedAnnouncement, Store } from "#store/store.ts";
import { stepText } from "./deliveries.ts";
import { type Frame, LANE } from "./frame.ts";
import { keepText, readText } from "./texts.ts";

type AnnouncementRow = {
  turn_id: string;
  session_id: string;
  agent: string;
  channel: string;
  hops: number;
  delivery_id: string | null;
  created_at: number;
  attempts: number;
  node: string;
  fence: number;
};

export const announcementMethods = (frame: Frame): Pick<Store, "claimAnnouncements" | "endAnnouncement"> => ({
  claimAnnouncements: async ({ node, leaseMs, limit, freeOf }) => {
    const channels = await frame.call<string[]>("waiting_channels", []);
    const free = Object.fromEntries(channels.map((channel) => [channel, freeOf(readText(channel))]));
    const args = [JSON.stringify(free), limit, node, leaseMs, frame.time()];
    const { announcements, next } = await frame.call<{ announcements: AnnouncementRow[]; next: number | null }>(
      "claim_announcements",
      args,
    );
    return { announcements: announcements.map(claimedOf), nextDueInMs: next ?? undefined };
  },

  endAnnouncement: async ({ turnId, node, fence }, { retryInMs, step }) => {
    const args = [turnId, node, fence, retryInMs ?? null, stepText(step), LANE, frame.time()];
    return (await frame.call<object | null>("end_announcement", args)) !== null;
  },
});

const claimedOf = (row: AnnouncementRow): ClaimedAnnouncement => {
  const claim: AnnouncementClaim = { turnId: row.turn_id, node: row.node, fence: row.fence };
  const announcement = {
    turnId: row.turn_id,
    sessionId: readText(row.session_id),
    agent: row.agent,
    channel: readText(row.channel),
    hops: row.hops,
    deliveryId: row.delivery_id === null ? undefined : readText(row.delivery_id),
    createdAt: row.created_at,
    attempts: row.attempts,
  };
  return { claim, announcement };
};

/** A channel's name as `add_announcement` takes it. */
export const keepChannel = keepText;
