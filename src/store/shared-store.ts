/** The additional methods of an engine that several gateways share; `store.ts` has the methods of every engine. */
export interface SharedStore {
  /**
   * Counts a request of `key`, if no more than `maxRequests` were counted in any `windowMs` that ends now, on all gateways
   * together, and answers the number that may still come. Otherwise counts nothing, and answers the time to wait. A time may
   * count up to a sixtieth of the window longer than it lasts, never shorter.
   */
  countRequest(key: string, limit: { maxRequests: number; windowMs: number }): Promise<RateCount>;

  /**
   * The number of further requests that each key may make now, in the order of `keys`, and the ms until the whole limit is free
   * again; undefined if it is. Counts nothing.
   */
  readRequests(keys: readonly string[], limit: { maxRequests: number; windowMs: number }): Promise<RateLeft[]>;

  /** The number of gateways that it knows, with this one. It learns some seconds later that a gateway died. */
  gateways(): number;

  /** Says which agents this gateway has. It counts as there from now on, until it is closed. */
  haveAgents(agents: readonly string[]): Promise<void>;
  /**
   * The names in `agents` that no gateway has said to have in the last `withinMs`. A gateway that was closed counts as one that
   * has said nothing for ten seconds. Nothing older than a day is known.
   */
  missingAgents(agents: readonly string[], withinMs: number): Promise<string[]>;

  /** Has every other gateway's watchers told that here somebody reads replies as they are written in these sessions. */
  askTexts(sessionIds: readonly string[]): Promise<void>;
  /** Keeps pieces of replies until they are dropped, and tells the other gateways' watchers of their sessions. Text that is kept already changes nothing. */
  putTexts(pieces: readonly ReplyText[]): Promise<void>;
  /**
   * The kept text of the newest reply (by `seq`) in each session from the place on, in order; a newer reply from its beginning.
   */
  readTexts(places: readonly TextPlace[]): Promise<ReplyText[]>;
  /** Drops the texts of these replies. The texts that a dead gateway has left are swept within an hour. */
  dropTexts(replies: readonly Omit<TextPlace, "offset">[]): Promise<void>;
}

export type RateCount = { left: number } | { waitMs: number };
export type RateLeft = { left: number; wholeInMs: number | undefined };

/** A place in a reply that is being written: the `seq` of its `message.created` entry, and an offset in UTF-16 code units. */
export type TextPlace = { sessionId: string; seq: number; offset: number };
export type ReplyText = TextPlace & { turnId: string; messageId: string; text: string };

/** An engine's notice of its own actions, for the log. `detail` is a sentence, with no secret and no URL's password in it. */
export type StoreNotice = {
  name: "unavailable" | "available" | "migrated" | "repaired" | "taken-over" | "exposed";
  detail: string;
};
