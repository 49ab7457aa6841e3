import { isTurnEnd } from "#core/sessions/turn-entries.ts";
import { type Clock, sleep } from "#kit/clock.ts";
import { addListener, type Listeners, notifyListeners } from "#kit/listeners.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Events } from "#observe/events.ts";
import type { Entry, ReplyText, SharedStore, StoreWatcher } from "#store/store.ts";

/**
 * A reply while it is being written. It is not a journal entry: the gateway that runs the turn holds it in memory until the turn ends, and so does
 * each gateway with a reader.
 */
export type LiveReply = {
  readonly turnId: string;
  readonly sessionId: string;
  readonly messageId: string;
  /** The `seq` of the reply's `message.created` entry. */
  readonly seq: number;
  /** The length of all pieces in UTF-16 code units. */
  length: number;
  readonly pieces: string[];
  /** The number of pieces at the end that are not joined yet. */
  loose: number;
  /** True if another gateway writes the reply. The copy may be shorter than the text that a reader has already received there. */
  readonly isCopy: boolean;
};

/** The number of newest pieces that are joined into one, because each piece has a memory overhead. Joined text is not copied again. */
const JOINED_PIECES = 1024;

/**
 * The replies that are being written, by session: a session runs one turn at a time. Readers pull the text after their offset, so that a slow
 * reader needs no buffer.
 */
export function createLiveReplies() {
  const replies = new Map<string, LiveReply>();
  const readers: Listeners<() => void> = new Map();
  /** The sessions whose replies have grown in this tick of the event loop. */
  const grown = new Set<string>();
  const wakeReaders = (): void => {
    const sessions = [...grown];
    grown.clear();
    for (const sessionId of sessions) notifyListeners(readers, sessionId, (wake) => wake());
  };
  return {
    open(turnId: string, sessionId: string, messageId: string, seq: number, isCopy = false): LiveReply {
      const reply: LiveReply = { turnId, sessionId, messageId, seq, length: 0, pieces: [], loose: 0, isCopy };
      replies.set(sessionId, reply);
      return reply;
    },
    append(reply: LiveReply, text: string): void {
      reply.pieces.push(text);
      reply.length += text.length;
      if (++reply.loose === JOINED_PIECES) {
        reply.pieces.push(reply.pieces.splice(-JOINED_PIECES).join(""));
        reply.loose = 0;
      }
      // Readers do not get the text of an attempt that has lost its turn.
      if (replies.get(reply.sessionId) !== reply || !readers.has(reply.sessionId)) return;
      grown.add(reply.sessionId);
      readAtTickEnd(wakeReaders);
    },
    close(reply: LiveReply): void {
      if (replies.get(reply.sessionId) === reply) replies.delete(reply.sessionId);
    },
    ofSession: (sessionId: string): LiveReply | undefined => replies.get(sessionId),
    /** Calls `wake` at the end of each tick in which a reply of the session has grown. Returns a function that ends this. */
    read: (sessionId: string, wake: () => void): (() => void) => addListener(readers, sessionId, wake),
    /** Looks for a reply of this session that another gateway is already writing. Calls `found` when it appears or grows. Returns a function that ends this. */
    seek: (_sessionId: string, _found: () => void): (() => void) => doNothing,
  };
}

/** Without a shared store, all replies are written by this process, so there is nothing to look for. */
function doNothing(): void {}

export type LiveReplies = ReturnType<typeof createLiveReplies>;

/** The text after the first `offset` code units; empty if there is none. The search starts at the end, because most readers are near it. */
export function readSince({ pieces, length }: LiveReply, offset: number): string {
  let first = pieces.length;
  let begin = length;
  while (begin > offset) begin -= (pieces[--first] as string).length;
  if (first === pieces.length) return "";
  const text = first === pieces.length - 1 ? (pieces[first] as string) : pieces.slice(first).join("");
  return begin < offset ? text.slice(offset - begin) : text;
}

type Parts = { shared: SharedStore; clock: Clock; events: Pick<Events, "storeFailed"> };
type ReplyParts = Parts & { live: LiveReplies };

/**
 * The replies that are being written, if several gateways share a store. A reader of a reply that another gateway writes gets the text in batches
 * through the store. Without such a reader, no text is sent.
 */
