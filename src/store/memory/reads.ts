import type { Entry, Message, Store } from "#store/store.ts";
import { sessionOf } from "#store/views.ts";
import { OrderedSlots } from "./ordered-slots.ts";
import type { SessionRow } from "./session-row.ts";
import { bytesOf, type State } from "./state.ts";

type ReadMethods = Pick<
  Store,
  | "getSession"
  | "listSessions"
  | "readEntries"
  | "readMessages"
  | "countUsage"
  | "readUsage"
  | "sumUsage"
  | "stats"
  | "agentCounts"
  | "openAgents"
>;

const NO_ROWS = new OrderedSlots();

const viewOf = (row: SessionRow) => sessionOf(row, row.turnsQueued);

export const readMethods = (state: State): ReadMethods => ({
  getSession: async (sessionId) => {
    const session = state.sessions.get(sessionId);
    return session && viewOf(session);
  },
  listSessions: async ({ agent, limit, cursor }) => {
    const rows = agent === undefined ? state.order : (state.orderOfAgent.get(agent) ?? NO_ROWS);
    return rows.page(limit, cursor, (slot) => viewOf(state.sessions.at(slot)));
  },
  readEntries: async (sessionId, { after, limit }) => {
    const session = state.sessions.get(sessionId);
    return session && after < session.lastSeq
      ? state.logs.read(session, Math.max(after, 0), limit).map(({ entry }) => entry)
      : [];
  },
  readMessages: async (sessionId, query) => {
    const { before = Infinity, limit, characters = Infinity, includeCompacted = false } = query;
    const session = state.sessions.get(sessionId);
    const messages: Message[] = [];
    if (!session || limit < 1) return messages;
    const { isCompacted, lowest } = state.summaries.marksOf(session.ordinal);
    let left = characters;
    for (const { entry } of state.logs.readBack(session, before)) {
      if (!includeCompacted && entry.seq < lowest) break;
      const message = messageOf(entry, isCompacted(entry.seq));
      if (!message || (message.compacted && !includeCompacted)) continue;
      messages.push(message);
      left -= message.text.length;
      if (messages.length === limit || left <= 0) break;
    }
    return messages;
  },
  countUsage: async ({ now, agent, surface, caller, ...used }) =>
    state.usage.attempt(now, { agent, surface, caller }, used),
  readUsage: async (query) => state.usage.read(query),
  sumUsage: async (query) => state.usage.sum(query),
  stats: () => ({
    sessions: state.sessions.size,
    turnsQueued: state.queued,
    turnsRunning: state.running.size,
    eventsQueued: state.events.open,
    eventsDead: state.events.dead,
    announcements: state.announcements.size,
    bytes: bytesOf(state) + state.deliveries.bytes - state.deliveries.excessBytes,
    deliveryBytes: state.deliveries.bytes,
    deliveries: state.deliveries.size,
  }),
  agentCounts: (agent) => state.agents.read(agent),
  openAgents: async () => state.agents.open(),
});

/** An entry that holds a message's whole text, as that message. */
const messageOf = (entry: Entry, compacted: boolean): Message | undefined => {
  const { seq, at: createdAt, turnId } = entry;
  const base = { turnId, seq, createdAt, compacted };
  if (entry.name === "message.completed") {
    return {
      messageId: entry.messageId,
      role: "assistant",
      text: entry.text,
      ...base,
      outside: false,
      context: undefined,
    };
  }
  if (entry.name !== "message.created" || entry.role === "assistant") return undefined;
  const { messageId, role, text, outside, context } = entry;
  return { messageId, role, text, ...base, outside, context };
};
