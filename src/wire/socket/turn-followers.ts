import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Entry, SessionRef, Store, Turn } from "#store/store.ts";
import type { PushedSession, PushFrames } from "./pushes.ts";
import { isTurnEnd, type PushSink, type StreamReader } from "./streams.ts";
import type { Subscriber } from "./subscriber.ts";

export type FollowOptions = { stream: boolean; replySeq?: number | undefined };

/** The call that started a turn: what is pushed through it comes after its answer. */
export type PendingCall = { pushAfterAnswer(frame: string): void };

/** A sender that is to learn how its turn ends, and with `stream` what is written until then. */
export class TurnFollower {
  readonly sink: PushSink;
  readonly turn: Pick<Turn, "turnId" | "sessionId" | "agent" | "seq">;
  readonly stream: boolean;
  readonly #call: PendingCall;
  isTextDue = false;
  replySeq: number | undefined;
  ordinal: number | undefined = undefined;
  stopReading = (): void => {};
  #offset = 0;

  constructor(sink: PushSink, turn: TurnFollower["turn"], { stream, replySeq }: FollowOptions, call: PendingCall) {
    this.sink = sink;
    this.turn = turn;
    this.stream = stream;
    this.replySeq = replySeq;
    this.#call = call;
  }

  pushAfterAnswer(frame: string): void {
    this.#call.pushAfterAnswer(frame);
  }

  /** A reply is begun: another one, when the turn is tried again. */
  begin(seq: number, offset = 0): void {
    this.replySeq = seq;
    this.#offset = offset;
  }

