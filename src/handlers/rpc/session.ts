import type { CallContext, Caller } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { agentFor, listedFor, requireSession } from "#core/reach.ts";
import type { RpcHandlers } from "#generated/rpc-handlers.ts";
import type { Message as MessageView, SessionTurn, Session as SessionView } from "#generated/rpc-types.ts";
import { showPreview } from "#kit/previews.ts";
import { showToolCalls } from "#kit/tool-calls.ts";
import { showUsage } from "#kit/usages.ts";
import type { ListedSession, Message, Turn } from "#store/store.ts";
import { turnSummaryOf } from "../rest/present.ts";

type SessionMethods = "session.list" | "session.get" | "session.compact" | "session.delete";

export function session(core: Core): Pick<RpcHandlers<CallContext>, SessionMethods> {
  return {
    "session.list": async ({ agentName, limit, cursor }, { caller }) => {
      const agents = listedFor(caller, agentName);
      const { items, next = null } = await core.sessions.list({ limit, agents, cursor });
      if (agentName !== undefined && items.length === 0) agentFor(core.agents, caller, agentName);
      const shown = items.map((item) => sessionOf(item, core.hide));
      const sessions = mayReadMessages(caller) ? shown : shown.map((one) => ({ ...one, preview: null }));
      return { sessions, nextCursor: next };
    },
    "session.get": async ({ sessionId, turnId, cursor, ...request }, { caller }) => {
      const page = await core.sessions.read(sessionId, { ...request, turnId, cursor, agents: caller.agents });
      const { session, summary, messages, turns, nextCursor } = page;
      const shown = { session: sessionOf(session, core.hide), summary, messages: messages.map(messageOf), nextCursor };
      return turns
        ? { ...shown, turns: Object.fromEntries(turns.map((turn) => [turn.turnId, turnOf(turn, core.hide)])) }
        : shown;
    },
    "session.compact": async (params, { caller }) => {
      await requireSession(core.store, caller, params.sessionId);
      return core.compactions.compact(params, caller.name);
    },
    "session.delete": async ({ sessionId }, { caller }) => {
      const { turnsCancelled } = await core.sessions.delete(sessionId, caller.agents);
      return { sessionId, deleted: true, turnsCancelled };
    },
  };
}

/** A token that can only list sessions gets no words of their messages. */
function mayReadMessages(caller: Caller): boolean {
  return caller.surface === "rpc" && ["*", "session.get"].some((one) => caller.permissions.includes(one));
}

/** RPC writes the values of the core in camelCase, and times as text. */
function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function sessionOf(session: ListedSession, hide: Core["hide"]): SessionView {
  return {
    sessionId: session.sessionId,
    agentName: session.agent,
    channel: session.channel,
    userId: session.userId,
    createdAt: timeOf(session.createdAt),
    updatedAt: timeOf(session.updatedAt),
    messageCount: session.messageCount,
    turnsQueued: session.turnsQueued,
    turnsRunning: session.turnsRunning,
    preview: showPreview(session.preview, hide),
    usage: showUsage(session.usage),
  };
}

function turnOf(turn: Turn, hide: Core["hide"]): SessionTurn {
  const { turn_id, status, attempt, surface, created_at, started_at, ended_at, model, error, usage, delivery_id } =
    turnSummaryOf(turn, hide);
  const times = { createdAt: created_at, startedAt: started_at, endedAt: ended_at };
  return { turnId: turn_id, status, attempt, surface, ...times, model, error, usage, deliveryId: delivery_id };
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
    ...(toolCalls && { toolCalls: showToolCalls(toolCalls) }),
  };
}
