import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { Message as MessageView, Session as SessionView } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { showUsage } from "#kit/usages.ts";
import type { Message, Session } from "#store/store.ts";

type SessionMethods = "session.list" | "session.get" | "session.compact" | "session.delete";

export function session(core: Core): Pick<RpcHandlers<CallContext>, SessionMethods> {
  return {
    "session.list": async ({ agentName: agent, limit, cursor }) => {
      const { items, next = null } = await core.store.listSessions({
        limit,
        ...(agent !== undefined && { agent }),
        ...(cursor !== undefined && { cursor }),
      });
      // One that left the configuration is known as long as it has sessions.
      if (agent !== undefined && items.length === 0) core.agents.get(agent);
      return { sessions: items.map(sessionOf), nextCursor: next };
    },
    "session.get": async ({ sessionId, limit, cursor, includeCompacted }) => {
      const found = await core.store.getSession(sessionId);
      if (!found) throw notFound(sessionId);
      const before = cursor === undefined ? found.lastSeq + 1 : placeOfCursor(found, cursor);
      const [summary, messages] = await Promise.all([
        core.store.readSummary(sessionId),
        core.store.readMessages(sessionId, { before, limit: limit + 1, characters: PAGE_CHARACTERS, includeCompacted }),
      ]);
      const page = messages.slice(0, limit);
      const isFull = messages.length > limit || charactersOf(page) >= PAGE_CHARACTERS;
      const nextCursor = isFull ? cursorOf(found, page.at(-1) as Message) : null;
      return { session: sessionOf(found), summary: summary?.text ?? null, messages: page.map(messageOf), nextCursor };
    },
    "session.compact": (params, { caller }) => core.compactions.compact(params, caller.name),
    "session.delete": async ({ sessionId }) => {
      const deleted = await core.store.deleteSession(sessionId, core.clock.now());
      if (!deleted) throw notFound(sessionId);
      return { sessionId, deleted: true, turnsCancelled: deleted.turnsCancelled };
    },
  };
}

/** A page is one answer, and long ones keep others waiting. */
const PAGE_CHARACTERS = 512 * 1024;
function charactersOf(messages: readonly Message[]): number {
  return messages.reduce((sum, { text }) => sum + text.length, 0);
}

function notFound(sessionId: string): GatewayError {
  return new GatewayError("session-not-found", `No session has the id ${sessionId}.`);
}

/** A place among the messages of this session, and of none that has its id later. */
function cursorOf({ ordinal }: Session, { seq }: Message): string {
  return `m${ordinal.toString(36)}.${seq.toString(36)}`;
}

function placeOfCursor(session: Session, cursor: string): number {
  const seq = Number.parseInt(/^m[0-9a-z]{1,10}\.([0-9a-z]{1,10})$/.exec(cursor)?.[1] ?? "", 36);
  if (seq > 0 && seq <= session.lastSeq && cursorOf(session, { seq } as Message) === cursor) return seq;
  throw new GatewayError("invalid-params", "`cursor` is not one that this list gave.");
}

/** How RPC writes what the core knows: camelCase, times as text. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function sessionOf(session: Session): SessionView {
  return {
    sessionId: session.sessionId,
    agentName: session.agent,
    channel: session.channel,
    userId: session.userId,
    createdAt: timeOf(session.createdAt),
    updatedAt: timeOf(session.updatedAt),
    messageCount: session.messageCount,
    turnsQueued: session.turnsQueued,
    usage: showUsage(session.usage),
  };
}

function messageOf({ messageId, role, text, turnId, seq, createdAt, compacted, toolCalls }: Message): MessageView {
  return {
    messageId,
    role,
    text,
    turnId,
    seq,
    createdAt: timeOf(createdAt),
    compacted,
    ...(toolCalls && { toolCalls }),
  };
}
