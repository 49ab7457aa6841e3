/** The ends of attempts to send a message: delivered, failed for good, or retried later. */
import type { Outcome } from "#channels/channel.ts";
import type { DeliveryStep, Outgoing, OutgoingReply } from "#store/store.ts";

/** A message fails after this time. */
export const GIVE_UP_MS = 86_400_000;
const FIRST_DELAY_MS = 5_000;
const LONGEST_DELAY_MS = 3_600_000;
/** Longer than a day, in case the wall clock is set back. */
const MOST_ATTEMPTS = 100;

/** A message that waited for longer than a day is not sent; this is the time allowed for its last attempt. */
const LAST_SEND_MS = 60_000;

/** The result of an attempt. `returned`: the gateway stopped before it received a response. `stopped`: the endpoint is stopped. `isUnsent`: no request was sent. */
export type AttemptEnd = { code?: number | undefined; reason?: string; isUnsent?: true } & (
  | { name: "delivered" | "failed"; retryInMs?: undefined }
  | { name: "retried" | "returned" | "stopped"; retryInMs: number }
);

/** The state of a message after its release. A returned attempt does not change the state. */
export const STATES = { retried: "retrying", returned: undefined, stopped: "waiting" } as const;

export function failed(reason: string, code?: number): AttemptEnd {
  return { name: "failed", code, reason };
}

/** The attempt continues after the next start, or on another gateway. */
export const RETURNED: AttemptEnd = { name: "returned", reason: "the gateway stopped", retryInMs: 0 };

/** The end of an attempt that failed in the gateway. */
export function brokenAttempt({ attempts }: Outgoing): AttemptEnd {
  return { name: "retried", reason: "the gateway failed", retryInMs: delayAfter(attempts) };
}

/** The end of an attempt at a message whose endpoint is stopped. A message waits for a day. */
function stopped({ createdAt }: Outgoing, now: number, reason: string, code?: number): AttemptEnd {
  if (createdAt + GIVE_UP_MS <= now) return failed(`${reason}; waited for one day`, code);
  return { name: "stopped", code, reason, retryInMs: 0 };
}

/** The end of an attempt, from the outcome that the endpoint reported. It is not retried before the endpoint's pause ends. */
export function endOf(outcome: Outcome, message: Outgoing, now: number, pauseMs: number): AttemptEnd {
  const { code } = outcome;
  if (outcome.kind === "delivered") return { name: "delivered", code };
  const { reason } = outcome;
  if (outcome.kind === "refused") return isReply(message) ? failed(reason, code) : stopped(message, now, reason, code);
  const { createdAt, attempts } = message;
  const left = createdAt + GIVE_UP_MS - now;
  if (left <= 0 || attempts + 1 >= MOST_ATTEMPTS) return failed(`${reason}; retried for one day`, code);
  const retryInMs = Math.min(Math.max(delayAfter(attempts), pauseMs), left);
  return { name: "retried", code, reason, retryInMs };
}

/** The end of an attempt that may not send the message now; undefined if it may. */
export function unsent(message: Outgoing, now: number, stopReason: string | undefined): AttemptEnd | undefined {
  if (stopReason !== undefined) return stopped(message, now, stopReason);
  const isTooOld = !isReply(message) && message.createdAt + GIVE_UP_MS + LAST_SEND_MS <= now;
  return isTooOld ? failed("waited for one day") : undefined;
}

/** The end of an attempt without a request. */
export function withoutRequest(end: AttemptEnd, message: Outgoing): AttemptEnd {
  return isReply(message) ? end : { ...end, isUnsent: true };
}

/** The pause that the endpoint asked for, up to the limit. */
export function pauseOf(outcome: Outcome): number {
  return outcome.kind === "failed" ? Math.min(outcome.retryAfterMs ?? 0, LONGEST_DELAY_MS) : 0;
}

/** Doubles up to an hour. The jitter spreads messages that failed together. */
export function delayAfter(attempts: number): number {
  return Math.round(Math.min(FIRST_DELAY_MS * 2 ** attempts, LONGEST_DELAY_MS) * (0.5 + Math.random() / 2));
}

export function isReply(message: Outgoing): message is OutgoingReply {
  return "channel" in message;
}

/** The step of the delivery's timeline for an attempt at a reply. */
export function stepOf(end: AttemptEnd, message: Outgoing, at: number, ms: number): DeliveryStep {
  const { name, code: status, reason, retryInMs: retry_in_ms } = end;
  const { attempts } = message;
  const channel = isReply(message) ? message.channel : undefined;
  const detail = { channel, attempt: attempts + 1, status, reason, retry_in_ms, ms: Math.round(ms) };
  return { at, name: `announcement.${name}`, detail: JSON.stringify(detail) };
}