  /** Sends the text that was written since; nothing to a sender that is slow. */
  flushText(live: LiveReplies, frames: PushFrames): void {
    this.isTextDue = false;
    const reply = live.get(this.turn.turnId);
    if (!reply || this.ordinal === undefined || this.#offset >= reply.length) return;
    const { seq, messageId, turnId } = reply;
    const offset = this.#offset;
    this.#offset = reply.length;
    if (this.sink.isFull) return;
    const text = live.textSince(reply, offset);
    this.sink.push(frames.delta(this.#session(this.ordinal), { turnId, messageId, seq, offset, text }));
  }

  /** The rest of a reply whose pieces were asked for; at once where a subscription tells of the reply's end at once. */
  pushRest(
    session: SessionRef,
    { messageId, turnId, text }: Extract<Entry, { name: "message.completed" }>,
    frames: PushFrames,
    atOnce: boolean,
  ): void {
    const offset = this.#offset;
    if (!this.stream || this.replySeq === undefined || offset >= text.length || this.sink.isFull) return;
    this.#offset = text.length;
    const rest = { turnId, messageId, seq: this.replySeq, offset, text: text.slice(offset) };
    const frame = frames.delta(session, rest);
    if (atOnce) this.sink.push(frame);
    else this.#call.pushAfterAnswer(frame);
  }

  #session(ordinal: number): PushedSession {
    return { sessionId: this.turn.sessionId, ordinal };
  }
}

export type TurnFollowersParts = {
  store: Store;
  live: LiveReplies;
  frames: PushFrames;
  /** The subscriptions of a connection; undefined when it has none. */
  subscriberOf(follower: TurnFollower): Subscriber | undefined;
  /** The same, made where there is none. */
  makeSubscriber(follower: TurnFollower): Subscriber;
  /** Has `flushText` called before this turn of the event loop ends its writes. */
  onText(follower: TurnFollower): void;
};

/** The senders that wait for the end of a turn, by session: one look for all entries of a transaction. */
export const createTurnFollowers = (parts: TurnFollowersParts) => {
  const { store, live, frames, subscriberOf, makeSubscriber, onText } = parts;
  const ofSession = new Map<string, TurnFollower[]>();

  const remove = (follower: TurnFollower): void => {
    follower.stopReading();
    const { sessionId } = follower.turn;
    const left = (ofSession.get(sessionId) ?? []).filter((other) => other !== follower);
    if (left.length === 0) ofSession.delete(sessionId);
    else ofSession.set(sessionId, left);
  };

  const isCovered = (follower: TurnFollower): boolean =>
    subscriberOf(follower)?.covers(follower.turn.sessionId, follower.turn.agent) === true;

  /** The connection's place in the session's stream, where its end comes from. */
  const readerOf = (follower: TurnFollower): StreamReader | undefined =>
    subscriberOf(follower)?.readers.get(follower.turn.sessionId);

  const oweEnd = (follower: TurnFollower, after: number): void => {
    const { sink, turn } = follower;
    makeSubscriber(follower).owe(async () => {
      const end = await readTurnEnd(store, turn, after);
      if (end) sink.push(frames.entry(end.session, end.entry));
    });
  };

  const pushEnd = (follower: TurnFollower, session: SessionRef, entry: Entry): void => {
    remove(follower);
    if (isCovered(follower)) readerOf(follower)?.promise(entry.seq, () => oweEnd(follower, entry.seq - 1));
    else if (follower.sink.isFull) oweEnd(follower, entry.seq - 1);
    else follower.pushAfterAnswer(frames.entry(session, entry));
  };

  const publishOne = (follower: TurnFollower, session: SessionRef, entry: Entry): void => {
    if (isTurnEnd(entry)) pushEnd(follower, session, entry);
    else if (entry.name === "message.created" && entry.role === "assistant") follower.begin(entry.seq);
    else if (entry.name === "message.completed") follower.pushRest(session, entry, frames, isCovered(follower));
  };

  const listen = (follower: TurnFollower): void => {
    const { sessionId, turnId } = follower.turn;
    const reply = live.get(turnId);
    if (reply) {
      const reader = readerOf(follower);
      // A connection that was told by its subscription until now goes on from there.
      follower.begin(reply.seq, reader?.replySeq === reply.seq ? reader.offset : 0);
    }
    follower.stopReading = live.read(follower.turn, () => {
      if (follower.isTextDue) return;
      follower.isTextDue = true;
      onText(follower);
    });
    store.getSession(sessionId).then(
      (session) => {
        follower.ordinal ??= session?.ordinal;
        onText(follower);
      },
      () => {}, // The end tells all that was said.
    );
  };

  return {
    add(follower: TurnFollower, hasEnded: boolean): void {
      if (hasEnded) {
        oweEnd(follower, follower.turn.seq - 1);
        return;
      }
      const { sessionId } = follower.turn;
      const known = ofSession.get(sessionId);
      if (known) known.push(follower);
      else ofSession.set(sessionId, [follower]);
      if (follower.stream) listen(follower);
    },

    has: (sessionId: string): boolean => ofSession.has(sessionId),

    /** The connection gets the pieces of the turn's reply as its sender. */
    streams: (sink: PushSink, sessionId: string, turnId: string): boolean =>
      ofSession.get(sessionId)?.some((one) => one.stream && one.sink === sink && one.turn.turnId === turnId) === true,

    /** Looks whether the turn has ended already. */
    checkEnded(follower: TurnFollower): void {
      const { turnId, sessionId, seq } = follower.turn;
      store.getTurn(turnId).then(
        (turn) => {
          const isOver = turn !== undefined && turn.status !== "queued" && turn.status !== "running";
          if (!isOver || !ofSession.get(sessionId)?.includes(follower)) return;
          remove(follower);
          if (!isCovered(follower)) oweEnd(follower, seq - 1);
        },
        () => {}, // Its end is told when it comes.
      );
    },

    publish(session: SessionRef, entries: readonly Entry[]): void {
      const followers = ofSession.size > 0 ? ofSession.get(session.sessionId) : undefined;
      if (!followers) return;
      for (const follower of [...followers]) {
        follower.ordinal = session.ordinal;
        const { turnId } = follower.turn;
        for (const entry of entries) if (entry.turnId === turnId) publishOne(follower, session, entry);
      }
    },

    /** The turn went with its session: that is how it ended. */
    deleted(session: SessionRef, end: { seq: number; at: number }): void {
      for (const follower of ofSession.get(session.sessionId) ?? []) {
        remove(follower);
        if (!isCovered(follower)) follower.pushAfterAnswer(frames.deleted(session, end));
      }
    },
  };
};

export type TurnFollowers = ReturnType<typeof createTurnFollowers>;

const PAGE = 32;

/** The end of a turn as the store has it, with its session; undefined when there is none any more. */
const readTurnEnd = async (
  store: Store,
  { turnId, sessionId }: Pick<Turn, "turnId" | "sessionId">,
  after: number,
): Promise<{ session: PushedSession; entry: Entry } | undefined> => {
  const session = await store.getSession(sessionId);
  for (let from = after; session; ) {
    const page = await store.readEntries(sessionId, { after: from, limit: PAGE });
    const entry = page.find((one) => one.turnId === turnId && isTurnEnd(one));
    if (entry) return { session, entry };
    if (page.length < PAGE) return undefined;
    from = page.at(-1)?.seq as number;
  }
  return undefined;
};
