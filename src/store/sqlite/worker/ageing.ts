import { decodeEntries } from "../entry-codec.ts";
import { eraseTurn } from "./erasing.ts";
import { type JournalRow, ROWS_A_LOOK } from "./journal.ts";
import type { SessionRow } from "./rows.ts";
import type { State } from "./state.ts";
import type { Marks } from "./summaries.ts";
import { decodeEndedTurn } from "./turn-codec.ts";

const MINUTE = 60_000;
/** It is looked at with each sweep: nothing tells when it may go. */
const NOW = 0;

type Bounds = { webhook: number; other: number };
/** What of a head may go: all before `cut`. More may go from the minute `next` on; undefined: not before the next compaction. */
type Look = { cut: number; gone: string[]; next: number | undefined };

/** Erases heads of journals that may go, in about so many rows. Answers how many it looked at; `limit` when there may be more. */
export const ageHeads = (state: State, bounds: Bounds, limit: number): number => {
  let left = limit;
  for (const kind of ["webhook", "other"] as const) {
    const bound = bounds[kind];
    const found = state.sessions.agedHeads(kind === "webhook", Math.floor(bound / MINUTE), limit);
    for (const session of found) {
      if (left <= 0) return limit;
      left -= ageHead(state, session, bound, left);
    }
  }
  return limit - Math.max(left, 0);
};

const ageHead = (state: State, session: SessionRow, bound: number, limit: number): number => {
  const { ordinal, firstSeq } = session;
  const marks = state.summaries.marksOf(ordinal);
  let looked = 0;
  let next: number | undefined;
  for (let isDone = false; !isDone && looked < limit; ) {
    const rows = state.journal.after(ordinal, session.firstSeq - 1, ROWS_A_LOOK);
    const look = lookAt(state, session, rows, { bound, marks });
    looked += rows.length;
    eraseBefore(state, session, rows, look);
    isDone = rows.length < ROWS_A_LOOK || session.firstSeq <= (rows.at(-1) as JournalRow)[0];
    next = isDone ? look.next : session.head;
  }
  if (session.firstSeq !== firstSeq || session.head !== next) state.sessions.touch(session);
  session.head = next;
  return Math.max(looked, 1);
};

/** Finds the first entry of these rows that is to be kept. */
const lookAt = (
  state: State,
  session: SessionRow,
  rows: readonly JournalRow[],
  { bound, marks }: { bound: number; marks: Marks },
): Look => {
  const gone: string[] = [];
  for (const [lastSeq, body] of rows) {
    for (const { seq, at, turnId, ...entry } of decodeEntries(body, lastSeq)) {
      if (seq < session.firstSeq) continue;
      if (at > bound) return { cut: seq, gone, next: Math.floor(at / MINUTE) };
      if (entry.name !== "message.created" || entry.role === "assistant") continue;
      const next = keptUntil(state, session, turnId, { bound, marks });
      if (next !== "gone") return { cut: seq, gone, next };
      gone.push(turnId);
    }
  }
  const last = rows.at(-1);
  return { cut: last ? last[0] + 1 : session.firstSeq, gone, next: undefined };
};

/** The minute from which on a turn may go; undefined: not before the next compaction. */
const keptUntil = (
  state: State,
  session: SessionRow,
  turnId: string,
  { bound, marks }: { bound: number; marks: Marks },
): number | "gone" | undefined => {
  const found = state.ended.get(turnId);
  if (!found) return NOW;
  const { turn, replySeq } = decodeEndedTurn(turnId, session, found.body);
  const { endedAt = 0, seq } = turn;
  if (endedAt > bound) return Math.floor(endedAt / MINUTE);
  if (state.announcements.hasOfTurn(turnId)) return NOW;
  const isCompacted = marks.isCompacted(seq - 1) && (replySeq === 0 || marks.isCompacted(replySeq));
  return isCompacted ? "gone" : undefined;
};

const eraseBefore = (state: State, session: SessionRow, rows: readonly JournalRow[], { cut, gone }: Look): void => {
  const { ordinal } = session;
  if (cut === session.firstSeq) return;
  const whole = rows.filter(([lastSeq]) => lastSeq < cut);
  state.journal.erase(ordinal, whole);
  const partial = rows[whole.length];
  if (partial) state.journal.cut(ordinal, partial, cut);
  session.firstSeq = cut;
  for (const turnId of gone) eraseTurn(state, turnId);
};