export function createSharedReplies(parts: Parts) {
  const live = createLiveReplies();
  const elsewhere = createRepliesElsewhere({ ...parts, live });
  const forOthers = createRepliesForOthers({ ...parts, live });

  const follow =
    (isReading: boolean): LiveReplies["read"] =>
    (sessionId, wake) => {
      const leave = live.read(sessionId, wake);
      const leaveElsewhere = elsewhere.want(sessionId, isReading);
      return () => {
        leave();
        leaveElsewhere();
      };
    };
  const watcher: Required<Pick<StoreWatcher, "entries" | "textsAsked" | "textsPut">> = {
    entries: ({ sessionId }, entries) => elsewhere.entries(sessionId, entries),
    textsAsked: forOthers.textsAsked,
    textsPut: elsewhere.textsPut,
  };
  return {
    live: { ...live, read: follow(true), seek: follow(false) },
    watcher,
    close(): void {
      elsewhere.close();
      forOthers.close();
    },
  };
}

/** The delay before other gateways are asked for a reply. If the turn runs here, its reply has been opened by then, and they are not asked. */
const FIRST_ASK_MS = 50;
/** The interval at which requests are repeated: a notification may be lost, and the writer stores text only while it is requested. */
const ASK_EVERY_MS = 3_000;

type Wanted = {
  followers: number;
  /** The followers whose requests are repeated. For the others, one request for a reply that is already being written is enough. */
  readers: number;
  /** The copy of the reply that another gateway writes. */
  reply: LiveReply | undefined;
  /** Replies up to this `seq` are complete. */
  over: number;
};

/** The copies of replies that other gateways are writing and that have a reader in this gateway. */
function createRepliesElsewhere({ shared, live, clock, events }: ReplyParts) {
  const wanted = new Map<string, Wanted>();
  const fresh = new Set<string>();
  const unread = new Set<string>();
  let reading = Promise.resolve();
  let stopFirst: (() => void) | undefined;
  let stopRound = clock.after(ASK_EVERY_MS, () => askAll());

  const isOwn = (sessionId: string, one: Wanted): boolean => {
    const reply = live.ofSession(sessionId);
    return reply !== undefined && reply !== one.reply;
  };

  const ask = (sessionIds: readonly string[]): void => {
    const asked = sessionIds.filter((id) => {
      const one = wanted.get(id);
      return one !== undefined && !isOwn(id, one);
    });
    if (asked.length === 0) return;
    shared.askTexts(asked).catch((error: unknown) => events.storeFailed({ operation: "askTexts", error }));
    read(asked);
  };
  const askFresh = (): void => {
    stopFirst = undefined;
    const now = [...fresh];
    fresh.clear();
    ask(now);
  };
  const askAll = (): void => {
    stopRound = clock.after(ASK_EVERY_MS, askAll);
    ask([...wanted].flatMap(([id, { readers }]) => (readers > 0 ? id : [])));
  };
  const askFor = (sessionId: string): void => {
    fresh.add(sessionId);
    stopFirst ??= clock.after(FIRST_ASK_MS, askFresh);
  };

  const close = (one: Wanted): void => {
    if (one.reply) live.close(one.reply);
    one.reply = undefined;
  };

  /** Reads the stored text of these sessions. Calls during a read are combined into one further read. */
  const read = (sessionIds: readonly string[]): void => {
    for (const id of sessionIds) if (wanted.has(id)) unread.add(id);
    reading = reading.then(readUnread);
  };
  const readUnread = async (): Promise<void> => {
    const places = [...unread].flatMap((sessionId) => {
      const one = wanted.get(sessionId);
      return one ? { sessionId, seq: one.reply?.seq ?? one.over + 1, offset: one.reply?.length ?? 0 } : [];
    });
    unread.clear();
    if (places.length === 0) return;
    try {
      for (const text of await shared.readTexts(places)) take(text);
    } catch (error) {
      events.storeFailed({ operation: "readTexts", error });
    }
  };

  const take = ({ sessionId, turnId, messageId, seq, offset, text }: ReplyText): void => {
    const one = wanted.get(sessionId);
    if (!one || seq <= one.over || isOwn(sessionId, one) || seq < (one.reply?.seq ?? 0)) return;
    const isNew = seq !== one.reply?.seq;
    // The text before `offset` is missing: the next request returns it.
    if (offset > (isNew ? 0 : (one.reply?.length ?? 0))) return;
    if (isNew) close(one);
    one.reply ??= live.open(turnId, sessionId, messageId, seq, true);
    const news = text.slice(one.reply.length - offset);
    if (news !== "") live.append(one.reply, news);
  };

  return {
    /** Adds a follower of this session's replies, which is also a reader if `isReading`. Returns a function that removes it. */
    want(sessionId: string, isReading: boolean): () => void {
      const one = wanted.get(sessionId) ?? { followers: 0, readers: 0, reply: undefined, over: 0 };
      wanted.set(sessionId, one);
      one.followers++;
      if (isReading) one.readers++;
      if (!one.reply) askFor(sessionId);
      return () => {
        if (isReading) one.readers--;
        if (--one.followers > 0) return;
        close(one);
        if (wanted.get(sessionId) === one) wanted.delete(sessionId);
      };
    },

    textsPut: read,

    /** Closes the copies of replies that are complete or were restarted, and requests replies that have begun. */
    entries(sessionId: string, entries: readonly Entry[]): void {
      const one = wanted.get(sessionId);
      if (!one) return;
      for (const entry of entries) {
        if (entry.name === "message.completed") one.over = entry.seq;
        const isBegun = entry.name === "message.created" && entry.role === "assistant";
        if (isBegun) one.over = entry.seq - 1;
        if (one.reply && (one.reply.seq <= one.over || (isTurnEnd(entry) && entry.turnId === one.reply.turnId)))
          close(one);
        if (isBegun && one.readers > 0 && !one.reply) askFor(sessionId);
      }
    },

    close(): void {
      stopFirst?.();
      stopRound();
      wanted.clear();
    },
  };
}

