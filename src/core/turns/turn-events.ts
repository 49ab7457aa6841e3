import type { CoreParts } from "#core/parts.ts";
import { isTurnEnd } from "#core/sessions/journal.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Entry, Store, Turn } from "#store/store.ts";
import { readSince } from "./live-replies.ts";
import { erased, isEnded } from "./turns.ts";

/** A place in a turn's stream: after the entry `seq`, and after `offset` code units of the reply that was being written then. */
export type StepMark = { seq: number; offset: number };

/** The mark, if it is from this turn's stream. Undefined is the start of the stream. */
export async function findMark(store: Store, turn: Turn, mark: StepMark | undefined): Promise<StepMark | undefined> {
  if (!mark) return undefined;
  const [entry] = await store.readEntries(turn.sessionId, { after: mark.seq - 1, limit: 1 });
  return entry?.turnId === turn.turnId ? mark : undefined;
}

/** One step of a turn: an entry of the journal, or a piece of a reply that is being written. `mark` is the place after it. */
export type TurnStep =
  | { kind: "entry"; entry: Entry; mark: StepMark }
  | { kind: "delta"; messageId: string; seq: number; offset: number; text: string; mark: StepMark };

/** Steps in order. A reader may leave at any time with `return`, also while it waits for the next step. */
export type TurnSteps<T = TurnStep> = AsyncIterableIterator<T, undefined> & {
  return(): Promise<IteratorResult<T, undefined>>;
};

/** The events for a reader that stand for a step; none for a step that the reader is not told. */
type Show<T> = (step: TurnStep) => readonly T[];

export type FollowTurn = <T>(turn: Turn, from: StepMark | undefined, show: Show<T>) => TurnSteps<T>;

const PAGE = 200;
const DONE = { done: true, value: undefined } as const;

/** A generator whose reader may leave while it waits: `leave` has it go on, to its end. */
export function leavable<T>(steps: AsyncGenerator<T, undefined>, leave: () => void): TurnSteps<T> {
  const end = steps.return.bind(steps, undefined);
  return Object.assign(steps, {
    async return() {
      leave();
      void end().catch(() => {});
      return DONE;
    },
  });
}

/**
 * The steps of a turn from `from` on, live until it ends. No entry is given twice or left out, and the pieces put together are the
 * reply, however often a reader returns with the mark of the last step it saw. The pieces of one tick of the event loop are one step, and a slow reader
 * gets larger pieces, not more of them.
 */
export function createTurnSteps(parts: CoreParts): FollowTurn {
  return (turn, from, show) => new TurnReader(parts, turn, from, show);
}

/** One reader of the stream of a turn. A class, as it holds less than a generator while it waits, and thousands may wait. */
class TurnReader<T> implements AsyncIterableIterator<T, undefined> {
  readonly #parts: CoreParts;
  readonly #turn: Turn;
  readonly #show: Show<T>;
  readonly #cameLate: boolean;
  #seq: number;
  #offset: number;
  /** The last entry of the session that was read. A mark names only entries of this turn, so that it can be checked against them. */
  #read: number;
  /** The `seq` of the reply that is being written, once this reader has a part of it. */
  #replySeq: number | undefined;
  #hasPolled = false;
  /** There are entries that were not read. */
  #isUnread = true;
  /** The end of the turn is among the entries. */
  #isEnded: boolean;
  /** The reply may have text that this reader does not have. It is polled at the end of a tick only, so that it does not come in crumbs. */
  #hasGrown = false;
  #isDeleted = false;
  /** The last step was read, or the reader has left. */
  #isOver = false;
  /** Steps that were read and not shown yet, and events that were shown and not taken yet. */
  #steps: TurnStep[] = [];
  #events: T[] = [];
  #wake = (): void => {};
  #stopListening: (() => void) | undefined = undefined;

