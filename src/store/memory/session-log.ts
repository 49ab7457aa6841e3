import type { Entry } from "#store/store.ts";
import { decodeEntries, encodeEntry, type Logged, type QueuedTurn } from "./entry-codec.ts";
import { type EntryOutline, readOutlines } from "./entry-outlines.ts";
import { type Extent, type LogArena, NONE } from "./log-arena.ts";
import type { SessionRow } from "./session-row.ts";

const LARGE = 4_096;

/** The journals of all sessions, each a chain of chunks in one arena. A row knows its oldest and its newest chunk. */
export const createSessionLogs = (arena: LogArena) => {
  /** Where the last entry of all went: the next one is mostly of the same turn. */
  let lastChunk: number = NONE;
  let lastTurn = "";
  return {
    /**
     * Appends an entry, which gets its `seq`. `replyBefore`: the entry before it, of the same turn, holds its reply. `textBytes`: how long a
     * message's text is.
     */
    append(
      session: SessionRow,
      entry: Entry,
      queued: QueuedTurn | undefined,
      replyBefore: boolean,
      textBytes?: number,
    ): Entry {
      const seq = ++session.lastSeq;
      // What is large is written once: it is known before whether it fits.
      const mayFit = textBytes === undefined || textBytes < LARGE || arena.hasRoom(session.chunk, textBytes);
      const sameTurn = mayFit && session.chunk === lastChunk && entry.turnId === lastTurn;
      let packed = encodeEntry(entry, queued, sameTurn, replyBefore, textBytes);
      if (!mayFit || !arena.write(session.chunk, packed.bytes, packed.length)) {
        // First in its chunk, it finds nothing before it.
        if (replyBefore || sameTurn) packed = encodeEntry(entry, queued, false, false, textBytes);
        const chunk = arena.take(packed.length, session.chunk, seq);
        if (session.chunk === NONE) session.head = chunk;
        session.chunk = chunk;
        arena.write(session.chunk, packed.bytes, packed.length);
      }
      lastChunk = session.chunk;
      lastTurn = entry.turnId;
      session.updatedAt = entry.at;
      entry.seq = seq;
      return entry;
    },

    /** Entries after `seq`, oldest first. Costs a look at each newer chunk, and the reading of those it answers from. */
    read(session: SessionRow, from: number, limit: number): Logged[] {
      const after = Math.max(from, session.firstSeq - 1);
      const extents: Extent[] = [];
      for (let chunk = session.chunk; chunk !== NONE; ) {
        const extent = arena.read(chunk);
        extents.push(extent);
        if (extent.firstSeq <= after + 1) break;
        chunk = extent.before;
      }
      const found: Logged[] = [];
      for (let at = extents.length - 1; at >= 0 && found.length < limit; at--) {
        for (const logged of decode(extents[at] as Extent, after + limit)) {
          if (logged.entry.seq > after) found.push(logged);
        }
      }
      return found;
    },

    /** Entries before `seq`, newest first, as long as they are asked for. */
    *readBack(session: SessionRow, before: number): Iterable<Logged> {
      const { firstSeq } = session;
      for (let chunk = session.chunk; chunk !== NONE; ) {
        const extent = arena.read(chunk);
        chunk = extent.before;
        if (extent.firstSeq >= before) continue;
        for (const logged of decode(extent).reverse()) {
          if (logged.entry.seq < firstSeq) return;
          if (logged.entry.seq < before) yield logged;
        }
      }
    },

    /** What a chunk of the session's log holds, and the chunk behind it. */
    outline(session: SessionRow, chunk: number): { outlines: EntryOutline[]; next: number } {
      const next = chunk === session.chunk ? NONE : arena.nextOf(chunk);
      return { outlines: outlinesOf(arena.read(chunk)), next };
    },

    /** Erases all before `seq`. The memory of a chunk is given back when nothing in it is kept and another is behind it. */
    eraseHead(session: SessionRow, seq: number): void {
      session.firstSeq = seq;
      while (session.head !== session.chunk && arena.read(arena.nextOf(session.head)).firstSeq <= seq) {
        session.head = arena.giveFirst(session.head);
      }
    },

    /** Gives the memory of a chunk back. Answers the chunk before it, and what it held. */
    erase(chunk: number): { before: number; outlines: EntryOutline[] } {
      const outlines = outlinesOf(arena.read(chunk));
      return { before: arena.give(chunk), outlines };
    },
  };
};

export type SessionLogs = ReturnType<typeof createSessionLogs>;

const outlinesOf = ({ bytes, from, to, firstSeq }: Extent): EntryOutline[] => readOutlines(bytes, from, to, firstSeq);
const decode = ({ bytes, from, to, firstSeq }: Extent, lastSeq?: number): Logged[] =>
  decodeEntries(bytes, from, to, firstSeq, lastSeq);
