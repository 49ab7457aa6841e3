import type { TurnPlace } from "./journal.ts";
import { addListener, type Listeners, tellListeners } from "./listeners.ts";

/**
 * A reply while it is being written. No journal entry: the node that runs the turn holds it until the turn ends, and those where
 * somebody reads it (shared-replies.ts).
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
};

/** Replies that are being written, by turn. Readers pull what is past their offset, so that a slow one costs no memory. */
export const createLiveReplies = () => {
  const replies = new Map<string, LiveReply>();
  /** A session runs one turn at a time. */
  const ofSession = new Map<string, LiveReply>();
  const readers: Listeners<() => void> = new Map();
  const wake = (turnId: string) => {
    if (readers.size > 0) tellListeners(readers, turnId, (reader) => reader());
  };
  return {
    open(turnId: string, sessionId: string, messageId: string, seq: number): LiveReply {
      const reply = { turnId, sessionId, messageId, seq, length: 0, pieces: [] };
      replies.set(turnId, reply);
      ofSession.set(sessionId, reply);
      return reply;
    },
    append(reply: LiveReply, text: string): void {
      reply.pieces.push(text);
      reply.length += text.length;
      wake(reply.turnId);
    },
    close(reply: LiveReply): void {
      if (replies.get(reply.turnId) === reply) replies.delete(reply.turnId);
      if (ofSession.get(reply.sessionId) === reply) ofSession.delete(reply.sessionId);
    },
    get: (turnId: string): LiveReply | undefined => replies.get(turnId),
    ofSession: (sessionId: string): LiveReply | undefined => ofSession.get(sessionId),
    textSince: readSince,
    /** Calls `wake` when the turn's reply grows; the returned function ends it. */
    read: ({ turnId }: TurnPlace, wake: () => void): (() => void) => addListener(readers, turnId, wake),
    /** Calls `found` when a reply comes up that is being written in this session already; the returned function ends it. */
    seek: (_sessionId: string, _found: () => void): (() => void) => doNothing,
  };
};

/** All that is written in the session is written here, and was there from its beginning. */
const doNothing = (): void => {};

export type LiveReplies = ReturnType<typeof createLiveReplies>;

/** What was written past the first `offset` code units; empty when nothing was. */
export const readSince = (reply: LiveReply, offset: number): string => {
  const newest = reply.pieces.at(-1) ?? "";
  if (offset === reply.length - newest.length) return newest;
  return offset >= reply.length ? "" : reply.pieces.join("").slice(offset);
};
