/** Groups of webhooks that become one turn; `store.ts` says how they are used. */

/**
 * A group of webhooks that become one turn. It is open until `windowMs` after its last request, but at most `maxWaitMs` after its first. `last`: the turn
 * gets the message of the last request. `all`: it gets all messages in order, at most `longestText` characters together.
 */
export type TurnGroup = {
  key: string;
  windowMs: number;
  maxWaitMs: number;
  take: "last" | "all";
  longestText: number;
};

/** The open group of a key. Its turn waits until `closesAt`. */
export type OpenGroup = {
  turnId: string;
  sessionId: string;
  deliveryId: string | undefined;
  requests: number;
  openedAt: number;
  closesAt: number;
};
