import type { ApiKey, Surface } from "#store/store.ts";
import { COUNT_NAMES, NO_COUNTS } from "#store/usage-counts.ts";
import { withTextBody } from "../bodies.ts";
import { bytesOf, freeBytesOf } from "../text.ts";
import type { Database } from "../worker/database.ts";
import { SqliteRecords } from "../worker/records.ts";
import { newKept } from "../worker/state-row.ts";
import {
  readDeliveries,
  readEndedTurn,
  readEntries,
  readEvents,
  readNews,
  readOpenTurn,
  readSession,
  type SessionRow,
  takenBy,
} from "./0004-old-rows.ts";

/** Each record is a row: columns to find it by, and the whole of it as JSON. */
const CREATE = `
-- What is held in memory whole: turns that have not ended, agents and their counts, beats, announcements, API keys, sessions that are gone
-- and of whose journal some is left. In the order in which each was put first.
CREATE TABLE live (place INTEGER PRIMARY KEY, kind TEXT NOT NULL, id NOT NULL, body TEXT NOT NULL);
CREATE UNIQUE INDEX live_by_id ON live (kind, id);

-- used: when it was used last; head: the bound from which on the head of its journal may be erased.
CREATE TABLE sessions (
  ordinal INTEGER PRIMARY KEY,
  session_id NOT NULL,
  agent NOT NULL,
  used INTEGER NOT NULL,
  head INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX sessions_by_id ON sessions (session_id);
CREATE INDEX sessions_by_agent ON sessions (agent, ordinal);

-- Entries that were appended in one batch, from first_seq on. The gateway's stream has the session 0.
CREATE TABLE journal (
  session INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, first_seq)
) WITHOUT ROWID;

CREATE TABLE summaries (session INTEGER PRIMARY KEY, body TEXT NOT NULL);

-- Turns that have ended, without their replies: the journal has these.
CREATE TABLE turns (turn_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE events (
  ordinal INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  agent NOT NULL,
  is_free INTEGER NOT NULL,
  ended_at INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX events_by_id ON events (event_id);
CREATE INDEX events_free ON events (agent, ordinal) WHERE is_free = 1;
CREATE INDEX events_ended ON events (ended_at, ordinal) WHERE ended_at IS NOT NULL;

CREATE TABLE deliveries (
  place INTEGER PRIMARY KEY,
  delivery_id TEXT NOT NULL,
  refused INTEGER NOT NULL,
  ended_order INTEGER,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX deliveries_by_id ON deliveries (delivery_id);
CREATE INDEX deliveries_ended ON deliveries (refused, ended_order) WHERE ended_order IS NOT NULL;

CREATE TABLE idempotency_keys (key PRIMARY KEY, expires_at INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_end ON idempotency_keys (expires_at);

CREATE TABLE usage (counter PRIMARY KEY, hour INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX usage_by_hour ON usage (hour);
`;

const OLD = [
  ...["agents", "sessions", "journal", "erasing", "summaries", "open_turns", "turns", "events", "event_states"],
  ...["event_places", "gateway_entries", "deliveries", "deliveries_gone", "delivery_steps", "idempotency_keys"],
  ...["beats", "announcements", "usage_counters", "api_keys"],
];
const OLD_INDEXES = ["sessions_by_id", "sessions_by_agent", "idempotency_keys_by_key"];

/** The number of rows that are converted before the result is written. */
const TOGETHER = 1_000;
/** Entries that are written together share a row. */
const JOURNALS_TOGETHER = 8;

/**
 * @NOTE The records are put as a gateway puts them, into its tables as they are now. A migration that changes the content of
 * these tables converts the old rows itself, and ends the way from versions before 4.
 */
export const records = (db: Database): void => {
  for (const table of OLD) db.exec(`ALTER TABLE ${table} RENAME TO old_${table}`);
  for (const index of OLD_INDEXES) db.exec(`DROP INDEX ${index}`);
  db.exec(CREATE);
  writeState(db);
  new Conversion(db).run();
  for (const table of OLD) db.exec(`DROP TABLE old_${table}`);
  db.exec("DELETE FROM meta WHERE name NOT IN ('epoch', 'state')");
};