/** The time for which a request is valid. Readers repeat their requests. */
const ASKED_MS = 10_000;
/** The interval at which text is stored in batches, so that a long reply needs few writes. */
const PUT_EVERY_MS = 75;
/** The most sessions with a valid request. Requests for further ones are ignored. */
const MOST_ASKED = 10_000;

type TextRequest = { until: number; reply: LiveReply | undefined; put: number };

/** Stores the text of replies that this gateway is writing, for other gateways. Only replies of requested sessions are stored. */
function createRepliesForOthers({ shared, live, clock, events }: ReplyParts) {
  const asked = new Map<string, TextRequest>();
  const closed = new AbortController();
  let isPutting = false;

  const put = async (): Promise<void> => {
    const now = clock.monotonic();
    const dropped: Pick<ReplyText, "sessionId" | "seq">[] = [];
    const pieces: ReplyText[] = [];
    const sent: { one: TextRequest; length: number }[] = [];
    for (const [sessionId, one] of asked) {
      const found = live.ofSession(sessionId);
      const reply = found && !found.isCopy && one.until > now ? found : undefined;
      if (one.reply !== reply) {
        if (one.reply && one.put > 0) dropped.push({ sessionId, seq: one.reply.seq });
        one.reply = reply;
        one.put = 0;
      }
      if (one.until <= now) asked.delete(sessionId);
      if (!reply || reply.length === one.put) continue;
      const { turnId, messageId, seq, length } = reply;
      pieces.push({ sessionId, turnId, messageId, seq, offset: one.put, text: readSince(reply, one.put) });
      sent.push({ one, length });
    }
    try {
      if (pieces.length > 0) await shared.putTexts(pieces);
      for (const { one, length } of sent) one.put = length;
      if (dropped.length > 0) await shared.dropTexts(dropped);
    } catch (error) {
      events.storeFailed({ operation: "putTexts", error });
    }
  };

  const putWhileAsked = async (): Promise<void> => {
    if (isPutting) return;
    isPutting = true;
    while (asked.size > 0) {
      await sleep(clock, PUT_EVERY_MS, closed.signal);
      if (closed.signal.aborted) return;
      await put();
    }
    isPutting = false;
  };

  return {
    textsAsked(sessionIds: readonly string[]): void {
      const until = clock.monotonic() + ASKED_MS;
      for (const sessionId of sessionIds) {
        const one = asked.get(sessionId);
        if (one) one.until = until;
        else if (asked.size < MOST_ASKED) asked.set(sessionId, { until, reply: undefined, put: 0 });
      }
      void putWhileAsked();
    },
    close: () => closed.abort(),
  };
}
