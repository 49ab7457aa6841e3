import type { CoreParts } from "#core/parts.ts";
import { isTurnEnd } from "#core/sessions/journal.ts";
import { readAtTickEnd } from "#kit/tick-end.ts";
import type { Entry, Store, Turn } from "#store/store.ts";
import { readSince } from "./live-replies.ts";
import { erased, isEnded } from "./turns.ts";

/** A position in a turn's stream: after the entry `seq` and the first `offset` code units of the reply that was then being written. */
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

/** The steps in order. A reader may call `return` at any time, even while it waits for the next step. */
export type TurnSteps<T = TurnStep> = AsyncIterableIterator<T, undefined> & {
  return(): Promise<IteratorResult<T, undefined>>;
};

/** Converts a step to the events for a reader. Empty for a step that the reader does not get. */
type Show<T> = (step: TurnStep) => readonly T[];

export type FollowTurn = <T>(turn: Turn, from: StepMark | undefined, show: Show<T>) => TurnSteps<T>;

const PAGE = 200;
const DONE = { done: true, value: undefined } as const;

/** Makes a generator whose reader may call `return` while it waits. `leave` must end the wait, so that the generator can finish. */
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
 * Follows the steps of a turn after `from`, until the turn ends. Each entry is returned once, and the joined pieces are the reply, even if a reader
 * reconnects with the mark of the last step that it received. The pieces of one tick of the event loop are one step. A slow reader gets larger pieces
 * instead of more pieces.
 */
export function createTurnSteps(parts: CoreParts): FollowTurn {
  return (turn, from, show) => new TurnReader(parts, turn, from, show);
}

/** A reader of a turn's stream. It is a class because thousands may wait, and an object needs less memory than a generator. */
class TurnReader<T> implements AsyncIterableIterator<T, undefined> {
  readonly #parts: CoreParts;
  readonly #turn: Turn;
  readonly #show: Show<T>;
  readonly #hadEnded: boolean;
  #seq: number;
  #offset: number;
  /** The `seq` of the last entry that was read, of any turn of the session. `#seq` is the last one of this turn: marks are checked against the turn. */
  #read: number;
  /** The `seq` of the reply that is being written, once its first entry has been read. */
  #replySeq: number | undefined;
  #hasPolled = false;
  /** True if there may be unread entries. */
  #isUnread = true;
  /** True if the end of the turn is stored. */
  #isEnded: boolean;
  /** True if the reply may have text that this reader has not received. It is set only at the end of a tick, so that pieces are not too small. */
  #hasGrown = false;
  #isDeleted = false;
  /** True if the last step was read, or `return` was called. */
  #isOver = false;
  /** The steps that have been read but not converted. */
  #steps: TurnStep[] = [];
  /** The events that have not been returned. */
  #events: T[] = [];
  #wake = (): void => {};
  #stopListening: (() => void) | undefined = undefined;

  constructor(parts: CoreParts, turn: Turn, from: StepMark | undefined, show: Show<T>) {
    const { seq, offset } = from ?? { seq: turn.seq - 1, offset: 0 };
    this.#parts = parts;
    this.#turn = turn;
    this.#show = show;
    this.#hadEnded = isEnded(turn);
    this.#isEnded = this.#hadEnded;
    this.#seq = seq;
    this.#offset = offset;
    this.#read = seq;
    // A reader that has a part of the reply also gets the rest as a piece, even if the turn ends before the reply is read again.
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
        else if (!this.#readReply()) await this.#waitForNews();
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

  #waitForNews(): Promise<void> {
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
    // Entries are missing: the turn may have been deleted before this reader followed the session or read the entries.
    const [first] = page;
    const isGap = first ? first.seq > this.#read + 1 : areAllStored || !this.#hasPolled;
    if (isGap && !(await store.getTurn(turnId))) throw erased(turnId);
    this.#hasPolled = true;
    if (page.length === PAGE) this.#isUnread = true;
    // The reader started after the turn's end.
    else if (areAllStored && !page.some((entry) => entry.turnId === turnId)) this.#isOver = true;
    for (const entry of page) {
      this.#read = entry.seq;
      if (entry.turnId === turnId && !this.#isOver) this.#addEntry(entry);
    }
  }

  #addEntry(entry: Entry): void {
    if (entry.name === "message.completed" && this.#replySeq !== undefined && !this.#hadEnded) {
      const rest = entry.text.slice(this.#offset);
      if (rest !== "") this.#addPiece(entry.messageId, this.#replySeq, rest);
    }
    if (entry.name === "message.created" && entry.role === "assistant") this.#replySeq = entry.seq;
    this.#seq = entry.seq;
    this.#offset = 0;
    this.#steps.push({ kind: "entry", entry, mark: { seq: entry.seq, offset: 0 } });
    this.#isOver ||= isTurnEnd(entry);
  }

  /** Adds the new text of the reply as a step. Returns false if there is none. */
  #readReply(): boolean {
    const reply = this.#parts.live.ofSession(this.#turn.sessionId);
    if (!this.#hasGrown || reply?.turnId !== this.#turn.turnId || reply.seq > this.#read) return false;
    this.#hasGrown = false;
    // An offset beyond the text: the mark is not from this stream.
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
