import { isTurnEnd } from "#core/sessions/journal.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Entry, ReplyText, SharedStore } from "#store/store.ts";
import type { LiveReplies, LiveReply } from "./live-replies.ts";

/** A turn that runs here opens its reply before that: then nobody else is asked. */
const FIRST_ASK_MS = 50;
/** A notification may be lost, and who writes puts text only as long as it is asked for. */
const ASK_EVERY_MS = 3_000;

type Wanted = {
  readers: number;
  readonly seekers: Set<() => void>;
  /** The copy of the reply that another gateway writes. */
  reply: LiveReply | undefined;
  /** Replies up to this `seq` are over. */
  over: number;
};

type Parts = { shared: SharedStore; live: LiveReplies; clock: Clock; events: Pick<Events, "storeFailed"> };

/** Copies of replies that other gateways are writing and that somebody reads here. */
export const createRepliesElsewhere = ({ shared, live, clock, events }: Parts) => {
  const wanted = new Map<string, Wanted>();
  const fresh = new Set<string>();
  const unread = new Set<string>();
  let reading = false;
  let stopFirst: (() => void) | undefined;
  let stopRound: (() => void) | undefined;

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
    stopRound = wanted.size > 0 ? clock.after(ASK_EVERY_MS, askAll) : undefined;
    ask([...wanted].flatMap(([id, { readers }]) => (readers > 0 ? id : [])));
  };
  const askFor = (sessionId: string): void => {
    fresh.add(sessionId);
    stopFirst ??= clock.after(FIRST_ASK_MS, askFresh);
  };

  const want = (sessionId: string): Wanted => {
    const known = wanted.get(sessionId);
    if (known) return known;
    const one: Wanted = { readers: 0, seekers: new Set(), reply: undefined, over: 0 };
    wanted.set(sessionId, one);
    stopRound ??= clock.after(ASK_EVERY_MS, askAll);
    return one;
  };
  const close = (one: Wanted): void => {
    if (one.reply) live.close(one.reply);
    one.reply = undefined;
  };
  const forgetIdle = (sessionId: string, one: Wanted): void => {
    if (one.readers > 0 || one.seekers.size > 0) return;
    close(one);
    if (wanted.get(sessionId) === one) wanted.delete(sessionId);
  };

  /** Reads what was put; sessions that are told of meanwhile are read after that. */
  const read = (sessionIds: readonly string[]): void => {
    for (const id of sessionIds) if (wanted.has(id)) unread.add(id);
    if (reading || unread.size === 0) return;
    reading = true;
    void readOn().finally(() => {
      reading = false;
    });
  };
  const readOn = async (): Promise<void> => {
    while (unread.size > 0) {
      const places = [...unread].flatMap((sessionId) => {
        const one = wanted.get(sessionId);
        if (!one) return [];
        return { sessionId, seq: one.reply?.seq ?? one.over + 1, offset: one.reply?.length ?? 0 };
      });
      unread.clear();
      try {
        for (const text of await shared.readTexts(places)) take(text);
      } catch (error) {
        events.storeFailed({ operation: "readTexts", error });
      }
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
    if (isNew) for (const found of [...one.seekers]) found();
  };

  return {
    /** Somebody reads replies in this session; the returned function ends it. */
    read(sessionId: string): () => void {
      const one = want(sessionId);
      one.readers++;
      if (!one.reply) askFor(sessionId);
      let isReading = true;
      return () => {
        if (isReading) one.readers--;
        isReading = false;
        forgetIdle(sessionId, one);
      };
    },

    /** Calls `found` when a reply of the session comes up. */
    seek(sessionId: string, found: () => void): () => void {
      const one = want(sessionId);
      one.seekers.add(found);
      askFor(sessionId);
      return () => {
        if (one.seekers.delete(found)) forgetIdle(sessionId, one);
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
      stopRound?.();
      wanted.clear();
    },
  };
};
