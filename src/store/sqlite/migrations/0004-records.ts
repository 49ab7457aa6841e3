import {
  weighAnnouncement,
  weighCount,
  weighDelivery,
  weighEntry,
  weighEvent,
  weighKey,
  weighSession,
  weighSummary,
  weighTurn,
} from "#store/local/weights.ts";
import type { AgentRecord, BeatRecord, SummaryRecord } from "#store/rules/records.ts";
import type { ApiKey, SystemEvent } from "#store/store.ts";
import { COUNT_NAMES } from "#store/usage-counts.ts";
import { withTextBody } from "../bodies.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Rows, Value } from "../worker/database.ts";
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

/** The gateway's stream is kept like the journal of a session. */
const GATEWAY_SESSION = 0;
/** So many rows of a table are read together. */
const TOGETHER = 1_000;
/** Under which names the numbers were kept that had been set aside. */
const NUMBERS = { session: "sessions", event: "events", place: "turns", order: "deliveries" } as const;

export const records = (db: Database): void => {
  for (const table of OLD) db.exec(`ALTER TABLE ${table} RENAME TO old_${table}`);
  for (const index of OLD_INDEXES) db.exec(`DROP INDEX ${index}`);
  db.exec(CREATE);
  new Conversion(db).run();
  for (const table of OLD) db.exec(`DROP TABLE old_${table}`);
  db.exec("DELETE FROM meta WHERE name NOT IN ('epoch', 'state')");
};

type Counts = Record<"queued" | "running" | "waitingEvents" | "openEvents" | "deadEvents", number>;

