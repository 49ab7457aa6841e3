import type { Follower } from "#core/follow.ts";
import type { CoreParts } from "#core/parts.ts";
import type { SessionTaker } from "#core/sessions/session-streams.ts";
import { isTurnEnd } from "#core/sessions/turn-entries.ts";
import type { Entry, Store, Turn } from "#store/store.ts";
import { readSince } from "./live-replies.ts";
import { erased, isEnded } from "./turns.ts";

/** A position in a turn's stream: after the entry `seq` and the first `offset` code units of the reply that was then being written. */
export type StepMark = { seq: number; offset: number };

/** The mark, if it is from this turn's stream. Undefined is the start of the stream. */
export async function findMark(store: Store, turn: Turn, mark: StepMark | undefined): Promise<StepMark | undefined> {
  if (turn.seq === 0) return await endOfSession(store, turn);
  if (!mark) return undefined;
  const [entry] = await store.readEntries(turn.sessionId, { after: mark.seq - 1, limit: 1 });
  return entry?.turnId === turn.turnId ? mark : undefined;
}

/** The start of the stream of a turn whose group of webhooks is open: its entries will be behind all that its session has now. */
async function endOfSession(store: Store, { turnId, sessionId }: Turn): Promise<StepMark> {
  const { lastSeq = 0 } = (await store.getSession(sessionId)) ?? {};
  const { seq = 0 } = (await store.getTurn(turnId)) ?? {};
  return { seq: seq === 0 ? lastSeq : seq - 1, offset: 0 };
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

/** The most characters that wait for the reader. Further entries are read from the store later. */
const MOST_WAITING = 256 * 1024;
/** An entry without its text, and each tool call in it, counts as this many characters. */
const ENTRY_CHARACTERS = 4 * 1024;
const PAGE = 64;
const DONE = { done: true, value: undefined } as const;

/**
 * Follows the steps of a turn after `from`, until the turn ends. Each entry is returned once, and the joined pieces are the reply, even if a reader
 * reconnects with the mark of the last step that it received. The pieces of one tick of the event loop are one step. A slow reader gets larger pieces
 * instead of more pieces.
 */
export function createTurnSteps(parts: CoreParts): FollowTurn {
  return (turn, from, show) => new TurnReader(parts, turn, from, show);
}

/** A reader of a turn's stream. It is a class because thousands may wait, and an object needs less memory than a generator. */
class TurnReader<T> implements AsyncIterableIterator<T, undefined>, SessionTaker {
  readonly #parts: CoreParts;
  readonly #turn: Turn;
  readonly #show: Show<T>;
  readonly #hadEnded: boolean;
  /** The place after the last step that was shown. */
  #mark: StepMark;
  /** The `seq` of the reply that is being written, once its first entry has been shown. */
  #replySeq: number | undefined;
  #follower: Follower<Entry, SessionTaker> | undefined = undefined;
  /** The entries that have not been shown, and their length. */
  #entries: Entry[] = [];
  #characters = 0;
  /** The events that have not been returned. */
  #events: T[] = [];
  #isGap = false;
  /** True if the end of the turn was stored before this reader followed the session, or was published. */
  #isEnded: boolean;
  #isErased = false;
  /** True if the reply may have text that was not shown. It is set only at the end of a tick, so that pieces are not too small. */
  #hasGrown = false;
  /** True if the last step was shown, or `return` was called. */
  #isOver = false;
  #wake = (): void => {};

  constructor(parts: CoreParts, turn: Turn, from: StepMark | undefined, show: Show<T>) {
    this.#parts = parts;
    this.#turn = turn;
    this.#show = show;
    this.#hadEnded = isEnded(turn);
    this.#isEnded = this.#hadEnded;
    this.#mark = from ?? { seq: Math.max(turn.seq - 1, 0), offset: 0 };
    // A reader that has a part of the reply also gets the rest as a piece, even if the turn ends before the reply is read again.
    this.#replySeq = this.#mark.offset > 0 ? this.#mark.seq : undefined;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    this.#follower ??= this.#follow();
    const follower = this.#follower;
    try {
      while (this.#events.length === 0 && !this.#isOver) {
        if (this.#isErased) throw erased(this.#turn.turnId);
        const entry = this.#entries.shift();
        if (entry) this.#showEntry(entry);
        else if (follower.phase === "backfill") await this.#readPage(follower);
        // The turn ended before this reader's place in the stream.
        else if (this.#isEnded) this.#isOver = true;
        else if (!this.#showReply(follower.seq)) await this.#waitForNews();
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
    this.#events = [];
    this.#leave();
    return DONE;
  }

  #follow(): Follower<Entry, SessionTaker> {
    const follower = this.#parts.streams.of(this.#turn.sessionId).follow(this);
    follower.start(this.#mark.seq);
    return follower;
  }

  #leave(): void {
    this.#isOver = true;
    this.#entries = [];
    this.#follower?.leave();
    this.#wake();
  }

  #waitForNews(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  get isFull(): boolean {
    return this.#characters >= MOST_WAITING;
  }

  get hasRoom(): boolean {
    return !this.isFull;
  }

  /** The message of the turn is before its stream. */
  wants(entry: Entry): boolean {
    const isMessage = entry.name === "message.created" && entry.role === "user";
    return entry.turnId === this.#turn.turnId && !isMessage;
  }

  take(entry: Entry): void {
    this.#entries.push(entry);
    this.#characters += lengthOf(entry);
    this.#wake();
  }

  onGap(): void {
    this.#isGap = true;
  }

  onBackfill(): void {
    this.#wake();
  }

  wantsPieces(turnId = this.#turn.turnId): boolean {
    return turnId === this.#turn.turnId && !this.#hadEnded;
  }

  written(): void {
    this.#hasGrown = true;
    this.#wake();
  }

  ended(turnId: string): void {
    if (turnId !== this.#turn.turnId) return;
    this.#isEnded = true;
    this.#wake();
  }

  deleted(): void {
    this.#isErased = true;
    this.#follower?.leave();
    this.#wake();
  }

  async #readPage(follower: Follower<Entry, SessionTaker>): Promise<void> {
    const from = follower.seq;
    await follower.page(PAGE);
    // Entries are missing: the turn may have been deleted before this reader followed the session or read the entries.
    const isMissing = this.#isGap || follower.seq === from;
    this.#isGap = false;
    if (isMissing && !this.#isOver && !(await this.#parts.store.getTurn(this.#turn.turnId))) this.#isErased = true;
  }

  #showEntry(entry: Entry): void {
    this.#characters -= lengthOf(entry);
    if (entry.name === "message.completed" && this.#replySeq !== undefined && !this.#hadEnded) {
      const rest = entry.text.slice(this.#mark.offset);
      if (rest !== "") this.#showPiece(entry.messageId, this.#replySeq, rest);
    }
    if (entry.name === "message.created" && entry.role === "assistant") this.#replySeq = entry.seq;
    this.#mark = { seq: entry.seq, offset: 0 };
    this.#events.push(...this.#show({ kind: "entry", entry, mark: this.#mark }));
    this.#isOver ||= isTurnEnd(entry);
  }

  /** Shows the new text of the reply if the `seq` of its first entry is at most `read`. Returns false if there is no new text. */
  #showReply(read: number): boolean {
    const reply = this.#parts.live.ofSession(this.#turn.sessionId);
    if (!this.#hasGrown || reply?.turnId !== this.#turn.turnId || reply.seq > read) return false;
    this.#hasGrown = false;
    // An offset beyond the text: the mark is not from this stream.
    if (this.#mark.offset > reply.length && !reply.isCopy) this.#mark = { seq: this.#mark.seq, offset: 0 };
    this.#replySeq = reply.seq;
    const text = readSince(reply, this.#mark.offset);
    if (text !== "") this.#showPiece(reply.messageId, reply.seq, text);
    return text !== "";
  }

  #showPiece(messageId: string, ofSeq: number, text: string): void {
    const { seq, offset } = this.#mark;
    this.#mark = { seq, offset: offset + text.length };
    this.#events.push(...this.#show({ kind: "delta", messageId, seq: ofSeq, offset, text, mark: this.#mark }));
  }
}

function lengthOf(entry: Entry): number {
  const text = "text" in entry ? entry.text : "reply" in entry ? entry.reply : "";
  const calls = "toolCalls" in entry ? (entry.toolCalls?.length ?? 0) : 0;
  return text.length + ENTRY_CHARACTERS * (1 + calls);
}
