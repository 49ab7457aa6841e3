import { decodeCursor } from "#store/cursors.ts";
import type { Entry, Message, Session, Store, Summary } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import { listTurns } from "./list-turns.ts";
import { pageOf } from "./pages.ts";
import { keepText, readText } from "./texts.ts";
import { type EntryRow, type FoundTurn, type MessageRow, readEntries, readMessage, readTurn } from "./turn-codec.ts";
import { type MoreRow, readUsage } from "./usage.ts";

type ReadMethods = Pick<
  Store,
  | "getTurn"
  | "listTurns"
  | "getSession"
  | "listSessions"
  | "readEntries"
  | "readMessages"
  | "readSummary"
  | "stats"
  | "agentCounts"
  | "openAgents"
>;

type SessionRow = {
  ordinal: number;
  session_id: string;
  agent: string;
  channel: string;
  user_id: string;
  created_at: number;
  updated_at: number;
  first_seq: number;
  last_seq: number;
  message_count: number;
  turns_queued: number;
  input: number;
  output: number;
  more: MoreRow | null;
  context_bytes: number;
};

const SESSION = `select ordinal, session_id, agent, channel, user_id, created_at, updated_at, first_seq, last_seq, message_count, turns_queued,
  input, output, to_json(more) as more, context_bytes from sessions`;

const readSession = (row: SessionRow): Session => ({
  sessionId: readText(row.session_id),
  agent: row.agent,
  channel: readText(row.channel),
  userId: readText(row.user_id),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  firstSeq: row.first_seq,
  lastSeq: row.last_seq,
  messageCount: row.message_count,
  turnsQueued: row.turns_queued,
  usage: readUsage(row.input, row.output, row.more),
  ordinal: row.ordinal,
  contextBytes: row.context_bytes,
});

/** The reply of the end of a turn is told by the entry before, which the first of a page may need. */
const ENTRIES = `select case when e.text is null and e.message_id is not null and n = 1
    then json_build_array(e.seq, e.at, e.turn_id, e.name, e.message_id, e.role,
      (select text from entries b where b.session = e.session and b.seq = e.seq - 1), e.outside, e.context, e.attempt, e.input, e.output, e.error, e.detail, e.sizes, e.used)
    else entry_json(e.entry) end as entry
  from (
    select entries.*, entries as entry, row_number() over (order by seq) as n from entries
    where session = (select ordinal from sessions where session_id = $1) and seq > $2
      and seq >= (select first_seq from sessions where session_id = $1)
    order by seq limit $3
  ) as e order by seq`;

/** A message is compacted when the summary stands for it. */
const MESSAGES = `select e.seq, e.at, e.turn_id, e.name, e.message_id, e.role, e.text, e.outside, e.context,
    e.seq <= s.summary_through and e.seq <> all (s.summary_except) as compacted
  from sessions s join entries e on e.session = s.ordinal
  where s.session_id = $1 and e.seq >= s.first_seq and ($2::bigint is null or e.seq < $2)
    and (e.name = 'message.completed' or (e.name = 'message.created' and e.role <> 'assistant'))
    and ($4 or e.seq > s.summary_through or e.seq = any (s.summary_except))
    and ($4 or e.seq >= coalesce((select min(kept) from unnest(s.summary_except) as of (kept)), s.summary_through + 1))
  order by e.session, e.seq desc limit $3`;

export const readJournal = async (frame: Frame, sessionId: string, after: number, limit: number): Promise<Entry[]> => {
  const rows = await frame.query<{ entry: EntryRow }>(ENTRIES, [keepText(sessionId), Math.max(after, 0), limit]);
  return readEntries(rows.map(({ entry }) => entry));
};

export const readMethods = (frame: Frame): ReadMethods => ({
  getTurn: async (turnId) => {
    const found = await frame.call<FoundTurn | null>("find_turn", [turnId]);
    return found ? readTurn(found) : undefined;
  },

  listTurns: (query) => listTurns(frame, query),

  getSession: async (sessionId) => {
    const [row] = await frame.query<SessionRow>(`${SESSION} where session_id = $1`, [keepText(sessionId)]);
    return row && readSession(row);
  },

  listSessions: async ({ agent, limit, cursor }) => {
    const before = cursor === undefined ? null : decodeCursor(cursor);
    const values = [before, limit + 1];
    const where = `where ($1::bigint is null or ordinal < $1)`;
    const order = "order by ordinal desc limit $2";
    const rows =
      agent === undefined
        ? await frame.query<SessionRow>(`${SESSION} ${where} ${order}`, values)
        : await frame.query<SessionRow>(`${SESSION} ${where} and agent = $3 ${order}`, [...values, agent]);
    return pageOf(rows, limit, readSession);
  },

  readEntries: (sessionId, { after, limit }) => readJournal(frame, sessionId, after, limit),

  readMessages: async (sessionId, query): Promise<Message[]> => {
    const { before, limit, characters = Infinity, includeCompacted = false } = query;
    if (limit < 1) return [];
    const from = before === undefined || before === Infinity ? null : before;
    const rows = await frame.query<MessageRow>(MESSAGES, [keepText(sessionId), from, limit, includeCompacted]);
    return withinCharacters(rows.map(readMessage), characters);
  },

  readSummary: async (sessionId): Promise<Summary | undefined> => {
    const [row] = await frame.query<{ summary: string; summary_outside: boolean }>(
      "select summary, summary_outside from sessions where session_id = $1 and summary is not null",
      [keepText(sessionId)],
    );
    return row && { text: readText(row.summary), outside: row.summary_outside };
  },

  stats: () => ({
    sessions: frame.counts.of("sessions"),
    turnsQueued: frame.counts.of("queued"),
    turnsRunning: frame.counts.of("running"),
    eventsQueued: frame.counts.of("events"),
    eventsDead: frame.counts.of("dead"),
    announcements: frame.counts.of("announcements"),
    bytes: frame.counts.of("bytes") + frame.counts.of("deliveryBytes"),
    deliveryBytes: frame.counts.of("deliveryBytes"),
    deliveries: frame.counts.of("deliveries"),
  }),

  agentCounts: (agent) => ({
    queued: frame.counts.of(`queued ${agent}`),
    running: frame.counts.of(`running ${agent}`),
    waitingEvents: frame.counts.of(`waiting ${agent}`),
    nextBeatAt: frame.beats.get(agent)?.at,
    pausedAt: frame.beats.get(agent)?.pausedAt ?? undefined,
    ...frame.ends.of(agent),
  }),

  openAgents: () => frame.call<string[]>("open_agents", []),
});

/** The message that passes `characters` is the last. */
const withinCharacters = (messages: Message[], characters: number): Message[] => {
  let left = characters;
  const last = messages.findIndex(({ text }) => {
    left -= text.length;
    return left <= 0;
  });
  return last < 0 ? messages : messages.slice(0, last + 1);
};
