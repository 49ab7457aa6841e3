import type { TurnPlace } from "#core/sessions/journal.ts";
import { addListener, type Listeners, tellListeners } from "#kit/listeners.ts";

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
  /** Another gateway writes it: its text here may be behind the text that a reader has seen there. */
  readonly isCopy: boolean;
};

/** At this number, pieces are joined: each takes tens of bytes beside its text. */
const MOST_PIECES = 1024;

/** Replies that are being written, by turn. Readers pull what is past their offset, so that a slow one costs no memory. */
export const createLiveReplies = () => {
  const replies = new Map<string, LiveReply>();
  /** A session runs one turn at a time. */
  const ofSession = new Map<string, LiveReply>();
  const readers: Listeners<() => void> = new Map();
  return {
    open(turnId: string, sessionId: string, messageId: string, seq: number, isCopy = false): LiveReply {
      const reply: LiveReply = { turnId, sessionId, messageId, seq, length: 0, pieces: [], isCopy };
      replies.set(turnId, reply);
      ofSession.set(sessionId, reply);
      return reply;
    },
    append(reply: LiveReply, text: string): void {
      reply.pieces.push(text);
      reply.length += text.length;
      if (reply.pieces.length === MOST_PIECES) reply.pieces.push(reply.pieces.splice(0).join(""));
      // An attempt that lost its turn writes nothing that anybody reads.
      if (replies.get(reply.turnId) === reply) tellListeners(readers, reply.turnId, (wake) => wake());
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

/** The text past the first `offset` code units; empty if there is none. Searched from the end: readers are mostly near it. */
export const readSince = ({ pieces, length }: LiveReply, offset: number): string => {
  let first = pieces.length;
  let begin = length;
  while (begin > offset) begin -= (pieces[--first] as string).length;
  if (first === pieces.length) return "";
  const text = first === pieces.length - 1 ? (pieces[first] as string) : pieces.slice(first).join("");
  return begin < offset ? text.slice(offset - begin) : text;
};
