/** What only an engine that several gateways share can do for them, beside what `store.ts` says of every engine. */
export interface SharedStore {
  /**
   * Counts a request of `key`, if no more than `maxRequests` were counted in any `windowMs` that ends now, on all gateways together:
   * how many more may come. Otherwise counts nothing, and answers how long to wait. A time may count up to a sixtieth of the window
   * longer than it lasts, never shorter.
   */
  countRequest(key: string, limit: { maxRequests: number; windowMs: number }): Promise<RateCount>;

  /**
   * How many more requests of each key may come now, in the order of `keys`, and in how many ms all of the limit is free again; undefined
   * where it is. Counts nothing.
   */
  readRequests(keys: readonly string[], limit: { maxRequests: number; windowMs: number }): Promise<RateLeft[]>;

  /** How many gateways there are, with this one, as it knows. One that died is known to be gone some seconds later. */
  gateways(): number;

  /** Says which agents this gateway has. It counts as there from now on, until it is closed. */
  haveAgents(agents: readonly string[]): Promise<void>;
  /**
   * Those of `agents` that no gateway has said to have in the last `withinMs`. One that was closed counts as one that has said nothing
   * for ten seconds; what is older than a day is not known.
   */
  goneAgents(agents: readonly string[], withinMs: number): Promise<string[]>;

  /** Has every other gateway's watchers told that here somebody reads replies as they are written in these sessions. */
  askTexts(sessionIds: readonly string[]): Promise<void>;
  /** Keeps pieces of replies until they are dropped, and tells the other gateways' watchers of their sessions. Text that is kept already changes nothing. */
  putTexts(pieces: readonly ReplyText[]): Promise<void>;
  /** What is kept of the newest reply (by `seq`) in each session from the place on, in order; where a newer one is there, from its beginning. */
  readTexts(places: readonly TextPlace[]): Promise<ReplyText[]>;
  /** Lets go of what was put of these replies. What a gateway that died has left is swept within an hour. */
  dropTexts(replies: readonly Omit<TextPlace, "offset">[]): Promise<void>;
}

export type RateCount = { left: number } | { waitMs: number };
export type RateLeft = { left: number; wholeInMs: number | undefined };

/** A place in a reply that is being written: the `seq` of its `message.created` entry, and an offset in UTF-16 code units. */
export type TextPlace = { sessionId: string; seq: number; offset: number };
export type ReplyText = TextPlace & { turnId: string; messageId: string; text: string };

/** What an engine tells of what it does by itself, for the log. `detail` is a sentence, with no secret and no URL's password in it. */
export type StoreNotice = {
  name: "unavailable" | "available" | "migrated" | "repaired" | "taken-over" | "exposed";
  detail: string;
};
