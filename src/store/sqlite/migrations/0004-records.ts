import type { AgentRecord, AnnouncementRecord, BeatRecord, KeyRecord, SummaryRecord } from "#store/rules/records.ts";
import type { Announcement, ApiKey, UsageCount } from "#store/store.ts";
import { COUNT_NAMES } from "#store/usage-counts.ts";
import { freeBytesOf } from "../text.ts";
import type { Database } from "../worker/database.ts";
import { newKept, SqliteRecords } from "../worker/records.ts";
import {
  type EntriesRow,
  named,
  readDeliveries,
  readEndedTurn,
  readEntries,
  readEvents,
  readNews,
  readOpenTurn,
  readSession,
  type SessionRow,
  type TurnRow,
  takenBy,
} from "./0004-old-rows.ts";
import { tables } from "./0004-tables.ts";

const OLD = [
  ...["agents", "sessions", "journal", "erasing", "summaries", "open_turns", "turns", "events", "event_states"],
  ...["event_places", "gateway_entries", "deliveries", "deliveries_gone", "delivery_steps", "idempotency_keys"],
  ...["beats", "announcements", "usage_counters", "api_keys"],
];
const OLD_INDEXES = ["sessions_by_id", "sessions_by_agent", "idempotency_keys_by_key"];
const OF_SESSION = "(SELECT ordinal AS session, session_id, agent FROM old_sessions) USING (session)";

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
  db.exec(tables);
  writeState(db);
  new Conversion(db).run();
  for (const table of OLD) db.exec(`DROP TABLE old_${table}`);
  db.exec("DELETE FROM meta WHERE name NOT IN ('epoch', 'state')");
};

/** The rows of an old table: `names` are its columns, in camel case. */
function* rowsOf<R>(db: Database, names: string, table: string): Generator<R> {
  const columns = names.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).split(" ");
  const sql = `SELECT ${columns.map(freeBytesOf).join(", ")} FROM ${table}`;
  for (const row of db.query(sql).each<unknown[]>([])) yield named<R>(names, row);
}

