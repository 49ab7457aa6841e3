// Copied by "npm run generate" from scripts/generate/runtime/typescript/subscriptions.ts; do not edit.
import type { Push, Subscribe, Subscribed, Unsubscribe } from "./push-types.ts";

export type { Subscribe, Subscribed, Unsubscribe };

/** The maximum number of sessions per connection of the gateway. */
const mostSessions = 1000;

/** Remembers the subscriptions and the position of each stream, so that a new connection can continue there. */
export function createSubscriptions() {
  const sessions = new Map<string, string | null>();
  /** Sessions that are pushed because of their agent. */
  const seen = new Map<string, string>();
  const agents = new Set<string>();
  let gateway: string | null | undefined;
  let deliveries = false;

  return {
    /** Stores the requested streams, and the cursors at which they start. Pushes come after these. */
    add(request: Subscribe, { sessions: begins, gateway: begin }: Subscribed = {}) {
      for (const [id, cursor] of Object.entries(request.sessions ?? {})) sessions.set(id, begins?.[id] ?? cursor);
      for (const name of request.agents ?? []) agents.add(name);
      if (request.gateway !== undefined) gateway = begin ?? request.gateway;
      if (request.deliveries) deliveries = true;
    },
    /** The positions at which streams continue after a lost connection, as the gateway reported them. */
    moved({ sessions: begins = {}, gateway: begin }: Subscribed) {
      for (const [id, cursor] of Object.entries(begins)) (sessions.has(id) ? sessions : seen).set(id, cursor);
      if (begin !== undefined) gateway = begin;
    },
    remove(request: Unsubscribe) {
      for (const id of request.sessions ?? []) sessions.delete(id);
      for (const name of request.agents ?? []) agents.delete(name);
      if (agents.size === 0) seen.clear();
      if (request.gateway) gateway = undefined;
      if (request.gateway || request.deliveries) deliveries = false;
    },
    /** Stores the cursor of a push. */
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
    /** The streams that a new connection must subscribe to, if any. */
    current(): Subscribe | undefined {
      const request: Subscribe = {};
      if (sessions.size + seen.size > 0) request.sessions = Object.fromEntries([...seen, ...sessions]);
      if (agents.size > 0) request.agents = [...agents];
      if (gateway !== undefined) request.gateway = gateway;
      if (deliveries) request.deliveries = true;
      return Object.keys(request).length > 0 ? request : undefined;
    },
  };
}
