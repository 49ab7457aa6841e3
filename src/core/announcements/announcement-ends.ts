import type { Outcome } from "#channels/channel.ts";
import type { Announcement, DeliveryStep } from "#store/store.ts";

/** For how long an announcement is tried. */
export const GIVE_UP_MS = 86_400_000;
const FIRST_DELAY_MS = 5_000;
const LONGEST_DELAY_MS = 3_600_000;
/** More than fit into a day, for a wall clock that went back. */
const MOST_ATTEMPTS = 100;

/** What an attempt came to. `returned`: the gateway stopped before there was an answer. */
export type AnnouncementEnd = {
  name: "delivered" | "retried" | "failed" | "returned";
  code: number | undefined;
  reason: string | undefined;
  retryInMs: number | undefined;
};

export const givenUp = (reason: string, code?: number): AnnouncementEnd => {
  return { name: "failed", code, reason, retryInMs: undefined };
};

/** It goes on where the gateway does: after its next start, or on another node. */
export const RETURNED: AnnouncementEnd = {
  name: "returned",
  code: undefined,
  reason: "the gateway stopped",
  retryInMs: 0,
};

/** What follows from what the channel said. */
export const endOf = (outcome: Outcome, announcement: Announcement, now: number): AnnouncementEnd => {
  const { code } = outcome;
  if (outcome.kind === "delivered") return { name: "delivered", code, reason: undefined, retryInMs: undefined };
  const { reason } = outcome;
  if (outcome.kind === "refused") return givenUp(reason, code);
  const left = announcement.createdAt + GIVE_UP_MS - now;
  if (left <= 0 || announcement.attempts + 1 >= MOST_ATTEMPTS)
    return givenUp(`${reason}; it was tried for a day`, code);
  const retryInMs = Math.min(Math.max(delayAfter(announcement.attempts), holdOf(outcome)), left);
  return { name: "retried", code, reason, retryInMs };
};

export const triedLater = (reason: string, { attempts }: Announcement): AnnouncementEnd => {
  return { name: "retried", code: undefined, reason, retryInMs: delayAfter(attempts) };
};

/** For how long the channel asked to be left alone, as far as that is heeded. */
export const holdOf = (outcome: Outcome): number =>
  outcome.kind === "failed" ? Math.min(outcome.retryAfterMs ?? 0, LONGEST_DELAY_MS) : 0;

/** Doubles up to an hour, with jitter, so that those which failed together do not come back together. */
const delayAfter = (attempts: number): number =>
  Math.round(Math.min(FIRST_DELAY_MS * 2 ** attempts, LONGEST_DELAY_MS) * (0.5 + Math.random() / 2));

/** The attempt as its delivery's timeline tells it. */
export const stepOf = (
  end: AnnouncementEnd,
  { channel, attempts }: Announcement,
  at: number,
  ms: number,
): DeliveryStep => {
  const { name, code: status, reason, retryInMs: retry_in_ms } = end;
  const detail = { channel, attempt: attempts + 1, status, reason, retry_in_ms, ms: Math.round(ms) };
  return { at, name: `announcement.${name}`, detail: JSON.stringify(detail) };
};