/** The numbers that were set aside, and the place at which the gateway's stream begins. */
const writeState = (db: Database): void => {
  const meta = [...rowsOf<{ name: string; value: number }>(db, "name value", "meta")];
  const lastOf = (series: string): number => meta.find(({ name }) => name === `ordinals.${series}`)?.value ?? 0;
  type Row = EntriesRow & { firstSeq: number };
  const news = [...rowsOf<Row>(db, "lastSeq firstSeq body", "old_gateway_entries ORDER BY last_seq")];
  const before = news[0] ? news[0].lastSeq - readNews(news[0]).length : 0;
  const [session, event] = [lastOf("sessions"), lastOf("events")];
  const state = {
    ...newKept(),
    numbers: { session, event, place: lastOf("turns"), order: lastOf("deliveries") },
    gateway: { first: news.at(-1)?.firstSeq ?? 1, last: before },
  };
  db.run("INSERT INTO meta (name, value) VALUES ('state', ?)")(JSON.stringify(state));
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
    for (const { body } of this.#rows<{ body: string }>("body", "old_open_turns")) {
      const { turnId, ordinals } = takenBy(body);
      for (const ordinal of ordinals) this.#takenBy.set(ordinal, turnId);
    }
    this.#convertEvents();
    this.#convertOpenTurns();
    this.#convertSessions();
    this.#convertJournals();
    this.#convertDeliveries();
    this.#convertLive();
    this.#convertOthers();
  }

  /** Their results are written in parts, and are complete at the end. */
  *#rows<R>(names: string, table: string, together = TOGETHER): Generator<R> {
    let count = 0;
    for (const row of rowsOf<R>(this.#db, names, table)) {
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
    const from = "old_events JOIN (SELECT first, body AS states FROM old_event_states) USING (first) ORDER BY first";
    for (const row of this.#rows<Parameters<typeof readEvents>[0]>("first head body states", from)) {
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
    const from = `old_open_turns JOIN ${OF_SESSION} ORDER BY place`;
    const begun = new Set<number>();
    for (const row of this.#rows<TurnRow & { place: number }>("place session body sessionId agent", from)) {
      const record = readOpenTurn(row, (event) => this.#takenIds.get(event) ?? "");
      const { turn, open, ordinal } = record;
      const isQueued = turn.status === "queued";
      const isReady = isQueued && !begun.has(ordinal) && open.dueAt === undefined;
      begun.add(ordinal);
      if (isQueued) this.#queued.set(ordinal, (this.#queued.get(ordinal) ?? 0) + 1);
      this.#openDeliveries.add(turn.deliveryId);
      agents.count(turn.agent, isQueued ? { queued: 1 } : { running: 1 });
      turns.put({ ...record, open: { ...open, readyOrder: isReady ? this.#records.next("order") : undefined } });
    }
  }

  #convertSessions(): void {
    const { sessions, turns } = this.#records;
    const names = "ordinal sessionId agent head body";
    for (const row of this.#rows<SessionRow>(names, "old_sessions ORDER BY ordinal")) {
      sessions.put(readSession(row, this.#queued.get(row.ordinal) ?? 0));
    }
    const ended = `old_turns LEFT JOIN ${OF_SESSION}`;
    for (const row of this.#rows<Parameters<typeof readEndedTurn>[0]>("turnId session body sessionId agent", ended)) {
      turns.put(readEndedTurn(row));
    }
  }

  #convertJournals(): void {
    type Row = EntriesRow & { session: number };
    const journals = "old_journal ORDER BY session, last_seq";
    for (const row of this.#rows<Row>("session lastSeq body", journals, JOURNALS_TOGETHER)) {
      this.#records.journal(row.session).append(readEntries(row));
    }
    const news = "old_gateway_entries ORDER BY last_seq";
    for (const row of this.#rows<EntriesRow>("lastSeq body", news, JOURNALS_TOGETHER)) {
      this.#records.gateway.append(readNews(row));
    }
  }

  #convertDeliveries(): void {
    const later = new Map<number, string>();
    for (const row of this.#rows<{ place: number; steps: string }>("place steps", "old_delivery_steps")) {
      later.set(row.place, row.steps);
    }
    const from = "old_deliveries LEFT JOIN old_deliveries_gone USING (first) ORDER BY first";
    for (const row of this.#rows<Parameters<typeof readDeliveries>[0]>("first head body places", from)) {
      for (const record of readDeliveries(row, (place) => later.get(place))) {
        const { delivery, endedOrder } = record;
        const isOpen = this.#openDeliveries.has(delivery.deliveryId) && delivery.answer === "accepted";
        this.#records.deliveries.put({ ...record, endedOrder: isOpen ? undefined : endedOrder });
      }
    }
  }

  #convertLive(): void {
    const { agents, beats, erasures, apiKeys, announcements } = this.#records;
    for (const { body, ...of } of this.#rows<AgentRecord & { body: string }>("agent body pausedAt", "old_agents")) {
      const [lastEndedAt, failing] = JSON.parse(body) as [number | null, boolean];
      agents.put({ ...of, lastEndedAt: lastEndedAt ?? undefined, failing });
    }
    type Beat = Record<"due" | "toldAt" | "asked" | "running", number> & BeatRecord & { node: string };
    const ofBeat = "agent due toldAt asked running node fence";
    for (const { agent, due, toldAt, asked, running, node, fence } of this.#rows<Beat>(ofBeat, "old_beats")) {
      const lease = running === 1 ? { node, endsAt: 0 } : undefined;
      beats.put({ agent, dueAt: due, nextAt: toldAt, isAsked: asked === 1, fence, lease });
    }
    for (const row of this.#rows<{ session: number }>("session", "old_erasing")) erasures.add(row.session);
    const keys = this.#rows<{ body: string; lastUsedAt: number }>("body lastUsedAt", "old_api_keys ORDER BY place");
    for (const { body, lastUsedAt } of keys) apiKeys.put({ ...(JSON.parse(body) as ApiKey), lastUsedAt });
    type Told = Announcement & AnnouncementRecord & Record<"session" | "state" | "due", number>;
    const ofTold = "place turnId session channel state due node fence attempts body";
    for (const row of this.#rows<Told & { node: string; body: string }>(ofTold, "old_announcements ORDER BY place")) {
      const { place, turnId, session, channel, state, due, node, fence, attempts, body } = row;
      const values = JSON.parse(body) as unknown[];
      const of = named<Announcement>("sessionId agent hops deliveryId createdAt", values);
      announcements.put({
        ...{ announcement: { ...of, turnId, channel, attempts }, ordinal: session, place, fence },
        dueAt: state === 2 ? due : undefined,
        lease: state === 1 ? { node, endsAt: 0 } : undefined,
      });
    }
  }

  #convertOthers(): void {
    const { summaries, keys, usage } = this.#records;
    for (const { session, body } of this.#rows<{ session: number; body: string }>("session body", "old_summaries")) {
      const { text, outside, through, except } = JSON.parse(body) as SummaryRecord["summary"] & SummaryRecord;
      summaries.put({ ordinal: session, summary: { text, outside }, through, except });
    }
    const ofKey = "key hash expiresAt turnId eventId";
    for (const row of this.#rows<KeyRecord>(ofKey, "old_idempotency_keys ORDER BY place")) keys.put(row);
    const ofCounter = `hour agent model surface caller ${COUNT_NAMES.join(" ")}`;
    for (const { hour, agent, model, surface, caller, ...counts } of this.#rows<UsageCount>(
      ofCounter,
      "old_usage_counters",
    )) {
      usage.add({ hour, agent, model, surface, caller }, counts);
    }
  }
}
