import type { Usage } from "#kit/usages.ts";

/**
 * A receiver of replies. A channel sends one announcement per call and any number of calls at once. It keeps nothing of one after
 * its promise settled. It has no queue and does not retry: its caller does.
 */
export interface Channel {
  readonly kind: "webhook" | "slack";
  /**
   * Sends once. Settles soon after `signal` aborts, and in any case within `LONGEST_CALL_MS`. A failure of the other side is an
   * outcome and never thrown. A receiver may get the same reply more than once, and can recognise it by its turn's id.
   */
  announce(reply: AnnouncedReply, signal: AbortSignal): Promise<Outcome | Unsendable>;
}

/** The longest duration of a call. */
export const LONGEST_CALL_MS = 25_000;

/** The end of a turn, in the form in which it is announced. */
export type AnnouncedReply = {
  turnId: string;
  sessionId: string;
  agent: string;
  /** The channel's name in the configuration. */
  channel: string;
  model: string | undefined;
  reply: string;
  usage: Usage;
  deliveryId: string | undefined;
  createdAt: number;
  endedAt: number;
  /** The number of announcements that the cause of the turn came through. */
  hops: number;
  /** The address in the channel, and the message that it answers. Only some channels have addresses. */
  to?: string | undefined;
  thread?: string | undefined;
};

/** A message that no attempt could deliver, so no request is made. */
export type Unsendable = { kind: "unsendable"; reason: string };

/** A receiver of notifications. The guarantees of a channel apply. */
export interface NotifyEndpoint {
  /** True if its notifications of turns have the reply. */
  readonly hasReplies: boolean;
  /** Sends once. A receiver may get the same event more than once, and can recognise it by its id. */
  notify(notification: SentNotification, signal: AbortSignal): Promise<Outcome>;
}

export type SentNotification = {
  eventId: string;
  type: string;
  /** The time of the event. */
  at: number;
  /** An object of JSON. */
  data: string;
  /** The number of announcements and notifications that led to the event. */
  hops: number;
};

/**
 * `delivered`: the receiver accepted it. `refused`: the receiver wants none, now or later; with `isOfMessage`, it accepts others. `failed`: worth another try, not
 * before `retryAfterMs`. `reason` is for people, and holds neither the address nor a secret; `code` is the HTTP status, if there
 * was one.
 */
export type Outcome =
  | { kind: "delivered"; code: number }
  | { kind: "refused"; code: number; reason: string; isOfMessage?: boolean }
  | { kind: "failed"; code: number | undefined; reason: string; retryAfterMs: number | undefined };
