import type { Entry } from "#store/store.ts";
import { type BegunTurn, decodeEntries, encodeEntry, type Logged, type QueuedTurn, readBegun } from "./entry-codec.ts";
import { type Extent, type LogArena, NONE } from "./log-arena.ts";
import type { SessionRow } from "./session-row.ts";

/** The journals of all sessions, each a chain of chunks in one arena. A row knows its newest chunk. */
export const createSessionLogs = (arena: LogArena) => {
  /** Where the last entry of all went: the next one is mostly of the same turn. */
  let lastChunk: number = NONE;
  let lastTurn = "";
  return {
    /** Appends an entry, which gets its `seq`. `replyBefore`: the entry before it, of the same turn, holds its reply. */
    append(session: SessionRow, entry: Entry, queued: QueuedTurn | undefined, replyBefore: boolean): Entry {
      const seq = ++session.lastSeq;
      const sameTurn = session.chunk === lastChunk && entry.turnId === lastTurn;
      let packed = encodeEntry(entry, queued, sameTurn, replyBefore);
      if (!arena.write(session.chunk, packed.bytes, packed.length)) {
        // First in its chunk, it finds nothing before it.
        if (replyBefore || sameTurn) packed = encodeEntry(entry, queued, false, false);
        session.chunk = arena.take(packed.length, session.chunk, seq);
        arena.write(session.chunk, packed.bytes, packed.length);
      }
      lastChunk = session.chunk;
      lastTurn = entry.turnId;
      session.updatedAt = entry.at;
      entry.seq = seq;
      return entry;
    },

    /** Entries after `seq`, oldest first. Costs a look at each newer chunk, and the reading of those it answers from. */
    read(session: SessionRow, after: number, limit: number): Logged[] {
      const extents: Extent[] = [];
      for (let chunk = session.chunk; chunk !== NONE; ) {
        const extent = arena.read(chunk);
        extents.push(extent);
        if (extent.firstSeq <= after + 1) break;
        chunk = extent.before;
      }
      const found: Logged[] = [];
      for (let at = extents.length - 1; at >= 0 && found.length < limit; at--) {
        for (const logged of decode(extents[at] as Extent)) {
          if (logged.entry.seq > after && found.length < limit) found.push(logged);
        }
      }
      return found;
    },

    /** Entries before `seq`, newest first, as long as they are asked for. */
    *readBack(session: SessionRow, before: number): Iterable<Logged> {
      for (let chunk = session.chunk; chunk !== NONE; ) {
        const extent = arena.read(chunk);
        chunk = extent.before;
        if (extent.firstSeq >= before) continue;
        for (const logged of decode(extent).reverse()) if (logged.entry.seq < before) yield logged;
      }
    },

    /** Gives the memory of a chunk back. Answers the chunk before it, the turns that began there, and how many entries it held. */
    erase(chunk: number): { before: number; begun: BegunTurn[]; entries: number } {
      const { bytes, from, to, firstSeq } = arena.read(chunk);
      const read = readBegun(bytes, from, to, firstSeq);
      return { before: arena.give(chunk), ...read };
    },
  };
};

export type SessionLogs = ReturnType<typeof createSessionLogs>;

const decode = ({ bytes, from, to, firstSeq }: Extent): Logged[] => decodeEntries(bytes, from, to, firstSeq);
