import type { EntryOutline } from "./entry-outlines.ts";
import { eraseTurn } from "./erasing.ts";
import { NONE } from "./log-arena.ts";
import type { SessionRow } from "./session-row.ts";
import type { State } from "./state.ts";

/** A turn that begins in the head, or of which an earlier sweep left the end there. */
type HeadTurn = {
  readonly turnId: string;
  readonly firstSeq: number;
  begun: { seq: number; deliveryId: string | undefined } | undefined;
  hasEnded: boolean;
};

const ENDS: ReadonlySet<string> = new Set(["turn.completed", "turn.failed", "turn.cancelled"]);

/**
 * Erases what may go of a journal's head, and looks at about so many entries for it. Answers how many those were; `state.ageing` is what
 * is left to be looked at, and gone on with when it is called again.
 */
export const ageHead = (state: State, session: SessionRow, bound: number, limit: number): number => {
  const known = state.ageing?.ordinal === session.ordinal ? state.ageing : undefined;
  const head = known ?? new JournalHead(state, session, bound);
  const entries = head.lookOn(session, limit);
  state.ageing = head.isDone ? undefined : head;
  return entries;
};

/** The head of a journal, entry by entry from the oldest on, until one comes that is to be kept. */
export class JournalHead {
  readonly ordinal: number;
  readonly #state: State;
  readonly #bound: number;
  /** Those that are not erased yet, in the order in which they began. */
  readonly #turns = new Map<string, HeadTurn>();
  #chunk: number;
  /** What comes next. */
  #seq: number;
  /** Nothing from here on may go. */
  #keptSeq = Infinity;
  /** Why: nothing more may go until then. */
  #keptUntil = 0;

  constructor(state: State, session: SessionRow, bound: number) {
    this.ordinal = session.ordinal;
    this.#state = state;
    this.#bound = bound;
    this.#chunk = session.head;
    this.#seq = session.firstSeq;
  }

  get isDone(): boolean {
    return this.#chunk === NONE;
  }

  lookOn(session: SessionRow, limit: number): number {
    const { logs, summaries } = this.#state;
    const { isCompacted } = summaries.marksOf(this.ordinal);
    let looked = 0;
    while (!this.isDone && looked < limit) {
      const { outlines, next } = logs.outline(session, this.#chunk);
      looked += outlines.length;
      this.#chunk = next;
      for (const one of outlines) if (one.seq >= this.#seq && !this.#isKnown()) this.#look(one, isCompacted);
      if (this.#isKnown()) this.#chunk = NONE;
    }
    logs.eraseHead(session, Math.min(this.#seq, this.#keptSeq, this.#first?.firstSeq ?? Infinity));
    if (this.isDone) summaries.keepHead(this.ordinal, this.#isKnown() ? this.#keptUntil : 0);
    return looked;
  }

  /** The oldest turn that is not erased. */
  get #first(): HeadTurn | undefined {
    const [first] = this.#turns.values();
    return first;
  }

  /** All that begins before what is kept has been erased. */
  #isKnown(): boolean {
    return this.#seq >= this.#keptSeq && (this.#first?.firstSeq ?? Infinity) >= this.#keptSeq;
  }

  #look({ seq, at, name, turnId, isReply, begun }: EntryOutline, isCompacted: (seq: number) => boolean): void {
    this.#seq = seq + 1;
    if (at > this.#bound) {
      // What has not ended by here ends later than the bound.
      this.#keep(Math.min(seq, this.#first?.firstSeq ?? seq), at);
      return;
    }
    const turn = turnId === "" ? undefined : this.#turnOf(turnId, seq);
    if (!turn) return;
    if (begun) turn.begun = { seq, ...begun };
    const isMessage = name === "message.completed" || (name === "message.created" && !isReply);
    if (isMessage && !isCompacted(seq)) this.#keep(turn.firstSeq, Infinity);
    if (!ENDS.has(name)) return;
    turn.hasEnded = true;
    if (this.#state.announcements.hasOf(turnId)) this.#keep(turn.firstSeq, 0);
    this.#eraseEnded();
  }

  #turnOf(turnId: string, seq: number): HeadTurn | undefined {
    const known = this.#turns.get(turnId);
    if (known || seq >= this.#keptSeq) return known;
    const turn: HeadTurn = { turnId, firstSeq: seq, begun: undefined, hasEnded: false };
    this.#turns.set(turnId, turn);
    return turn;
  }

  #keep(seq: number, until: number): void {
    if (seq >= this.#keptSeq) return;
    this.#keptSeq = seq;
    this.#keptUntil = until;
  }

  #eraseEnded(): void {
    const { ordinal } = this;
    for (const { turnId, firstSeq, begun, hasEnded } of this.#turns.values()) {
      if (!hasEnded || firstSeq >= this.#keptSeq) return;
      this.#turns.delete(turnId);
      if (begun) eraseTurn(this.#state, { ordinal, turnId, ...begun });
    }
  }
}