  constructor(parts: CoreParts, turn: Turn, from: StepMark | undefined, show: Show<T>) {
    const { seq, offset } = from ?? { seq: turn.seq - 1, offset: 0 };
    this.#parts = parts;
    this.#turn = turn;
    this.#show = show;
    this.#cameLate = isEnded(turn);
    this.#isEnded = this.#cameLate;
    this.#seq = seq;
    this.#offset = offset;
    this.#read = seq;
    // A reader that has a part of the reply gets the rest of it in pieces, too, should the turn end before the next poll.
    this.#replySeq = offset > 0 ? seq : undefined;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    this.#stopListening ??= this.#listen();
    try {
      while (this.#events.length === 0) {
        const step = this.#steps.shift();
        if (step) this.#events.push(...this.#show(step));
        else if (this.#isOver) break;
        else if (this.#isDeleted) throw erased(this.#turn.turnId);
        else if (this.#isUnread) await this.#readEntries();
        else if (!this.#readReply()) await this.#news();
      }
    } catch (error) {
      this.#leave();
      throw error;
    }
    if (this.#events.length > 0) return { done: false, value: this.#events.shift() as T };
    this.#leave();
    return DONE;
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#leave();
    return DONE;
  }

  #listen(): () => void {
    const { journal, live } = this.#parts;
    const { sessionId } = this.#turn;
    const unfollow = journal.follow(sessionId, this);
    const unread = live.read(sessionId, this.#grow);
    readAtTickEnd(this.#grow);
    return () => {
      unfollow();
      unread();
    };
  }

  #leave(): void {
    this.#isOver = true;
    this.#steps = [];
    this.#events = [];
    this.#stopListening?.();
    this.#wake();
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** The journal's listener. */
  entries(entries: readonly Entry[]): void {
    this.#isUnread = true;
    this.#isEnded ||= entries.some((entry) => entry.turnId === this.#turn.turnId && isTurnEnd(entry));
    this.#wake();
  }

  /** The journal's listener. */
  deleted(): void {
    this.#isDeleted = true;
    this.#wake();
  }

  readonly #grow = (): void => {
    this.#hasGrown = true;
    this.#wake();
  };

  async #readEntries(): Promise<void> {
    const { store } = this.#parts;
    const { turnId, sessionId } = this.#turn;
    const areAllStored = this.#isEnded;
    this.#isUnread = false;
    const page = await store.readEntries(sessionId, { after: this.#read, limit: PAGE });
    // Deleted before this reader followed its session, or aged out before it was read.
    const [first] = page;
    const isGap = first ? first.seq > this.#read + 1 : areAllStored || !this.#hasPolled;
    if (isGap && !(await store.getTurn(turnId))) throw erased(turnId);
    this.#hasPolled = true;
    if (page.length === PAGE) this.#isUnread = true;
    // The place to continue from is behind the turn's end.
    else if (areAllStored && !page.some((entry) => entry.turnId === turnId)) this.#isOver = true;
    for (const entry of page) {
      this.#read = entry.seq;
      if (entry.turnId === turnId && !this.#isOver) this.#addEntry(entry);
    }
  }

  #addEntry(entry: Entry): void {
    if (entry.name === "message.completed" && this.#replySeq !== undefined && !this.#cameLate) {
      const rest = entry.text.slice(this.#offset);
      if (rest !== "") this.#addPiece(entry.messageId, this.#replySeq, rest);
    }
    if (entry.name === "message.created" && entry.role === "assistant") this.#replySeq = entry.seq;
    this.#seq = entry.seq;
    this.#offset = 0;
    this.#steps.push({ kind: "entry", entry, mark: { seq: entry.seq, offset: 0 } });
    this.#isOver ||= isTurnEnd(entry);
  }

  /** False if there is nothing new. */
  #readReply(): boolean {
    const reply = this.#parts.live.ofSession(this.#turn.sessionId);
    if (!this.#hasGrown || reply?.turnId !== this.#turn.turnId || reply.seq > this.#read) return false;
    this.#hasGrown = false;
    // Past all that was ever written: a mark that this stream never gave.
    if (this.#offset > reply.length && !reply.isCopy) this.#offset = 0;
    this.#replySeq = reply.seq;
    const text = readSince(reply, this.#offset);
    if (text !== "") this.#addPiece(reply.messageId, reply.seq, text);
    return text !== "";
  }

  #addPiece(messageId: string, ofSeq: number, text: string): void {
    const offset = this.#offset;
    this.#offset += text.length;
    const mark = { seq: this.#seq, offset: this.#offset };
    this.#steps.push({ kind: "delta", messageId, seq: ofSeq, offset, text, mark });
  }
}