/** The numbers that were set aside, and the place at which the gateway's stream begins. */
const writeState = (db: Database): void => {
  const lastOf = (series: string): number =>
    db.query("SELECT value FROM meta WHERE name = ?").get<[number]>([`ordinals.${series}`])?.[0] ?? 0;
  const [last, body] =
    db
      .query(`SELECT last_seq, ${bytesOf("body")} FROM old_gateway_entries ORDER BY last_seq LIMIT 1`)
      .get<[number, string]>([]) ?? [];
  const [first = 1] =
    db.query("SELECT first_seq FROM old_gateway_entries ORDER BY last_seq DESC LIMIT 1").get<[number]>([]) ?? [];
  const before = last === undefined ? 0 : last - readNews(body ?? "[]", last).length;
  const state = {
    ...newKept(),
    numbers: {
      session: lastOf("sessions"),
      event: lastOf("events"),
      place: lastOf("turns"),
      order: lastOf("deliveries"),
    },
    gateway: { first, last: before, firstInFile: before + 1 },
  };
  db.run("INSERT INTO meta (name, value) VALUES ('state', ?)")([JSON.stringify(state)]);
};

/** Writes the rows of the old tables as records. */
class Conversion {
  readonly #db: Database;
  readonly #records: SqliteRecords;
  /** The turns that work on events, by the ordinals of these, and the ids of these events. */
  readonly #takenBy = new Map<number, string>();
  readonly #takenIds = new Map<number, string>();
  /** Deliveries whose turn or event has not ended. */
  readonly #openDeliveries = new Set<string | undefined>();
  /** The number of turns that wait in each session. */
  readonly #queued = new Map<number, number>();

  constructor(db: Database) {
    this.#db = db;
    this.#records = new SqliteRecords(db);
  }

  run(): void {
    for (const [body] of this.#rows<[string]>(`SELECT ${bytesOf("body")} FROM old_open_turns`)) {
      const { turnId, ordinals } = takenBy(body);
      for (const ordinal of ordinals) this.#takenBy.set(ordinal, turnId);
    }
    this.#convertEvents();
    this.#convertOpenTurns();
    this.#convertSessions();
    this.#convertTurns();
    this.#convertJournals();
    this.#convertDeliveries();
    this.#convertAnnouncements();
    this.#convertSmall();
    this.#convertUsage();
  }

