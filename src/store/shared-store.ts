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
   * The names in `agents` that no gateway has reported in the last `withinMs`. A closed gateway counts as one that has reported nothing for ten
   * seconds. Reports older than a day are forgotten.
   */
  missingAgents(agents: readonly string[], withinMs: number): Promise<string[]>;

  /** Notifies every other gateway's watchers that this gateway reads replies of these sessions while they are written. */
  askTexts(sessionIds: readonly string[]): Promise<void>;
  /** Stores pieces of replies until they are dropped, and notifies the other gateways' watchers of their sessions. Known text changes nothing. */
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
