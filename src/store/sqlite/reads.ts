import type { AgentCounts, Entry, Store } from "#store/store.ts";
import { decodeEntries } from "./entry-codec.ts";
import type { Link } from "./link.ts";

type ReadCalls = Pick<
  Store,
  "getSession" | "listSessions" | "readEntries" | "readMessages" | "stats" | "agentCounts" | "openAgents"
>;

const NO_COUNTS: AgentCounts = {
  queued: 0,
  running: 0,
  waitingEvents: 0,
  nextBeatAt: undefined,
  lastEndedAt: undefined,
  failing: false,
  pausedAt: undefined,
};

export const readCalls = (link: Link): ReadCalls => ({
  getSession: (sessionId) => link.call("getSession", sessionId),
  listSessions: (query) => link.call("listSessions", query),
  readEntries: (sessionId, { after, limit }) =>
    link.call("readEntries", { sessionId, after, limit }, (found: JournalRows | undefined) =>
      found ? entriesOf(found, after, limit) : [],
    ),
  readMessages: (sessionId, query) => link.call("readMessages", { sessionId, ...query }),
  stats: () => {
    const { deliveryExcess, ...totals } = link.totals;
    return { ...totals, bytes: totals.bytes + totals.deliveryBytes };
  },
  agentCounts: (agent) => link.agents.get(agent) ?? NO_COUNTS,
  openAgents: async () => [...link.agents].flatMap(([agent, counts]) => (isOpen(counts) ? agent : [])),
});

const isOpen = ({ queued, running, waitingEvents }: AgentCounts): boolean => queued + running + waitingEvents > 0;

type JournalRows = { rows: readonly (readonly [lastSeq: number, body: string])[]; firstSeq: number };

const entriesOf = ({ rows, firstSeq }: JournalRows, after: number, limit: number): Entry[] => {
  const entries: Entry[] = [];
  for (const [lastSeq, body] of rows) {
    for (const entry of decodeEntries(body, lastSeq)) {
      if (entry.seq > after && entry.seq >= firstSeq && entries.length < limit) entries.push(entry);
    }
  }
  return entries;
};