  /** All rows that a statement reads. Their results are written in parts, and are complete at the end. */
  *#rows<Row extends readonly unknown[]>(sql: string, together = TOGETHER): Generator<Row> {
    let count = 0;
    for (const row of this.#db.query(sql).each<Row>([])) {
      yield row;
      if (++count % together === 0) this.#write();
    }
    this.#write();
  }

  #write(): void {
    this.#records.flush();
    this.#records.trim();
  }

  #convertEvents(): void {
    const { events, agents } = this.#records;
    const sql = `SELECT first, ${bytesOf("head")}, ${bytesOf("old_events.body")}, ${bytesOf("old_event_states.body")}
      FROM old_events JOIN old_event_states USING (first) ORDER BY first`;
    for (const row of this.#rows<[number, string, string, string]>(sql)) {
      for (const record of readEvents(row, (ordinal) => this.#takenBy.get(ordinal))) {
        const { agent, status, deliveryId, ordinal, eventId } = record.event;
        if (record.isTaken) this.#takenIds.set(ordinal, eventId);
        if (status === "queued") this.#openDeliveries.add(deliveryId);
        if (status === "queued") agents.count(agent, { waitingEvents: record.isTaken ? 0 : 1, openEvents: 1 });
        if (status === "dead") agents.count(agent, { deadEvents: 1 });
        events.put(record);
      }
    }
  }

  #convertOpenTurns(): void {
    const { turns, agents } = this.#records;
    const sql = `SELECT place, session, ${bytesOf("t.body")}, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}
      FROM old_open_turns t JOIN old_sessions s ON s.ordinal = t.session ORDER BY place`;
    const begun = new Set<number>();
    for (const [place, ordinal, body, sessionId, agent] of this.#rows<[number, number, string, string, string]>(sql)) {
      const idOf = (event: number) => this.#takenIds.get(event) ?? "";
      const record = readOpenTurn(place, { sessionId, agent, ordinal }, body, idOf);
      const { turn, open } = record;
      const isQueued = turn.status === "queued";
      const isReady = isQueued && !begun.has(ordinal) && open.dueAt === undefined;
      begun.add(ordinal);
      if (isQueued) this.#queued.set(ordinal, (this.#queued.get(ordinal) ?? 0) + 1);
      this.#openDeliveries.add(turn.deliveryId);
      agents.count(agent, isQueued ? { queued: 1 } : { running: 1 });
      turns.put({ ...record, open: { ...open, readyOrder: isReady ? this.#records.next("order") : undefined } });
    }
  }

  #convertSessions(): void {
    const sql = `SELECT ordinal, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}, head, ${bytesOf("body")}
      FROM old_sessions ORDER BY ordinal`;
    for (const row of this.#rows<SessionRow>(sql)) {
      this.#records.sessions.put(readSession(row, this.#queued.get(row[0]) ?? 0));
    }
  }

  #convertTurns(): void {
    const sql = `SELECT ${bytesOf("turn_id")}, session, ${bytesOf("t.body")}, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}
      FROM old_turns t LEFT JOIN old_sessions s ON s.ordinal = t.session`;
    type Row = [string, number, string, string | null, string | null];
    for (const [turnId, ordinal, body, sessionId, agent] of this.#rows<Row>(sql)) {
      this.#records.turns.put(readEndedTurn(turnId, { sessionId: sessionId ?? "", agent: agent ?? "", ordinal }, body));
    }
  }

  #convertJournals(): void {
    const sql = `SELECT session, last_seq, ${bytesOf("body")} FROM old_journal ORDER BY session, last_seq`;
    for (const [session, lastSeq, body] of this.#rows<[number, number, string]>(sql, JOURNALS_TOGETHER)) {
      this.#records.journal(session).append(readEntries(body, lastSeq));
    }
    const news = `SELECT last_seq, ${bytesOf("body")} FROM old_gateway_entries ORDER BY last_seq`;
    for (const [lastSeq, body] of this.#rows<[number, string]>(news, JOURNALS_TOGETHER)) {
      this.#records.gateway.append(readNews(body, lastSeq));
    }
  }

  #convertDeliveries(): void {
    const steps = this.#db.query(`SELECT ${bytesOf("steps")} FROM old_delivery_steps WHERE place = ?`);
    const sql = `SELECT first, ${bytesOf("head")}, ${bytesOf("body")}, ${bytesOf("places")}
      FROM old_deliveries LEFT JOIN old_deliveries_gone USING (first) ORDER BY first`;
    for (const [first, head, body, places] of this.#rows<[number, string, string, string | null]>(sql)) {
      const gone = new Set(places === null ? [] : (JSON.parse(places) as number[]));
      for (const record of readDeliveries([first, head, body], gone, (place) => steps.get<[string]>([place])?.[0])) {
        const { delivery, endedOrder } = record;
        const isOpen = this.#openDeliveries.has(delivery.deliveryId) && delivery.answer === "accepted";
        const kept = { ...record, delivery: withTextBody(delivery), endedOrder: isOpen ? undefined : endedOrder };
        this.#records.deliveries.put(kept);
      }
    }
  }

  #convertAnnouncements(): void {
    const columns = `${freeBytesOf("channel")}, state, due, ${bytesOf("node")}, fence, attempts, ${bytesOf("body")}`;
    const sql = `SELECT place, ${bytesOf("turn_id")}, session, ${columns} FROM old_announcements ORDER BY place`;
    type Row = [number, string, number, string, number, number, string, number, number, string];
    type Body = [sessionId: string, agent: string, hops: number, deliveryId: string | null, createdAt: number];
    for (const [place, turnId, ordinal, channel, state, due, node, fence, attempts, body] of this.#rows<Row>(sql)) {
      const [sessionId, agent, hops, deliveryId, createdAt] = JSON.parse(body) as Body;
      const of = { turnId, sessionId, agent, channel, hops, deliveryId: deliveryId ?? undefined, createdAt, attempts };
      const lease = state === 1 ? { node, endsAt: 0 } : undefined;
      const dueAt = state === 2 ? due : undefined;
      this.#records.announcements.put({ announcement: of, ordinal, place, dueAt, fence, lease });
    }
  }

  #convertSmall(): void {
    const { agents, beats, erasures, apiKeys, summaries, keys } = this.#records;
    const ofAgents = `SELECT ${freeBytesOf("agent")}, ${bytesOf("body")}, paused_at FROM old_agents`;
    for (const [agent, body, pausedAt] of this.#rows<[string, string, number | null]>(ofAgents)) {
      const [lastEndedAt, failing] = JSON.parse(body) as [number | null, boolean];
      agents.put({ agent, lastEndedAt: lastEndedAt ?? undefined, failing, pausedAt: pausedAt ?? undefined });
    }
    const ofBeats = `SELECT ${bytesOf("agent")}, due, told_at, asked, running, ${bytesOf("node")}, fence FROM old_beats`;
    type Beat = [string, number | null, number | null, number, number, string, number];
    for (const [agent, due, toldAt, asked, running, node, fence] of this.#rows<Beat>(ofBeats)) {
      const times = { dueAt: due ?? undefined, nextAt: toldAt ?? undefined, isAsked: asked === 1 };
      beats.put({ agent, ...times, fence, lease: running === 1 ? { node, endsAt: 0 } : undefined });
    }
    for (const [ordinal] of this.#rows<[number]>("SELECT session FROM old_erasing")) erasures.add(ordinal);
    const ofApiKeys = `SELECT ${bytesOf("body")}, last_used_at FROM old_api_keys ORDER BY place`;
    for (const [body, lastUsedAt] of this.#rows<[string, number | null]>(ofApiKeys)) {
      apiKeys.put({ ...(JSON.parse(body) as ApiKey), lastUsedAt: lastUsedAt ?? undefined });
    }
    type Body = { text: string; outside: boolean; through: number; except: number[] };
    for (const [ordinal, body] of this.#rows<[number, string]>(
      `SELECT session, ${bytesOf("body")} FROM old_summaries`,
    )) {
      const { text, outside, through, except } = JSON.parse(body) as Body;
      summaries.put({ ordinal, summary: { text, outside }, through, except });
    }
    const ofKeys = `SELECT ${freeBytesOf("key")}, ${bytesOf("hash")}, expires_at, ${bytesOf("turn_id")}, ${bytesOf("event_id")}
      FROM old_idempotency_keys ORDER BY place`;
    for (const row of this.#rows<[string, string, number, string | null, string | null]>(ofKeys)) {
      const [key, hash, expiresAt, turnId, eventId] = row;
      keys.put({ key, hash, expiresAt, turnId: turnId ?? undefined, eventId: eventId ?? undefined });
    }
  }

  #convertUsage(): void {
    const names = `hour, ${freeBytesOf("agent")}, ${freeBytesOf("model")}, ${bytesOf("surface")}, ${freeBytesOf("caller")}`;
    const counts = COUNT_NAMES.map((name) => (name === "latencyMs" ? "latency_ms" : name)).join(", ");
    type Row = [number, string, string, Surface, string, ...number[]];
    for (const row of this.#rows<Row>(`SELECT ${names}, ${counts} FROM old_usage_counters`)) {
      const [hour, agent, model, surface, caller, ...values] = row;
      const change = { ...NO_COUNTS };
      for (const [n, name] of COUNT_NAMES.entries()) change[name] = values[n] ?? 0;
      this.#records.usage.add({ hour, agent, model, surface, caller }, change);
    }
  }
}
