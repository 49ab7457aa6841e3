import type { Usage } from "#kit/usages.ts";

/**
 * Who hears of a reply. A channel sends one announcement per call and any number of calls at once; it keeps nothing of one after its
 * promise settled. It knows no queue and tries nothing again: who calls it does.
 */
export interface Channel {
  readonly kind: "webhook" | "slack";
  /**
   * Sends once. Settles soon after `signal` aborts, and in any case within `LONGEST_CALL_MS`. What the other side does is an outcome and
   * never thrown. The same reply sent again is told by its turn's id: a receiver may get it more than once.
   */
  announce(reply: AnnouncedReply, signal: AbortSignal): Promise<Outcome>;
}

/** No call lasts longer: a lease that is longer than this need not be extended. */
export const LONGEST_CALL_MS = 25_000;

/** The end of a turn, as it is announced. */
export type AnnouncedReply = {
  turnId: string;
  sessionId: string;
  agent: string;
  /** The name that the configuration gives the channel. */
  channel: string;
  model: string | undefined;
  reply: string;
  usage: Usage;
  deliveryId: string | undefined;
  createdAt: number;
  endedAt: number;
  /** Through how many announcements came what started the turn. */
  hops: number;
};

/**
 * `delivered`: the receiver took it. `refused`: it wants none, now or later. `failed`: worth another try, not before `retryAfterMs`.
 * `reason` is for people, and holds neither the address nor a secret; `code` is the HTTP status, where there was one.
 */
export type Outcome =
  | { kind: "delivered"; code: number }
  | { kind: "refused"; code: number; reason: string }
  | { kind: "failed"; code: number | undefined; reason: string; retryAfterMs: number | undefined };