/** Writes the rows of the old tables as records, and counts what they weigh. */
class Conversion {
  readonly #db: Database;
  readonly #live: Rows;
  readonly #counts = new Map<string, Counts>();
  /** The turns that work on events, by the ordinals of these, and the ids of these events. */
  readonly #takenBy = new Map<number, string>();
  readonly #takenIds = new Map<number, string>();
  /** Deliveries whose turn or event has not ended. */
  readonly #openDeliveries = new Set<string>();
  readonly #numbers = { session: 0, event: 0, place: 0, order: 0 };
  readonly #shelves = {
    refused: { size: 0, bytes: 0, ended: 0 },
    others: { size: 0, bytes: 0, ended: 0 },
  };
  /** How many turns wait in each session. */
  readonly #queued = new Map<number, number>();
  #gateway = { first: 1, last: 0, firstInFile: 1 };
  #sessions = 0;
  #bytes = 0;

  constructor(db: Database) {
    this.#db = db;
    this.#live = db.rows("INSERT INTO live (kind, id, body)", 3);
  }

  run(): void {
    for (const [series, name] of Object.entries(NUMBERS) as [keyof typeof NUMBERS, string][]) {
      const [last] = this.#db.query("SELECT value FROM meta WHERE name = ?").get<[number]>([`ordinals.${name}`]) ?? [0];
      this.#numbers[series] = last;
    }
    for (const [body] of this.#db.query(`SELECT ${bytesOf("body")} FROM old_open_turns`).all<[string]>([])) {
      const { turnId, ordinals } = takenBy(body);
      for (const ordinal of ordinals) this.#takenBy.set(ordinal, turnId);
    }
    this.#convertEvents();
    this.#convertOpenTurns();
    this.#convertSessions();
    this.#convertTurns();
    this.#convertJournals();
    this.#convertGateway();
    this.#convertDeliveries();
    this.#convertSmall();
    this.#convertUsage();
    for (const [agent, counts] of this.#counts) this.#put("counts", agent, { agent, counts });
    this.#live.flush();
    this.#writeState();
  }

  #put(kind: string, id: string, record: object): void {
    this.#live.add(kind, toSql(id), JSON.stringify(record));
  }

  #countsOf(agent: string): Counts {
    const counts = this.#counts.get(agent) ?? { queued: 0, running: 0, waitingEvents: 0, openEvents: 0, deadEvents: 0 };
    this.#counts.set(agent, counts);
    return counts;
  }

  /** All rows that a statement reads, some at a time, after which the new `rows` are written. `after` tells the values behind which it goes on. */
  *#pages<Row extends readonly unknown[]>(
    rows: Rows,
    sql: string,
    start: Value[],
    after: (row: Row) => Value[],
  ): Generator<Row> {
    const query = this.#db.query(`${sql} LIMIT ${TOGETHER}`);
    for (let values = start; ; ) {
      const page = query.all<Row>(values);
      yield* page;
      rows.flush();
      const last = page.at(-1);
      if (!last || page.length < TOGETHER) return;
      values = after(last);
    }
  }

  #convertEvents(): void {
    const rows = this.#db.rows("INSERT INTO events (ordinal, event_id, agent, is_free, ended_at, body)", 6);
    const sql = `SELECT first, ${bytesOf("head")}, ${bytesOf("old_events.body")}, ${bytesOf("old_event_states.body")}
      FROM old_events JOIN old_event_states USING (first) WHERE first > ? ORDER BY first`;
    for (const row of this.#pages<[number, string, string, string]>(rows, sql, [-1], ([first]) => [first])) {
      for (const record of readEvents(row, (ordinal) => this.#takenBy.get(ordinal))) {
        const { event, isTaken } = record;
        const isFree = event.status === "queued" && !isTaken;
        this.#countEvent(event, isFree);
        if (isTaken) this.#takenIds.set(event.ordinal, event.eventId);
        this.#bytes += weighEvent(record);
        const { ordinal, eventId, agent, endedAt } = event;
        rows.add(ordinal, eventId, toSql(agent), isFree ? 1 : 0, endedAt ?? null, JSON.stringify(record));
      }
    }
  }

  #countEvent({ agent, status, deliveryId, ordinal }: SystemEvent, isFree: boolean): void {
    const counts = this.#countsOf(agent);
    if (isFree) counts.waitingEvents++;
    if (status === "queued") counts.openEvents++;
    if (status === "dead") counts.deadEvents++;
    if (status === "queued" && deliveryId !== undefined) this.#openDeliveries.add(deliveryId);
    this.#numbers.event = Math.max(this.#numbers.event, ordinal);
  }

  #convertOpenTurns(): void {
    const sql = `SELECT place, session, ${bytesOf("t.body")}, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}
      FROM old_open_turns t JOIN old_sessions s ON s.ordinal = t.session ORDER BY place`;
    const begun = new Set<number>();
    for (const [place, ordinal, body, sessionId, agent] of this.#db
      .query(sql)
      .all<[number, number, string, string, string]>([])) {
      const idOf = (event: number) => this.#takenIds.get(event) ?? "";
      const record = readOpenTurn(place, { sessionId, agent, ordinal }, body, idOf);
      const { turn, open } = record;
      const isReady = turn.status === "queued" && !begun.has(ordinal) && open.dueAt === undefined;
      begun.add(ordinal);
      const readyOrder = isReady ? ++this.#numbers.order : undefined;
      this.#put("turn", turn.turnId, { ...record, open: { ...open, readyOrder } });
      this.#bytes += weighTurn(record);
      this.#countsOf(agent)[turn.status === "running" ? "running" : "queued"]++;
      if (turn.status === "queued") this.#queued.set(ordinal, (this.#queued.get(ordinal) ?? 0) + 1);
      if (turn.deliveryId !== undefined) this.#openDeliveries.add(turn.deliveryId);
      this.#numbers.place = Math.max(this.#numbers.place, place);
    }
  }

  #convertSessions(): void {
    const rows = this.#db.rows("INSERT INTO sessions (ordinal, session_id, agent, used, head, body)", 6);
    const sql = `SELECT ordinal, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}, head, ${bytesOf("body")}
      FROM old_sessions WHERE ordinal > ? ORDER BY ordinal`;
    for (const row of this.#pages<SessionRow>(rows, sql, [0], ([ordinal]) => [ordinal])) {
      const [ordinal, sessionId, agent] = row;
      const record = readSession(row, this.#queued.get(ordinal) ?? 0);
      const { session, headDueAt } = record;
      rows.add(ordinal, toSql(sessionId), toSql(agent), session.updatedAt, headDueAt ?? null, JSON.stringify(record));
      this.#sessions++;
      this.#bytes += weighSession(record);
      this.#numbers.session = Math.max(this.#numbers.session, ordinal);
    }
  }

  #convertTurns(): void {
    const rows = this.#db.rows("INSERT INTO turns (turn_id, body)", 2);
    const sql = `SELECT ${bytesOf("turn_id")}, session, ${bytesOf("t.body")}, ${freeBytesOf("session_id")}, ${freeBytesOf("agent")}
      FROM old_turns t LEFT JOIN old_sessions s ON s.ordinal = t.session WHERE turn_id > ? ORDER BY turn_id`;
    type Row = [string, number, string, string | null, string | null];
    for (const [turnId, ordinal, body, sessionId, agent] of this.#pages<Row>(rows, sql, [""], ([id]) => [id])) {
      const record = readEndedTurn(turnId, { sessionId: sessionId ?? "", agent: agent ?? "", ordinal }, body);
      rows.add(turnId, JSON.stringify(record));
      this.#bytes += weighTurn(record);
    }
  }

  #convertJournals(): void {
    const rows = this.#db.rows("INSERT INTO journal (session, first_seq, body)", 3);
    const sql = `SELECT session, last_seq, ${bytesOf("body")} FROM old_journal
      WHERE (session, last_seq) > (?, ?) ORDER BY session, last_seq`;
    for (const [session, lastSeq, body] of this.#pages<[number, number, string]>(rows, sql, [0, 0], (row) => [
      row[0],
      row[1],
    ])) {
      const entries = readEntries(body, lastSeq);
      for (const entry of entries) this.#bytes += weighEntry(entry);
      if (entries[0]) rows.add(session, entries[0].seq, JSON.stringify(entries));
    }
  }

  #convertGateway(): void {
    const rows = this.#db.rows("INSERT INTO journal (session, first_seq, body)", 3);
    const sql = `SELECT last_seq, first_seq, ${bytesOf("body")} FROM old_gateway_entries WHERE last_seq > ? ORDER BY last_seq`;
    for (const [last, first, body] of this.#pages<[number, number, string]>(rows, sql, [0], ([seq]) => [seq])) {
      const entries = readNews(body, last);
      if (entries[0]) rows.add(GATEWAY_SESSION, entries[0].seq, JSON.stringify(entries));
      this.#gateway = { first, last, firstInFile: first };
    }
  }

  #convertDeliveries(): void {
    const rows = this.#db.rows("INSERT INTO deliveries (place, delivery_id, refused, ended_order, body)", 5);
    const steps = this.#db.query(`SELECT ${bytesOf("steps")} FROM old_delivery_steps WHERE place = ?`);
    const sql = `SELECT first, ${bytesOf("head")}, ${bytesOf("body")}, ${bytesOf("places")}
      FROM old_deliveries LEFT JOIN old_deliveries_gone USING (first) WHERE first > ? ORDER BY first`;
    type Row = [number, string, string, string | null];
    for (const [first, head, body, places] of this.#pages<Row>(rows, sql, [-1], ([place]) => [place])) {
      const gone = new Set(places === null ? [] : (JSON.parse(places) as number[]));
      for (const found of readDeliveries([first, head, body], gone, (place) => steps.get<[string]>([place])?.[0])) {
        const isOpen = this.#openDeliveries.has(found.delivery.deliveryId) && found.delivery.answer === "accepted";
        const record = isOpen ? { ...found, endedOrder: undefined } : found;
        const { delivery, place, endedOrder } = record;
        const isRefused = delivery.answer === "refused";
        const shelf = this.#shelves[isRefused ? "refused" : "others"];
        shelf.size++;
        shelf.bytes += weighDelivery(record);
        if (endedOrder !== undefined) shelf.ended++;
        const json = JSON.stringify({ ...record, delivery: withTextBody(delivery) });
        rows.add(place, delivery.deliveryId, isRefused ? 1 : 0, endedOrder ?? null, json);
        this.#numbers.order = Math.max(this.#numbers.order, place);
      }
    }
  }

  #convertSmall(): void {
    this.#convertSummaries();
    this.#convertKeys();
    this.#convertAnnouncements();
    const agents = this.#db.query(`SELECT ${freeBytesOf("agent")}, ${bytesOf("body")}, paused_at FROM old_agents`);
    for (const [agent, body, pausedAt] of agents.all<[string, string, number | null]>([])) {
      const [lastEndedAt, failing] = JSON.parse(body) as [number | null, boolean];
      const record = { agent, lastEndedAt: lastEndedAt ?? undefined, failing, pausedAt: pausedAt ?? undefined };
      this.#put("agent", agent, record satisfies AgentRecord);
    }
    const beats = this.#db.query(
      `SELECT ${bytesOf("agent")}, due, told_at, asked, running, ${bytesOf("node")}, fence FROM old_beats`,
    );
    type Beat = [string, number | null, number | null, number, number, string, number];
    for (const [agent, due, toldAt, asked, running, node, fence] of beats.all<Beat>([])) {
      const lease = running === 1 ? { node, endsAt: 0 } : undefined;
      const record = {
        agent,
        dueAt: due ?? undefined,
        nextAt: toldAt ?? undefined,
        isAsked: asked === 1,
        fence,
        lease,
      };
      this.#put("beat", agent, record satisfies BeatRecord);
    }
    for (const [ordinal] of this.#db.query("SELECT session FROM old_erasing").all<[number]>([])) {
      this.#put("erasure", String(ordinal), { ordinal });
    }
    const keys = this.#db.query(`SELECT ${bytesOf("body")}, last_used_at FROM old_api_keys ORDER BY place`);
    for (const [body, lastUsedAt] of keys.all<[string, number | null]>([])) {
      const key = { ...(JSON.parse(body) as ApiKey), lastUsedAt: lastUsedAt ?? undefined };
      this.#put("key", key.keyId, key);
    }
  }

  #convertSummaries(): void {
    const rows = this.#db.rows("INSERT INTO summaries (session, body)", 2);
    const sql = `SELECT session, ${bytesOf("body")} FROM old_summaries WHERE session > ? ORDER BY session`;
    type Body = { text: string; outside: boolean; through: number; except: number[] };
    for (const [ordinal, body] of this.#pages<[number, string]>(rows, sql, [0], ([session]) => [session])) {
      const { text, outside, through, except } = JSON.parse(body) as Body;
      const record: SummaryRecord = { ordinal, summary: { text, outside }, through, except };
      rows.add(ordinal, JSON.stringify(record));
      this.#bytes += weighSummary(record);
    }
  }

  #convertKeys(): void {
    const rows = this.#db.rows("INSERT INTO idempotency_keys (key, expires_at, body)", 3);
    const columns = `${freeBytesOf("key")}, ${bytesOf("hash")}, expires_at, ${bytesOf("turn_id")}, ${bytesOf("event_id")}`;
    const sql = `SELECT place, ${columns} FROM old_idempotency_keys WHERE place > ? ORDER BY place`;
    type Row = [number, string, string, number, string | null, string | null];
    for (const [, key, hash, expiresAt, turnId, eventId] of this.#pages<Row>(rows, sql, [0], ([place]) => [place])) {
      const record = { key, hash, expiresAt, turnId: turnId ?? undefined, eventId: eventId ?? undefined };
      rows.add(toSql(key), expiresAt, JSON.stringify(record));
      this.#bytes += weighKey(record);
    }
  }

  #convertAnnouncements(): void {
    const columns = `${freeBytesOf("channel")}, state, due, ${bytesOf("node")}, fence, attempts, ${bytesOf("body")}`;
    const sql = `SELECT place, ${bytesOf("turn_id")}, session, ${columns} FROM old_announcements ORDER BY place`;
    type Row = [number, string, number, string, number, number, string, number, number, string];
    for (const [place, turnId, ordinal, channel, state, due, node, fence, attempts, body] of this.#db
      .query(sql)
      .all<Row>([])) {
      const [sessionId, agent, hops, deliveryId, createdAt] = JSON.parse(body) as [
        string,
        string,
        number,
        string | null,
        number,
      ];
      const of = { turnId, sessionId, agent, channel, hops, deliveryId: deliveryId ?? undefined, createdAt, attempts };
      const lease = state === 1 ? { node, endsAt: 0 } : undefined;
      const record = { announcement: of, ordinal, place, dueAt: state === 2 ? due : undefined, fence, lease };
      this.#put("announcement", turnId, record);
      this.#bytes += weighAnnouncement();
      this.#numbers.place = Math.max(this.#numbers.place, place);
    }
  }

  #convertUsage(): void {
    const rows = this.#db.rows("INSERT INTO usage (counter, hour, body)", 3);
    const keys = `hour, ${freeBytesOf("agent")}, ${freeBytesOf("model")}, ${bytesOf("surface")}, ${freeBytesOf("caller")}`;
    const columns = COUNT_NAMES.map((name) => (name === "latencyMs" ? "latency_ms" : name)).join(", ");
    const all = "hour, agent, model, surface, caller";
    const sql = `SELECT ${keys}, ${columns} FROM old_usage_counters WHERE (${all}) > (?, ?, ?, ?, ?) ORDER BY ${all}`;
    type Row = [number, string, string, string, string, ...number[]];
    const after = ([hour, agent, model, surface, caller]: Row) => [
      hour,
      toSql(agent),
      toSql(model),
      surface,
      toSql(caller),
    ];
    for (const [hour, agent, model, surface, caller, ...values] of this.#pages<Row>(
      rows,
      sql,
      [-1, "", "", "", ""],
      after,
    )) {
      const count = {
        hour,
        agent,
        model,
        surface,
        caller,
        ...Object.fromEntries(COUNT_NAMES.map((name, n) => [name, values[n]])),
      };
      rows.add(toSql(`${hour} ${JSON.stringify([agent, model, surface, caller])}`), hour, JSON.stringify(count));
      this.#bytes += weighCount();
    }
  }

  #writeState(): void {
    const state = {
      ...{ numbers: this.#numbers, sessions: this.#sessions, bytes: this.#bytes, shelves: this.#shelves },
      ...{ gateway: this.#gateway },
      bookmarks: { isWaitedNext: true, sweptTo: 0, recorderBytes: Number.MAX_SAFE_INTEGER },
    };
    this.#db.run("INSERT INTO meta (name, value) VALUES (?, ?)")(["state", JSON.stringify(state)]);
  }
}
