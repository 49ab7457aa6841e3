import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Entry, SessionRef, Store } from "#store/store.ts";
import type { PushFrames } from "./pushes.ts";
import type { PushSink, StreamReader } from "./stream-reader.ts";
import type { Subscriber } from "./subscriber.ts";
import { isTurnEnd, readTurnEnd, type TurnFollower } from "./turn-follower.ts";

export type TurnFollowersParts = {
  store: Store;
  live: LiveReplies;
  frames: PushFrames;
  /** What a connection is subscribed to; undefined when it is to nothing. */
  subscriberOf(follower: TurnFollower): Subscriber | undefined;
  /** The same, made where there is none. */
  makeSubscriber(follower: TurnFollower): Subscriber;
  /** Has `flushText` called before this turn of the event loop ends its writes. */
  onText(follower: TurnFollower): void;
};

/** Those who sent something and wait for its end, by session: one look for all entries of a transaction. */
export const createTurnFollowers = (parts: TurnFollowersParts) => {
  const { store, live, frames, subscriberOf, makeSubscriber, onText } = parts;
  const ofSession = new Map<string, TurnFollower[]>();

  const remove = (follower: TurnFollower): void => {
    follower.unread();
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

  const tellEnd = (follower: TurnFollower, session: SessionRef, entry: Entry): void => {
    remove(follower);
    if (isCovered(follower)) readerOf(follower)?.promise(entry.seq, () => oweEnd(follower, entry.seq - 1));
    else if (follower.sink.isFull) oweEnd(follower, entry.seq - 1);
    else follower.pushAfterAnswer(frames.entry(session, entry));
  };

  const tellOne = (follower: TurnFollower, session: SessionRef, entry: Entry): void => {
    if (isTurnEnd(entry)) tellEnd(follower, session, entry);
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
    follower.unread = live.read(follower.turn, () => {
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
    lookAgain(follower: TurnFollower): void {
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

    tell(session: SessionRef, entries: readonly Entry[]): void {
      const followers = ofSession.size > 0 ? ofSession.get(session.sessionId) : undefined;
      if (!followers) return;
      for (const follower of [...followers]) {
        follower.ordinal = session.ordinal;
        const { turnId } = follower.turn;
        for (const entry of entries) if (entry.turnId === turnId) tellOne(follower, session, entry);
      }
    },

    /** The turn went with its session: that is how it ended. */
    deleted(session: SessionRef, end: { seq: number; at: number }): void {
      for (const follower of ofSession.get(session.sessionId) ?? []) {
        remove(follower);
        if (!isCovered(follower)) follower.pushAfterAnswer(frames.deleted(session, end));
      }
    },

    flushText: (follower: TurnFollower): void => follower.flushText(live, frames),
  };
};

export type TurnFollowers = ReturnType<typeof createTurnFollowers>;
