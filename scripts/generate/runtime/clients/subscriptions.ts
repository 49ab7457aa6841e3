import type { Push } from "#generated/push-types.ts";

/** What to be told of. A cursor goes on behind the push that had it; null begins now. */
export interface Subscribe {
  sessions?: Record<string, string | null>;
  /** Every session of these agents. */
  agents?: string[];
  /** The gateway's own stream. */
  gateway?: string | null;
}

/** What not to be told of any more. */
export interface Unsubscribe {
  sessions?: string[];
  agents?: string[];
  gateway?: true;
}

/** The gateway takes no more sessions than this on a connection. */
const mostSessions = 1000;

/** Remembers what is subscribed to and how far each stream has come, so that a new connection can go on there. */
export function createSubscriptions() {
  const sessions = new Map<string, string | null>();
  /** Sessions that come by way of their agent. */
  const seen = new Map<string, string>();
  const agents = new Set<string>();
  let gateway: string | null | undefined;

  return {
    add(request: Subscribe) {
      for (const [id, cursor] of Object.entries(request.sessions ?? {})) sessions.set(id, cursor);
      for (const name of request.agents ?? []) agents.add(name);
      if (request.gateway !== undefined) gateway = request.gateway;
    },
    remove(request: Unsubscribe) {
      for (const id of request.sessions ?? []) sessions.delete(id);
      for (const name of request.agents ?? []) agents.delete(name);
      if (agents.size === 0) seen.clear();
      if (request.gateway) gateway = undefined;
    },
    /** Takes note of the cursor of a push. */
    note({ method, params }: Push) {
      const { sessionId, cursor } = params as { sessionId?: string; cursor?: string };
      if (cursor === undefined) return;
      if (sessionId === undefined) {
        if (gateway !== undefined) gateway = cursor;
        return;
      }
      seen.delete(sessionId);
      if (method === "session.deleted") sessions.delete(sessionId);
      else if (sessions.has(sessionId)) sessions.set(sessionId, cursor);
      else if (agents.size > 0) seen.set(sessionId, cursor);
      const [oldest] = seen.keys();
      if (oldest !== undefined && seen.size + sessions.size > mostSessions) seen.delete(oldest);
    },
    /** What a new connection has to subscribe to, if anything. */
    current(): Subscribe | undefined {
      const request: Subscribe = {};
      if (sessions.size + seen.size > 0) request.sessions = Object.fromEntries([...seen, ...sessions]);
      if (agents.size > 0) request.agents = [...agents];
      if (gateway !== undefined) request.gateway = gateway;
      return Object.keys(request).length > 0 ? request : undefined;
    },
  };
}
