import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Entry, SessionRef, Store, Turn } from "#store/store.ts";
import type { PushedSession, PushFrames } from "./pushes.ts";
import type { PushSink } from "./stream-reader.ts";

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
  unread = (): void => {};
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

  /** What was written since; nothing for a sender that is slow. */
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

const PAGE = 32;

/** The end of a turn as the store has it, with its session; undefined when there is none any more. */
export const readTurnEnd = async (
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

export const isTurnEnd = ({ name }: Entry): boolean =>
  name === "turn.completed" || name === "turn.failed" || name === "turn.cancelled";
