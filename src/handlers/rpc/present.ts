import type { Message as MessageView, Session as SessionView } from "#generated/rpc-types.ts";
import { showUsage } from "#kit/usages.ts";
import type { Message, Session } from "#store/store.ts";

/** How RPC writes what the core knows: camelCase, times as text. */
const timeOf = (ms: number): string => new Date(ms).toISOString();

export const sessionOf = (session: Session): SessionView => ({
  sessionId: session.sessionId,
  agentName: session.agent,
  channel: session.channel,
  userId: session.userId,
  createdAt: timeOf(session.createdAt),
  updatedAt: timeOf(session.updatedAt),
  messageCount: session.messageCount,
  turnsQueued: session.turnsQueued,
  usage: showUsage(session.usage),
});

export const messageOf = ({ messageId, role, text, turnId, seq, createdAt, compacted }: Message): MessageView => ({
  messageId,
  role,
  text,
  turnId,
  seq,
  createdAt: timeOf(createdAt),
  compacted,
});
