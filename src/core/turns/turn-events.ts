import type { CoreParts } from "#core/parts.ts";
import { isTurnEnd } from "#core/sessions/journal.ts";
import { Stop, type StopSignal } from "#kit/stop-signal.ts";
import type { Entry, Turn } from "#store/store.ts";
import { readSince } from "./live-replies.ts";
import { erased, isEnded } from "./turns.ts";

/** A place in a turn's stream: after the entry `seq`, and after `offset` code units of the reply that was being written then. */
export type StepMark = { seq: number; offset: number };

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
 * The steps of a turn from `from` on, live until it ends. No entry is told twice or left out, and the pieces put together are the
 * reply, however often a reader comes back with the mark of the last step it saw. A slow reader gets larger pieces, not more of them.
 */
export function createTurnSteps(parts: CoreParts): FollowTurn {
  return (turn, from, show) => {
    const left = new Stop();
    return leavable(showSteps(readSteps(parts, turn, from, left), show), () => left.abort(undefined));
  };
}

async function* showSteps<T>(steps: AsyncGenerator<TurnStep, undefined>, show: Show<T>): AsyncGenerator<T, undefined> {
  for await (const step of steps) for (const event of show(step)) yield event;
}

async function* readSteps(
  { store, journal, live }: CoreParts,
  turn: Turn,
  from: StepMark | undefined,
  left: StopSignal,
): AsyncGenerator<TurnStep, undefined> {
  const { turnId, sessionId } = turn;
  const cameLate = isEnded(turn);
  let { seq, offset } = from ?? { seq: turn.seq - 1, offset: 0 };
  // A reader that has a part of the reply is told the rest of it in pieces, too, should the turn end before the next look.
  let replySeq = offset > 0 ? seq : undefined;
  /** The last entry of the session that was read. A mark names entries of this turn alone, so that it can be held to them. */
  let read = seq;
  let hasLooked = false;
  /** The news since the last look: entries that were not read, among them the turn's end, or that its session is gone. */
  const news = { isUnread: true, isEnded: cameLate, isDeleted: false };
  let wake = (): void => {};
  const pieceOf = (messageId: string, ofSeq: number, text: string): TurnStep => {
    const at = offset;
    offset += text.length;
    return { kind: "delta", messageId, seq: ofSeq, offset: at, text, mark: { seq, offset } };
  };

  const unfollow = journal.follow(sessionId, {
    entries(entries) {
      news.isUnread = true;
      news.isEnded ||= entries.some((entry) => entry.turnId === turnId && isTurnEnd(entry));
      wake();
    },
    deleted() {
      news.isDeleted = true;
      wake();
    },
  });
  const ring = (): void => wake();
  const unhear = live.read(sessionId, ring);
  left.addEventListener("abort", ring);
  try {
    for (;;) {
      if (left.aborted) return;
      if (news.isDeleted) throw erased(turnId);
      if (news.isUnread) {
        const isAllKept = news.isEnded;
        news.isUnread = false;
        const page = await store.readEntries(sessionId, { after: read, limit: PAGE });
        // Deleted before this reader followed its session, or aged out before it was read.
        const [first] = page;
        const isGap = first ? first.seq > read + 1 : isAllKept || !hasLooked;
        if (isGap && !(await store.getTurn(turnId))) throw erased(turnId);
        hasLooked = true;
        if (page.length === PAGE) news.isUnread = true;
        // The place it was asked to go on from lies behind the turn's end.
        else if (isAllKept && !page.some((entry) => entry.turnId === turnId)) return;
        for (const entry of page) {
          read = entry.seq;
          if (entry.turnId !== turnId) continue;
          if (entry.name === "message.completed" && replySeq !== undefined && !cameLate) {
            const rest = entry.text.slice(offset);
            if (rest !== "") yield pieceOf(entry.messageId, replySeq, rest);
          }
          if (entry.name === "message.created" && entry.role === "assistant") replySeq = entry.seq;
          seq = entry.seq;
          offset = 0;
          yield { kind: "entry", entry, mark: { seq, offset } };
          if (isTurnEnd(entry)) return;
        }
        continue;
      }
      const reply = live.ofSession(sessionId);
      if (reply?.turnId === turnId && reply.seq <= read) {
        // Past all that was ever written: a mark that this stream never gave.
        if (offset > reply.length && !reply.isCopy) offset = 0;
        replySeq = reply.seq;
        const text = readSince(reply, offset);
        if (text !== "") {
          yield pieceOf(reply.messageId, reply.seq, text);
          continue;
        }
      }
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    unfollow();
    unhear();
  }
}
