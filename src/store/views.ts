import type { MoreUsage, Session, Turn, Usage } from "./store.ts";

/** What an engine's row has of a session, however it holds the rest. */
type SessionFields = Omit<Session, "turnsQueued" | "usage"> & {
  input: number;
  output: number;
  more: MoreUsage | undefined;
};

/** The turn without what is the engine's own. */
export const turnOf = (row: Turn): Turn => ({
  turnId: row.turnId,
  sessionId: row.sessionId,
  agent: row.agent,
  surface: row.surface,
  caller: row.caller,
  status: row.status,
  attempt: row.attempt,
  createdAt: row.createdAt,
  startedAt: row.startedAt,
  endedAt: row.endedAt,
  model: row.model,
  skillIds: row.skillIds,
  messageId: row.messageId,
  seq: row.seq,
  reply: row.reply,
  error: row.error,
  usage: row.usage,
  deliveryId: row.deliveryId,
});

export const usageOf = (input: number, output: number, more: MoreUsage | undefined): Usage =>
  more ? { input, output, more } : { input, output };

export const sessionOf = (row: SessionFields, turnsQueued: number): Session => ({
  sessionId: row.sessionId,
  agent: row.agent,
  channel: row.channel,
  userId: row.userId,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
  lastSeq: row.lastSeq,
  firstSeq: row.firstSeq,
  messageCount: row.messageCount,
  turnsQueued,
  usage: usageOf(row.input, row.output, row.more),
  ordinal: row.ordinal,
  contextBytes: row.contextBytes,
});
