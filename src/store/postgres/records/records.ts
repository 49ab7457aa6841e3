import type { Bookmarks, News, Records, Totals } from "#store/rules/records.ts";
import { Agents } from "./agents.ts";
import { announcementRecords } from "./announcements.ts";
import { Deliveries } from "./deliveries.ts";
import { Events } from "./events.ts";
import { GatewayStream } from "./gateway.ts";
import { Journals } from "./journals.ts";
import { Sessions } from "./sessions.ts";
import { apiKeyRecords, keyRecords, lateAttemptRecords, type Rate, rateRecords } from "./small-tables.ts";
import { json, number, type Row, sql, textList } from "./sql.ts";
import type { Table } from "./table.ts";
import type { Transaction } from "./transaction.ts";
import { Turns } from "./turns.ts";
import { UsageTable } from "./usage.ts";

/** The state of the rules that stays in memory between transactions. */
export type Memory = {
  bookmarks: Bookmarks;
};

export function newMemory(): Memory {
  return {
    bookmarks: { isWaitedNext: true, sweptTo: 0, recorderBytes: Infinity },
  };
}

/** The names of the counters in the database. */
const TOTALS = {
  sessions: "sessions",
  turnsQueued: "queued",
  turnsRunning: "running",
  eventsQueued: "events",
  eventsDead: "dead",
  announcements: "announcements",
  deliveries: "deliveries",
  bytes: "bytes",
  deliveryBytes: "deliveryBytes",
} as const satisfies Record<keyof Totals, string>;
const REFUSED = ["refused", "refusedBytes"] as const;
type Total = (typeof TOTALS)[keyof Totals] | (typeof REFUSED)[number];

export function totalsOf(counted: (name: Total) => number): Totals {
  const totals = Object.fromEntries(
    Object.entries(TOTALS).map(([name, counter]) => [name, counted(counter)]),
  ) as Totals;
  totals.bytes += totals.deliveryBytes;
  return totals;
}

/** The sum of all lanes of each counter. Gateways write only the lane `all`, but a database from before version 6 may have other lanes. */
const COUNTED = sql`select name, sum(value)::bigint as value from counters
  where name = any (${textList([...Object.values(TOTALS), ...REFUSED])}) group by name`;

/** The counters of all gateways, with the changes of this pass. */
class Counters {
  readonly #transaction: Transaction;
  #rows: readonly Row[] = [];
  #before = new Map<string, number>();

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    transaction.add(this);
  }

  readonly of = (name: Total): number => {
    const rows = this.#transaction.read(COUNTED);
    if (this.#rows !== rows) this.#before = new Map(rows.map(({ name, value }) => [name as string, number(value)]));
    this.#rows = rows;
    return (this.#before.get(name) ?? 0) + (this.#transaction.deltas.get(name) ?? 0);
  };

  saved() {
    const changes = [...this.#transaction.deltas].flatMap(([name, value]) => (value === 0 ? [] : { name, value }));
    if (changes.length === 0) return [];
    return [
      sql`insert into counters (lane, name, value) select 'all', name, value from json_to_recordset(${json(changes)}) as of (name text, value bigint)
      on conflict (lane, name) do update set value = counters.value + excluded.value`,
    ];
  }
}

export function openRecords(transaction: Transaction, memory: Memory): PostgresRecords {
  let { bookmarks } = memory;
  transaction.add({
    reset: () => {
      bookmarks = memory.bookmarks;
    },
  });
  // The parts take their locks in this order.
  const keys = keyRecords(transaction);
  const events = new Events(transaction);
  const turns = new Turns(
    transaction,
    () => sessions,
    (ordinal) => journals.of(ordinal),
    events.ordinalsOf,
  );
  const sessions: Sessions = new Sessions(transaction, turns, events);
  const journals = new Journals(transaction, sessions);
  const agents = new Agents(transaction);
  const usage = new UsageTable(transaction);
  const gateway = new GatewayStream(transaction);
  const apiKeys = apiKeyRecords(transaction);
  const lateAttempts = lateAttemptRecords(transaction);
  const announcements = announcementRecords(transaction);
  const counters = new Counters(transaction);
  const deliveries = new Deliveries(transaction, counters.of);
  const changes = (): CommittedChanges => {
    const { news, deltas } = transaction;
    return { news, deltas, ...agents.changes(), areKeysChanged: apiKeys.areChanged() };
  };
  return {
    transaction,
    /** The changes of the transaction, for the watchers. */
    changes,
    /** The changes after a commit. Stores the bookmarks in the process. */
    committedChanges: (): CommittedChanges => {
      memory.bookmarks = bookmarks;
      return changes();
    },
    moment: transaction,
    get totals() {
      return totalsOf(counters.of);
    },
    get bookmarks() {
      return bookmarks;
    },
    setBookmarks: (change) => {
      bookmarks = { ...bookmarks, ...change };
    },
    next: (series) => transaction.next(series),
    last: () => events.last(),
    notify: (news) => {
      transaction.news.push(news);
    },
    queue: (ordinal) => sessions.queue(ordinal),
    firstInQueue: (ordinal) => sessions.queue(ordinal)[0],
    keys,
    sessions: sessions.records,
    summaries: sessions.summaries,
    erasures: sessions.erasures,
    journal: journals.of,
    turns: turns.records,
    lateAttempts,
    events: events.records,
    beats: agents.beats,
    agents: agents.records,
    announcements,
    deliveries: deliveries.records,
    usage: usage.records,
    gateway,
    apiKeys,
    rates: rateRecords(transaction),
  };
}

/** The changes of a transaction. */
export type CommittedChanges = {
  readonly news: readonly News[];
  readonly deltas: ReadonlyMap<string, number>;
  readonly areKeysChanged: boolean;
} & ReturnType<Agents["changes"]>;

/** The records of one transaction. */
export type PostgresRecords = Records & {
  readonly transaction: Transaction;
  readonly rates: Table<Rate>;
  changes(): CommittedChanges;
  committedChanges(): CommittedChanges;
};
