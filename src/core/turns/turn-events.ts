import { isTurnEnd, type Journal, type JournalListener } from "#core/sessions/journal.ts";
import type { Entry, Store, Turn } from "#store/store.ts";
import { type LiveReplies, type LiveReply, readSince } from "./live-replies.ts";
import { erased, isEnded } from "./turns.ts";

/** A place in a turn's stream: after the entry `seq`, and after `offset` code units of the reply that was being written then. */
export type StepMark = { seq: number; offset: number };

/** One step of a turn: an entry of the journal, or a piece of a reply that is being written. `mark` is the place after it. */
export type TurnStep =
  | { kind: "entry"; entry: Entry; mark: StepMark }
  | { kind: "delta"; messageId: string; seq: number; offset: number; text: string; mark: StepMark };

/** Steps in order. Who reads asks for one at a time, and may leave at any time with `return`. */
export type TurnSteps<T = TurnStep> = Required<Pick<AsyncIterator<T, undefined, undefined>, "next" | "return">> & {
  /** In place of `next`, for who tells them on when it likes: the next step, or undefined where there is none yet; then `wake` is called once, as soon as it is worth another look. */
  pull(wake: () => void): IteratorResult<T, undefined> | undefined;
  [Symbol.asyncIterator](): TurnSteps<T>;
};

/** Turns a step into what a reader is told; undefined for one that it is not told. */
type Show<T> = (step: TurnStep) => T | undefined;

export type FollowTurn = {
  (turn: Turn, from: StepMark | undefined): TurnSteps;
  <T>(turn: Turn, from: StepMark | undefined, show: Show<T>): TurnSteps<T>;
};

type Parts = { store: Store; journal: Journal; live: LiveReplies };

/**
 * The steps of a turn from `from` on, live until it ends. No entry is told twice or left out, and the pieces put together are the
 * reply, however often a reader comes back with the mark of the last step it saw. A slow reader gets larger pieces, not more of them.
 */
export const createTurnSteps = (parts: Parts): FollowTurn => {
  const asItIs: Show<TurnStep> = (step) => step;
  return <T>(turn: Turn, from: StepMark | undefined, show = asItIs as Show<T>) =>
    new TurnReader(parts, turn, from, show);
};

const PAGE = 200;
const NOTHING: readonly Entry[] = [];
const DONE = { done: true, value: undefined } as const;

/**
 * A class and no generator, as thousands of these may wait at once: a waiting one holds its places in two tables of listeners, and no frame
 * of a function.
 */
class TurnReader<T> implements TurnSteps<T>, JournalListener {
  readonly #parts: Parts;
  readonly #turnId: string;
  readonly #sessionId: string;
  readonly #show: Show<T>;
  readonly #cameLate: boolean;
  #seq: number;
  #offset: number;
  /** What was read of the session. A mark names entries of this turn alone, so that it can be held to them. */
  #read: number;
  #replySeq: number | undefined = undefined;
  /** The one that is being written. */
  #reply: LiveReply | undefined = undefined;
  #page = NOTHING;
  #at = 0;
  #looked = false;
  #reading = false;
  /** Entries have come that were not read. */
  #unread = true;
  #deleted = false;
  /** The turn's end is in the journal. */
  #ended: boolean;
  /** All there is was told, or the reader has left. */
  #over = false;
  /** Reading failed, which nobody was told of yet. */
  #failure: { error: unknown } | undefined = undefined;
  #wake: (() => void) | undefined = undefined;
  readonly #unfollow: () => void;
  readonly #unhear: () => void;

