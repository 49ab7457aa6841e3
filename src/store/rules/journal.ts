import { charactersOf } from "#kit/tool-calls.ts";
import type { Usage } from "#kit/usages.ts";
import type { Entry, Message, Session, SessionRef } from "#store/store.ts";
import type { Records, Rule, RuleInPieces, SessionRecord } from "./records.ts";

/** The `seq` of an entry that has no place in the journal yet. */
export const NO_SEQ = 0;
/** A reader wants only a few long messages: the first piece is short, and each next one is twice as long. */
const FIRST_PIECE = 32;
const LONGEST_PIECE = 512;
/** The same with tool calls, of which a reply may have 64 KiB. */
const LONGEST_PIECE_WITH_CALLS = 128;

/** The changes that come with new entries: what is added to the session's counts, its new usage and preview, and the delivery of their turn. */
type SessionChange = {
  messages?: number;
  bytes?: number;
  queued?: number;
  usage?: Usage;
  deliveryId?: string | undefined;
  preview?: string;
};

/**
 * Appends new entries to a session's journal and gives them their `seq`; stores the changed session, and notifies the watchers. Returns the session
 * with its new `lastSeq`.
 */
export function appendEntries(
  records: Records,
  record: SessionRecord,
  at: number,
  entries: readonly Entry[],
  change: SessionChange = {},
): Session {
  const { session: before, compactedCount, headDueAt } = record;
  const { messages = 0, bytes = 0, queued = 0, usage = before.usage, preview = before.preview } = change;
  let { lastSeq } = before;
  for (const entry of entries) entry.seq = ++lastSeq;
  // Written out, as it is done thrice a turn: a spread of objects that were made in several places is slow.
  const session: Session = {
    sessionId: before.sessionId,
    agent: before.agent,
    channel: before.channel,
    userId: before.userId,
    createdAt: before.createdAt,
    updatedAt: at,
    lastSeq,
    firstSeq: before.firstSeq,
    messageCount: before.messageCount + messages,
    turnsQueued: before.turnsQueued + queued,
    usage,
    ordinal: before.ordinal,
    contextBytes: before.contextBytes + bytes,
    preview,
  };
  records.sessions.put({ session, compactedCount, headDueAt });
  records.journal(session.ordinal).append(entries);
  records.notify({ kind: "entries", session: refOf(session), entries, deliveryId: change.deliveryId });
  return session;
}

export function refOf({ sessionId, agent, ordinal, contextBytes }: SessionRef): SessionRef {
  return {
    sessionId,
    agent,
    ordinal,
    contextBytes,
  };
}

export const readEntries: Rule<"readEntries"> = (records, sessionId, { after, limit }) => {
  const found = records.sessions.find(sessionId);
  return found ? records.journal(found.session.ordinal).after(Math.max(after, 0), limit) : [];
};

export const readMessages: RuleInPieces<"readMessages"> = function* (records, sessionId, query) {
  const { before = Infinity, limit, characters = Infinity, includeCompacted = false, includeToolCalls = false } = query;
  const messages: Message[] = [];
  const found = records.sessions.find(sessionId);
  if (!found || limit < 1) return messages;
  const { ordinal } = found.session;
  const { isCompacted, lowest } = marksOf(records, ordinal);
  const longest = includeToolCalls ? LONGEST_PIECE_WITH_CALLS : LONGEST_PIECE;
  let left = characters;
  for (let seq = before, size = FIRST_PIECE; ; size = Math.min(size * 2, longest)) {
    const page = records.journal(ordinal).before(seq, size, includeToolCalls);
    for (const entry of page) {
      seq = entry.seq;
      if (!includeCompacted && seq < lowest) return messages;
      const message = messageOf(entry, isCompacted(seq), includeToolCalls);
      if (!message || (message.compacted && !includeCompacted)) continue;
      messages.push(message);
      left -= charactersOf(message);
      if (messages.length === limit || left <= 0) return messages;
    }
    if (page.length < size) return messages;
    yield;
  }
};

/** Tells of a session's messages by their `seq` whether its summary stands for them; it does for all below `lowest`. */
export function marksOf(records: Records, ordinal: number): { isCompacted(seq: number): boolean; lowest: number } {
  const record = records.summaries.find(ordinal);
  if (!record) return { isCompacted: () => false, lowest: 0 };
  const { through } = record;
  const except = new Set(record.except);
  const lowest = record.except.reduce((low, seq) => Math.min(low, seq), through + 1);
  return { isCompacted: (seq) => seq <= through && !except.has(seq), lowest };
}

/** An entry that holds a message's whole text, as that message. */
function messageOf(entry: Entry, compacted: boolean, includeToolCalls: boolean): Message | undefined {
  const { seq, at: createdAt, turnId } = entry;
  const of = { turnId, seq, createdAt, compacted };
  if (entry.name === "message.completed") {
    const { messageId, text } = entry;
    const toolCalls = includeToolCalls ? entry.toolCalls : undefined;
    return { messageId, role: "assistant", text, ...of, outside: false, context: undefined, toolCalls };
  }
  if (entry.name !== "message.created" || entry.role === "assistant") return undefined;
  const { messageId, role, text, outside, context } = entry;
  return { messageId, role, text, ...of, outside, context };
}
