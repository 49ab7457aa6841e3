import type { Entry, Store, Turn } from "#store/store.ts";
import { isTurnEnd, type Journal } from "./journal.ts";
import { type LiveReplies, readSince } from "./live-replies.ts";
import { erased, isEnded } from "./turns.ts";

/** A place in a turn's stream: after the entry `seq`, and after `offset` code units of the reply that was being written then. */
export type StepMark = { seq: number; offset: number };

/** One step of a turn: an entry of the journal, or a piece of a reply that is being written. `mark` is the place after it. */
export type TurnStep =
  | { kind: "entry"; entry: Entry; mark: StepMark }
  | { kind: "delta"; messageId: string; seq: number; offset: number; text: string; mark: StepMark };

const PAGE = 200;

/**
 * The steps of a turn from `from` on, live until it ends. No entry is told twice or left out, and the pieces put together are the
 * reply, however often a reader comes back with the mark of the last step it saw. A slow reader gets larger pieces, not more of them.
 */
export const createTurnSteps = ({ store, journal, live }: { store: Store; journal: Journal; live: LiveReplies }) =>
  async function* follow(turn: Turn, from: StepMark | undefined, signal: AbortSignal): AsyncGenerator<TurnStep> {
    const { turnId, sessionId } = turn;
    const cameLate = isEnded(turn);
    const mark: StepMark = from ? { ...from } : { seq: turn.seq - 1, offset: 0 };
    /** What was read of the session. A mark names entries of this turn alone, so that it can be held to them. */
    let read = mark.seq;
    let replySeq: number | undefined;
    let looked = false;
    let ended = cameLate;
    const bell = createBell();
    const hear = (entries: readonly Entry[]) => {
      ended ||= entries.some((entry) => entry.turnId === turnId && isTurnEnd(entry));
      bell.ringEntries();
    };
    const unfollow = journal.follow(sessionId, { entries: hear, deleted: bell.ringDeleted });
    const unread = live.read(turnId, bell.ringText);
    signal.addEventListener("abort", bell.ringText, { once: true });

    const piece = (messageId: string, seq: number, text: string): TurnStep => {
      const { offset } = mark;
      mark.offset += text.length;
      return { kind: "delta", messageId, seq, offset, text, mark: { ...mark } };
    };

    try {
      while (!signal.aborted) {
        if (bell.takeDeleted()) throw erased(turnId);
        const isAllKept = ended;
        const entries = bell.takeEntries() ? await store.readEntries(sessionId, { after: read, limit: PAGE }) : [];
        if (entries.length === PAGE) bell.ringEntries();
        // Deleted before this reader followed its session.
        if (!looked && entries.length === 0 && !(await store.getTurn(turnId))) throw erased(turnId);
        looked = true;
        for (const entry of entries) {
          read = entry.seq;
          if (entry.turnId !== turnId) continue;
          if (entry.name === "message.completed" && replySeq !== undefined && !cameLate) {
            const rest = entry.text.slice(mark.offset);
            if (rest !== "") yield piece(entry.messageId, replySeq, rest);
          }
          if (entry.name === "message.created" && entry.role === "assistant") replySeq = entry.seq;
          mark.seq = entry.seq;
          mark.offset = 0;
          yield { kind: "entry", entry, mark: { ...mark } };
          if (isTurnEnd(entry)) return;
        }
        // The place it was asked to go on from lies behind the turn's end.
        if (isAllKept && entries.length < PAGE) return;
        const reply = live.get(turnId);
        if (reply && reply.seq <= read) {
          // Past all that was ever written: a mark that this stream never gave.
          if (mark.offset > reply.length) mark.offset = 0;
          replySeq = reply.seq;
          const text = readSince(reply, mark.offset);
          if (text !== "") yield piece(reply.messageId, reply.seq, text);
        }
        await bell.heard(signal);
      }
    } finally {
      unfollow();
      unread();
      signal.removeEventListener("abort", bell.ringText);
    }
  };

export type FollowTurn = ReturnType<typeof createTurnSteps>;

/** Remembers what rang while its owner was busy, so that nothing is missed between a read and a wait. */
const createBell = () => {
  let entries = true;
  let text = false;
  let deleted = false;
  let wake = () => {};
  const ring = () => wake();
  return {
    ringEntries: () => {
      entries = true;
      ring();
    },
    ringText: () => {
      text = true;
      ring();
    },
    ringDeleted: () => {
      deleted = true;
      ring();
    },
    takeEntries: () => {
      const rang = entries;
      entries = false;
      return rang;
    },
    takeDeleted: () => deleted,
    async heard(signal: AbortSignal): Promise<void> {
      if (!entries && !text && !deleted && !signal.aborted) await new Promise<void>((resolve) => (wake = resolve));
      text = false;
    },
  };
};