  constructor(parts: Parts, turn: Turn, from: StepMark | undefined, show: Show<T>) {
    this.#parts = parts;
    this.#turnId = turn.turnId;
    this.#sessionId = turn.sessionId;
    this.#show = show;
    this.#cameLate = isEnded(turn);
    this.#ended = this.#cameLate;
    this.#seq = from?.seq ?? turn.seq - 1;
    this.#offset = from?.offset ?? 0;
    // Whoever has read of the reply is told the rest of it in pieces, too, should the turn end before the next look.
    if (this.#offset > 0) this.#replySeq = from?.seq;
    this.#read = this.#seq;
    this.#unfollow = parts.journal.follow(turn.sessionId, this);
    this.#unhear = parts.live.read(turn, () => this.#ring());
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve, reject) => {
      const look = () => {
        try {
          const step = this.pull(later);
          if (step) resolve(step);
        } catch (error) {
          reject(error);
        }
      };
      // In a moment: what is written meanwhile comes in one piece.
      const later = () => queueMicrotask(look);
      look();
    });
  }

  pull(wake: () => void): IteratorResult<T, undefined> | undefined {
    if (!this.#reading) {
      const step = this.#step();
      if (step) return step;
    }
    this.#wake = wake;
    return undefined;
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#leave();
    return DONE;
  }

  entries(entries: readonly Entry[]): void {
    this.#ended ||= entries.some((entry) => entry.turnId === this.#turnId && isTurnEnd(entry));
    this.#unread = true;
    this.#ring();
  }

  deleted(): void {
    this.#deleted = true;
    this.#ring();
  }

  /** Calls who was told that there is nothing yet. */
  #ring(): void {
    if (this.#reading) return;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** What there is to tell; else reads on, where there is more to read. */
  #step(): IteratorResult<T, undefined> | undefined {
    try {
      if (this.#failure) throw this.#failure.error;
      if (this.#deleted && !this.#over) throw erased(this.#turnId);
      const value = this.#over ? undefined : this.#take();
      if (value !== undefined) return { done: false, value };
    } catch (error) {
      this.#failure = undefined;
      this.#leave();
      throw error;
    }
    if (this.#over) {
      this.#leave();
      return DONE;
    }
    if (this.#unread) this.#readOn();
    return undefined;
  }

  /** The next step that this reader is told, of what was read and of the reply as it is now. */
  #take(): T | undefined {
    while (this.#at < this.#page.length) {
      const shown = this.#takeEntry(this.#page[this.#at] as Entry);
      if (shown !== undefined || this.#over) return shown;
    }
    this.#page = NOTHING;
    if (this.#unread || this.#over) return undefined;
    const reply = this.#liveReply();
    if (!reply || reply.seq > this.#read) return undefined;
    if (this.#offset > reply.length) {
      if (reply.isCopy) return undefined;
      // Past all that was ever written: a mark that this stream never gave.
      this.#offset = 0;
    }
    this.#replySeq = reply.seq;
    const text = readSince(reply, this.#offset);
    return text === "" ? undefined : this.#piece(reply.messageId, reply.seq, text);
  }

  #liveReply(): LiveReply | undefined {
    if (!this.#reply || this.#reply.isOver) this.#reply = this.#parts.live.get(this.#turnId);
    return this.#reply;
  }

  #takeEntry(entry: Entry): T | undefined {
    if (entry.turnId !== this.#turnId) {
      this.#read = entry.seq;
      this.#at++;
      return undefined;
    }
    if (entry.name === "message.completed" && this.#replySeq !== undefined && !this.#cameLate) {
      const rest = entry.text.slice(this.#offset);
      if (rest !== "") return this.#piece(entry.messageId, this.#replySeq, rest);
    }
    if (entry.name === "message.created" && entry.role === "assistant") this.#replySeq = entry.seq;
    this.#read = entry.seq;
    this.#at++;
    this.#seq = entry.seq;
    this.#offset = 0;
    if (isTurnEnd(entry)) this.#over = true;
    return this.#show({ kind: "entry", entry, mark: { seq: entry.seq, offset: 0 } });
  }

  #piece(messageId: string, seq: number, text: string): T | undefined {
    const offset = this.#offset;
    this.#offset += text.length;
    return this.#show({ kind: "delta", messageId, seq, offset, text, mark: { seq: this.#seq, offset: this.#offset } });
  }

  #readOn(): void {
    this.#reading = true;
    const done = () => {
      this.#reading = false;
      this.#ring();
    };
    this.#readPage().then(done, (error: unknown) => {
      this.#failure = { error };
      done();
    });
  }

  async #readPage(): Promise<void> {
    const { store } = this.#parts;
    const isAllKept = this.#ended;
    this.#unread = false;
    const page = await store.readEntries(this.#sessionId, { after: this.#read, limit: PAGE });
    // Deleted before this reader followed its session, or aged out before it was read.
    const [first] = page;
    const isGap = first ? first.seq > this.#read + 1 : isAllKept || !this.#looked;
    if (isGap && !(await store.getTurn(this.#turnId))) throw erased(this.#turnId);
    this.#looked = true;
    this.#page = page;
    this.#at = 0;
    if (page.length === PAGE) this.#unread = true;
    // The place it was asked to go on from lies behind the turn's end.
    else if (isAllKept && !page.some((entry) => entry.turnId === this.#turnId)) this.#over = true;
  }

  /** Follows nothing any more; who waits is told that there is nothing. */
  #leave(): void {
    this.#over = true;
    this.#page = NOTHING;
    this.#reply = undefined;
    this.#at = 0;
    this.#unfollow();
    this.#unhear();
    this.#reading = false;
    this.#ring();
  }
}
