import type { Clock } from "#kit/clock.ts";
import type { Bookmarks, News, Records, Totals } from "#store/rules/records.ts";
import { Agents } from "./agents.ts";
import { announcementRecords } from "./announcements.ts";
import { Deliveries } from "./deliveries.ts";
import { Events } from "./events.ts";
import { GatewayStream } from "./gateway.ts";
import { Journals } from "./journals.ts";
import { Sessions } from "./sessions.ts";
import { apiKeyRecords, keyRecords, lateAttemptRecords } from "./small-tables.ts";
import { json, number, type Row, type Sql, sql, textList } from "./sql.ts";
import { Transaction } from "./transaction.ts";
import { Turns } from "./turns.ts";
import { UsageTable } from "./usage.ts";

/** The memory of the rules from one transaction to the next, in this process. */
export type Memory = {
  bookmarks: Bookmarks;
  readonly usage: Set<string>;
  /** The shelves of the recorder that were full. */
  readonly lettingGo: Set<boolean>;
};

export const newMemory = (): Memory => {
  return {
    bookmarks: { isWaitedNext: true, sweptTo: 0, recorderBytes: Infinity },
    usage: new Set(),
    lettingGo: new Set(),
  };
};

const TOTALS = [
  "sessions",
  "queued",
  "running",
  "events",
  "dead",
  "announcements",
  "deliveries",
  "bytes",
  "deliveryBytes",
  "refused",
  "refusedBytes",
] as const;
export type Total = (typeof TOTALS)[number];
/** Gateways of the version before count in lanes of their own. */
const READ_TOTALS = sql`select name, sum(value)::bigint as value from counts where name = any (${textList(TOTALS)}) group by name`;

const totalsOf = (counted: (name: Total) => number): Totals => ({
  get sessions() {
    return counted("sessions");
  },
  get turnsQueued() {
    return counted("queued");
  },
  get turnsRunning() {
    return counted("running");
  },
  get eventsQueued() {
    return counted("events");
  },
  get eventsDead() {
    return counted("dead");
  },
  get announcements() {
    return counted("announcements");
  },
  get deliveries() {
    return counted("deliveries");
  },
  get bytes() {
    return counted("bytes");
  },
  get deliveryBytes() {
    return counted("deliveryBytes");
  },
});

/** The records of one transaction. */
export class PostgresRecords implements Records {
  readonly #transaction: Transaction;
  readonly #memory: Memory;
  readonly #sessions: Sessions;
  readonly #agents: Agents;
  readonly #events: Events;
  readonly #usage: UsageTable;
  #bookmarks: Bookmarks;
  #countedBefore: { rows: readonly Row[]; totals: ReadonlyMap<string, number> } = { rows: [], totals: new Map() };

  readonly totals: Totals;
  readonly keys: Records["keys"];
  readonly sessions: Records["sessions"];
  readonly summaries: Records["summaries"];
  readonly compactions: Records["compactions"];
  readonly erasures: Records["erasures"];
  readonly journal: Records["journal"];
  readonly turns: Records["turns"];
  readonly lateAttempts: Records["lateAttempts"];
  readonly events: Records["events"];
  readonly beats: Records["beats"];
  readonly agents: Records["agents"];
  readonly announcements: Records["announcements"];
  readonly deliveries: Records["deliveries"];
  readonly usage: Records["usage"];
  readonly gateway: GatewayStream;
  readonly apiKeys: ReturnType<typeof apiKeyRecords>;

