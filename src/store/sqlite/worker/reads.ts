import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type { Entry, Message, Session, Turn } from "#store/store.ts";
import { turnOf } from "#store/views.ts";
import { decodeEntries } from "../entry-codec.ts";
import { readSummary } from "./compactions.ts";
import { type JournalRow, ROWS_A_LOOK } from "./journal.ts";
import { listTurns } from "./list-turns.ts";
import { readEndedTurn } from "./read-turns.ts";
import { sessionOf } from "./rows.ts";
import type { State } from "./state.ts";
import { extendClaims, replayOf } from "./turns.ts";

export const readMethods = {
  extendClaims,
  ping: (state: State): void => {
    state.db.query("SELECT count(*) FROM meta").get([]);
  },
  findReplay: (state: State, { key, now }: { key: { key: string; hash: string }; now: number }) =>
    replayOf(state, key, now),
  getTurn: (state: State, turnId: string): Turn | undefined => {
    const row = state.turns.get(turnId);
    return row ? turnOf(row) : readEndedTurn(state, turnId);
  },
  listTurns,
  getSession: (state: State, sessionId: string): Session | undefined => {
    const session = state.sessions.get(sessionId);
    return session && sessionOf(session);
  },
  listSessions: (state: State, query: { agent?: string; limit: number; cursor?: string }) => {
    const { agent, limit, cursor } = query;
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : decodeCursor(cursor);
    const found = state.sessions.page(agent, before, limit + 1);
    const items = found.slice(0, limit).map(sessionOf);
    const last = items.at(-1);
    return { items, next: found.length > limit && last ? encodeCursor(last.ordinal) : undefined };
  },
  /** The rows as they are kept: they are read on the main side. */
  readEntries: (
    state: State,
    { sessionId, after, limit }: { sessionId: string; after: number; limit: number },
  ): { rows: JournalRow[]; firstSeq: number } | undefined => {
    const session = state.sessions.get(sessionId);
    if (!session || after >= session.lastSeq || limit < 1) return undefined;
    const rows: JournalRow[] = [];
    const { ordinal, firstSeq } = session;
    for (let from = Math.max(after, firstSeq - 1), found = 0; found < limit; ) {
      const more = state.journal.after(ordinal, from, Math.min(limit - found, ROWS_A_LOOK));
      const last = more.at(-1);
      if (!last) break;
      for (const row of more) rows.push(row);
      // A row holds one entry at least.
      found = rows.length;
      [from] = last;
    }
    return { rows, firstSeq };
  },
  readMessages,
  readSummary,
};

type MessageQuery = {
  sessionId: string;
  before?: number;
  limit: number;
  characters?: number;
  includeCompacted?: boolean;
};

function* readMessages(state: State, query: MessageQuery): Generator<undefined, Message[], undefined> {
  const { sessionId, limit, characters = Infinity, includeCompacted = false } = query;
  const session = state.sessions.get(sessionId);
  const messages: Message[] = [];
  let left = characters;
  if (!session || limit < 1) return messages;
  const { ordinal, firstSeq } = session;
  const { isCompacted, lowest } = state.summaries.marksOf(ordinal);
  const before = Math.min(query.before ?? Infinity, session.lastSeq + 1);
  const first = Math.max(includeCompacted ? 0 : lowest, firstSeq);
  // The row that holds what is right before `before`, and then those below it.
  let rows = state.journal.after(ordinal, before - 2, 1);
  for (;;) {
    for (const [lastSeq, body] of rows) {
      for (const entry of decodeEntries(body, lastSeq).reverse()) {
        if (entry.seq >= before) continue;
        if (entry.seq < first) return messages;
        const message = messageOf(entry, isCompacted(entry.seq));
        if (!message || (message.compacted && !includeCompacted)) continue;
        messages.push(message);
        left -= message.text.length;
        if (messages.length === limit || left <= 0) return messages;
      }
    }
    const last = rows.at(-1);
    if (!last || last[0] < first) return messages;
    yield;
    rows = state.journal.below(ordinal, last[0], first, ROWS_A_LOOK);
  }
}

/** An entry that holds a message's whole text, as that message. */
const messageOf = (entry: Entry, compacted: boolean): Message | undefined => {
  const { seq, at: createdAt, turnId } = entry;
  const base = { turnId, seq, createdAt, compacted };
  if (entry.name === "message.completed") {
    const { messageId, text } = entry;
    return { messageId, role: "assistant", text, ...base, outside: false, context: undefined };
  }
  if (entry.name !== "message.created" || entry.role === "assistant") return undefined;
  const { messageId, role, text, outside, context } = entry;
  return { messageId, role, text, ...base, outside, context };
};
