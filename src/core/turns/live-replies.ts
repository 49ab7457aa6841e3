import { isTurnEnd } from "#core/sessions/journal.ts";
import { type Clock, sleep } from "#kit/clock.ts";
import { addListener, type Listeners, tellListeners } from "#kit/listeners.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Events } from "#observe/events.ts";
import type { Entry, ReplyText, SharedStore, StoreWatcher } from "#store/store.ts";

/**
 * A reply while it is being written. No journal entry: the node that runs the turn holds it until the turn ends, and those where
 * somebody reads it.
 */
export type LiveReply = {
  readonly turnId: string;
  readonly sessionId: string;
  readonly messageId: string;
  /** The `seq` of the reply's `message.created` entry. */
  readonly seq: number;
  /** Length of all pieces, in UTF-16 code units. */
  length: number;
  readonly pieces: string[];
  /** The number of pieces at the end that are not joined yet. */
  loose: number;
  /** Another gateway writes it: its text here may be behind the text that a reader has seen there. */
  readonly isCopy: boolean;
};

/** At this number, the newest pieces are joined, because each takes tens of bytes besides its text. Joined text is not copied again. */
const MOST_LOOSE = 1024;

/**
 * Replies that are being written, by session: it runs one turn at a time. Readers pull what is past their offset, so that a slow one costs
 * no memory.
 */
export function createLiveReplies() {
  const replies = new Map<string, LiveReply>();
  const readers: Listeners<() => void> = new Map();
  /** The sessions whose replies have grown in this tick of the event loop. */
  const grown = new Set<string>();
  const wakeReaders = (): void => {
    const sessions = [...grown];
    grown.clear();
    for (const sessionId of sessions) tellListeners(readers, sessionId, (wake) => wake());
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
      if (++reply.loose === MOST_LOOSE) {
        reply.pieces.push(reply.pieces.splice(-MOST_LOOSE).join(""));
        reply.loose = 0;
      }
      // An attempt that lost its turn writes nothing that anybody reads.
      if (replies.get(reply.sessionId) !== reply || !readers.has(reply.sessionId)) return;
      grown.add(reply.sessionId);
      readAtTickEnd(wakeReaders);
    },
    close(reply: LiveReply): void {
      if (replies.get(reply.sessionId) === reply) replies.delete(reply.sessionId);
    },
    ofSession: (sessionId: string): LiveReply | undefined => replies.get(sessionId),
    textSince: readSince,
    /** Calls `wake` at the end of each tick in which a reply of the session has grown; the returned function ends it. */
    read: (sessionId: string, wake: () => void): (() => void) => addListener(readers, sessionId, wake),
    /** Calls `found` when a reply comes up, or grows, that is being written in this session already; the returned function ends it. */
    seek: (_sessionId: string, _found: () => void): (() => void) => doNothing,
  };
}

/** All that is written in the session is written here, and was there from its beginning. */
function doNothing(): void {}

export type LiveReplies = ReturnType<typeof createLiveReplies>;

/** The text past the first `offset` code units; empty if there is none. Searched from the end: readers are mostly near it. */
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
 * Replies that are being written, where several gateways share a store: a reader of another gateway's reply gets it from there,
 * in batches. As long as there is no such reader, no text travels.
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

/** A turn that runs here opens its reply before that: then nobody else is asked. */
const FIRST_ASK_MS = 50;
/** A notification may be lost, and the writer puts text only as long as it is asked for. */
const ASK_EVERY_MS = 3_000;

type Wanted = {
  followers: number;
  /** Followers that go on asking. The others are content with a reply that is being written as they come. */
  readers: number;
  /** The copy of the reply that another gateway writes. */
  reply: LiveReply | undefined;
  /** Replies up to this `seq` are over. */
  over: number;
};

/** Copies of replies that other gateways are writing and that somebody reads here. */
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

  /** Reads what was put; of sessions that are told of while it reads, once more afterwards. */
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
    // The beginning is missing: it is asked for again.
    if (offset > (isNew ? 0 : (one.reply?.length ?? 0))) return;
    if (isNew) close(one);
    one.reply ??= live.open(turnId, sessionId, messageId, seq, true);
    const news = text.slice(one.reply.length - offset);
    if (news !== "") live.append(one.reply, news);
  };

  return {
    /** Somebody follows the replies of this session, and reads one if `isReading`; the returned function ends it. */
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

    /** A reply that is complete, or is begun anew, has no text that is still to come; one that begins is asked for. */
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

/** The time that one question counts: a reader that goes on asks again. */
const ASKED_MS = 10_000;
/** Text goes in batches, so that a reply of a thousand pieces is a few dozen writes. */
const PUT_EVERY_MS = 75;
/** The most sessions that are asked about; nobody needs more in earnest. */
const MOST_ASKED = 10_000;

type TextRequest = { until: number; reply: LiveReply | undefined; put: number };

/** Puts replies that are being written here where other gateways read them, those of sessions that somebody there follows. */
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
      pieces.push({ sessionId, turnId, messageId, seq, offset: one.put, text: live.textSince(reply, one.put) });
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

  const putOn = async (): Promise<void> => {
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
      void putOn();
    },
    close: () => closed.abort(),
  };
}