  constructor(clock: Clock, isWriting: boolean, memory: Memory) {
    const transaction = new Transaction(clock, isWriting);
    this.#transaction = transaction;
    this.#memory = memory;
    this.#bookmarks = memory.bookmarks;
    this.totals = totalsOf(this.#counted);
    // Locks are taken in this order.
    this.keys = keyRecords(transaction);
    this.#events = new Events(transaction);
    const journal: Records["journal"] = (ordinal) => this.journal(ordinal);
    const turns = new Turns(transaction, () => this.#sessions, journal, this.#events.ordinalsOf);
    this.#sessions = new Sessions(transaction, turns, (turnIds) => [
      this.#events.ofTurns(turnIds),
      deliveries.ofTurns(turnIds),
      ...this.#agents.ofTurns(turnIds),
    ]);
    this.journal = new Journals(transaction, this.#sessions).of;
    this.#agents = new Agents(transaction);
    this.#usage = new UsageTable(transaction, memory.usage);
    this.gateway = new GatewayStream(transaction);
    this.apiKeys = apiKeyRecords(transaction);
    this.sessions = this.#sessions.records;
    this.summaries = this.#sessions.summaries;
    this.compactions = this.#sessions.compactions;
    this.erasures = this.#sessions.erasures;
    this.turns = { ...turns.records, find: (turnId) => turns.records.find(turnId) ?? this.#turnToCome() };
    this.lateAttempts = lateAttemptRecords(transaction);
    this.events = this.#events.records;
    this.beats = this.#agents.beats;
    this.agents = this.#agents.records;
    this.announcements = announcementRecords(transaction);
    const deliveries = new Deliveries(transaction, this.#counted, memory.lettingGo);
    this.deliveries = deliveries.records;
    this.usage = this.#usage.records;
  }

  /** A turn that ends may end events, of which the gateway's stream tells: its place is loaded with the turn. */
  #turnToCome(): undefined {
    if (this.#transaction.isWriting) this.gateway.locate();
  }

  get moment(): { now: number; time: number } {
    return this.#transaction;
  }

  /** The time by which leases go, in a statement. */
  get sqlTime(): Sql {
    return this.#transaction.sqlTime;
  }

  /** What all gateways have counted, with the changes of this pass. */
  readonly #counted = (name: Total): number => {
    const rows = this.#transaction.read(READ_TOTALS);
    if (this.#countedBefore.rows !== rows) {
      const totals = new Map(rows.map(({ name, value }) => [name as string, number(value)]));
      this.#countedBefore = { rows, totals };
    }
    return (this.#countedBefore.totals.get(name) ?? 0) + (this.#transaction.deltas.get(name) ?? 0);
  };

  get bookmarks(): Bookmarks {
    return this.#bookmarks;
  }

  setBookmarks(change: Partial<Bookmarks>): void {
    this.#bookmarks = { ...this.#bookmarks, ...change };
  }

  next(series: Parameters<Records["next"]>[0]): number {
    return this.#transaction.next(series);
  }

  last(): number {
    return this.#events.last();
  }

  notify(news: News): void {
    this.#transaction.news.push(news);
  }

  queue(ordinal: number): ReturnType<Records["queue"]> {
    return this.#sessions.queue(ordinal);
  }

  /** Rows of a statement that no rule knows; none while it has not run. It is run once for an id. */
  read(sql: Sql, id?: string): readonly Row[] {
    return this.#transaction.read(sql, id);
  }

  /** Runs a statement with the changes. */
  run(sql: Sql): void {
    this.#transaction.run(sql);
  }

  wanted(): ReturnType<Transaction["wanted"]> {
    return this.#transaction.wanted();
  }

  reset(): void {
    this.#bookmarks = this.#memory.bookmarks;
    this.#transaction.reset();
  }

  /** The statements that keep all that was changed. */
  saved(): Sql[] {
    const statements = this.#transaction.saved();
    const counts = [...this.#transaction.deltas]
      .filter(([, value]) => value !== 0)
      .map(([name, value]) => ({ name, value }));
    if (counts.length === 0) return statements;
    return [
      ...statements,
      sql`insert into counts (lane, name, value) select 'all', name, value from json_to_recordset(${json(counts)}) as of (name text, value bigint)
      on conflict (lane, name) do update set value = counts.value + excluded.value`,
    ];
  }

  /** The changes are kept: the process remembers them. Answers what the watchers are told of. */
  kept(): Kept {
    this.#memory.bookmarks = this.#bookmarks;
    for (const key of this.#usage.added()) this.#memory.usage.add(key);
    return this.changes();
  }

  changes(): Kept {
    const { news, deltas, now, time } = this.#transaction;
    const openEvents = this.#transaction.rowsOf(READ_TOTALS) && this.#counted("events");
    return {
      news,
      deltas,
      openEvents,
      now,
      time,
      ...this.#agents.changes(),
      areKeysChanged: this.apiKeys.areChanged(),
    };
  }
}

/** The changes of a transaction. */
export type Kept = {
  readonly now: number;
  readonly time: number;
  readonly news: readonly News[];
  readonly deltas: ReadonlyMap<string, number>;
  /** Events of all gateways that have not ended, with these changes, where they were counted. */
  readonly openEvents: number | undefined;
  readonly areKeysChanged: boolean;
} & ReturnType<Agents["changes"]>;
