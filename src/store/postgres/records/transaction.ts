import type { Clock } from "#kit/clock.ts";
import { systemClock } from "#kit/clock.ts";
import type { News } from "#store/rules/records.ts";
import { bounded, double, type Row, type Sql, sql } from "./sql.ts";

/** A statement, and the function that processes its rows. */
export type Statement = { readonly sql: Sql; take(rows: readonly Row[]): void };

/** A part of a transaction. It loads missing records, discards the changes of an invalid pass, and saves those of the last pass. */
export type Part = {
  /** The statements that load the records that were missing in the last pass. */
  wanted?(): Statement[];
  reset?(): void;
  /** The statements that save the changes of the last pass. */
  saved?(): Sql[];
};

type Series = "session" | "event" | "order";
const NEXT: Readonly<Record<Series, string>> = {
  session: "nextval('sessions_ordinal_seq')",
  event: "nextval('event_ordinals')",
  order: "nextval('ready_orders')",
};
/** The number of orders that one number of the sequence `ready_orders` reserves. */
const ORDERS = 1024;
/** Temporary numbers and the places of new records start here. It is greater than every place in a database. */
const NEW_PLACES = 2 ** 50;

/**
 * A transaction that runs in passes. If a rule reads a record that is not loaded, it continues as if the record did not exist. After the pass, its
 * results are discarded, the missing records of all rules are loaded together, and all rules run again.
 */
export class Transaction {
  /** True if the transaction holds the lock for writes. */
  readonly isWriting: boolean;
  readonly now: number;
  /** The time of the clock, if it is a test's clock. Otherwise the database's clock is used. */
  readonly #testTime: number | undefined;
  readonly #parts: Part[] = [];
  readonly #rows = new Map<string, readonly Row[]>();
  readonly #wanted = new Map<string, Statement>();
  readonly #numbers = { session: [] as number[], event: [] as number[], order: [] as number[] };
  #used = { session: 0, event: 0, order: 0 };
  #isTimeWanted = false;
  news: News[] = [];
  /** The changes of counters, by their names. */
  deltas = new Map<string, number>();
  #statements: Sql[] = [];

  constructor(clock: Clock, isWriting: boolean) {
    this.isWriting = isWriting;
    this.now = clock.now();
    this.#testTime = clock === systemClock ? undefined : clock.monotonic();
  }

  add<P extends Part>(part: P): P {
    this.#parts.push(part);
    return part;
  }

  /** The time of the database's clock, which all gateways share. */
  get time(): number {
    if (this.#testTime !== undefined) return this.#testTime;
    this.#isTimeWanted = true;
    return (this.#rows.get("time")?.[0]?.time as number | undefined) ?? this.now;
  }

  /** The SQL expression for `time`. */
  get sqlTime(): Sql {
    if (this.#testTime !== undefined) return sql`${double(this.#testTime)}`;
    return sql`(select extract(epoch from clock_timestamp())::double precision * 1000)`;
  }

  /** The rows of a statement. The statement runs once, before the next pass; until then, the result is empty. */
  read(sql: Sql): readonly Row[] {
    const rows = this.#rows.get(sql);
    if (!rows) this.#wanted.set(sql, { sql, take: (taken) => this.#rows.set(sql, taken) });
    return rows ?? [];
  }

  /** Runs a statement when the changes are saved. */
  run(sql: Sql): void {
    this.#statements.push(sql);
  }

  next(series: Series | "place"): number {
    // Places are stored too, and grow as orders do.
    if (series === "place") return this.next("order");
    const at = this.#used[series]++;
    if (series !== "order") return this.#numbers[series][at] ?? NEW_PLACES + at;
    const base = this.#numbers.order[Math.floor(at / ORDERS)];
    return base === undefined ? NEW_PLACES + at : base * ORDERS + (at % ORDERS);
  }

  /** True if this transaction creates the session. */
  isNewSession(ordinal: number): boolean {
    return ordinal >= NEW_PLACES || this.#numbers.session.includes(ordinal);
  }

  /** The last number of a series that this pass has assigned. */
  lastOf(series: Series): number {
    return this.#numbers[series][this.#used[series] - 1] ?? 0;
  }

  count(name: string, change: number): void {
    this.deltas.set(name, (this.deltas.get(name) ?? 0) + change);
  }

  /** The statements that load the records that were missing in the last pass; none if the pass is valid. */
  wanted(): Statement[] {
    const statements: Statement[] = [...this.#wanted.values(), ...this.#parts.flatMap((part) => part.wanted?.() ?? [])];
    this.#wanted.clear();
    for (const series of Object.keys(NEXT) as Series[]) {
      const lacking = this.#needed(series) - this.#numbers[series].length;
      if (lacking <= 0 || (statements.length === 0 && this.#used[series] === 0)) continue;
      const take = (rows: readonly Row[]) => this.#numbers[series].push(...rows.map(({ n }) => n as number));
      statements.push({ sql: sql`select ${NEXT[series]} as n from generate_series(1, ${bounded(lacking)})`, take });
    }
    // The time is read first, because reading the other rows may need it.
    if ((statements.length > 0 || this.#isTimeWanted) && this.#testTime === undefined && !this.#rows.has("time")) {
      statements.unshift({ sql: sql`select ${this.sqlTime} as time`, take: (rows) => this.#rows.set("time", rows) });
    }
    return statements;
  }

  /** The count of needed numbers of a series. One number for orders is always loaded for writes, because most writes need it. */
  #needed(series: Series): number {
    if (series !== "order") return this.#used[series];
    return Math.max(Math.ceil(this.#used.order / ORDERS), Number(this.isWriting));
  }

  /** Discards the changes before another pass. */
  reset(): void {
    this.#used = { session: 0, event: 0, order: 0 };
    this.news = [];
    this.deltas = new Map();
    this.#statements = [];
    for (const part of this.#parts) part.reset?.();
  }

  saved(): Sql[] {
    return [...this.#parts.flatMap((part) => part.saved?.() ?? []), ...this.#statements];
  }
}
