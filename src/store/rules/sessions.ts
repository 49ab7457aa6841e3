import { NO_USAGE } from "#kit/usages.ts";
import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type { TurnOrder } from "#store/store.ts";
import type { Records, Rule, SessionRecord } from "./records.ts";

/** A session that is about to get its first turn; nothing is kept yet. */
export const newSession = (records: Records, { session, now }: TurnOrder): SessionRecord => ({
  session: {
    sessionId: session.sessionId,
    agent: session.agent,
    channel: session.channel,
    userId: session.userId,
    createdAt: now,
    updatedAt: now,
    lastSeq: 0,
    firstSeq: 1,
    messageCount: 0,
    turnsQueued: 0,
    usage: NO_USAGE,
    ordinal: records.next("session"),
    contextBytes: 0,
  },
  compactedCount: 0,
  headDueAt: undefined,
});

export const getSession: Rule<"getSession"> = ({ sessions }, sessionId) => sessions.find(sessionId)?.session;

export const listSessions: Rule<"listSessions"> = (records, { agent, limit, cursor }) => {
  const found = records.sessions.before(cursor === undefined ? Infinity : decodeCursor(cursor), limit + 1, agent);
  const items = found.slice(0, limit).map(({ session }) => session);
  const last = items.at(-1);
  return { items, next: found.length > limit && last ? encodeCursor(last.ordinal) : undefined };
};
