import type { Clock } from "#kit/clock.ts";
import { systemClock } from "#kit/clock.ts";
import type { News } from "#store/rules/records.ts";
import { bounded, double, type Row, type Sql, sql } from "./sql.ts";

/** A statement, and the function that takes its rows. */
export type Statement = { readonly sql: Sql; take(rows: readonly Row[]): void };

/**
 * A part of a transaction: it names its missing records, forgets the changes of a pass, and names the statements that save them.
 */
export type Part = {
  /** The statements that bring the records that the last pass lacked. */
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
/** Numbers of the order that one of its sequence stands for. */
const ORDERS = 1024;
/** Behind all places that a database has given. */
const NEW_PLACES = 2 ** 50;

/**
 * Orders run on records that are loaded when a rule asks for them: a rule that asks for a record which is not there goes on as if there
 * was none, and the pass over all orders counts for nothing. The records that it lacked are loaded at once for all of them, and they run again.
 */
export class Transaction {
  /** It holds the lock under which gateways write by turns. */
  readonly isWriting: boolean;
  readonly now: number;
  /** The time of a clock that is not the system's. */
  readonly #testTime: number | undefined;
  readonly #parts: Part[] = [];
  readonly #rows = new Map<string, readonly Row[]>();
  readonly #wanted = new Map<string, Statement>();
  readonly #numbers = { session: [] as number[], event: [] as number[], order: [] as number[] };
  #used = { session: 0, event: 0, order: 0 };
  #places = 0;
  #isTimeWanted = false;
  news: News[] = [];
  /** The sums that were added to counters, by their names. */
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

  /** The time by the clock that all gateways share, the database's. */
  get time(): number {
    if (this.#testTime !== undefined) return this.#testTime;
    this.#isTimeWanted = true;
    return (this.#rows.get("time")?.[0]?.time as number | undefined) ?? this.now;
  }

  /** The same in a statement. */
  get sqlTime(): Sql {
    if (this.#testTime !== undefined) return sql`${double(this.#testTime)}`;
    return sql`(select extract(epoch from clock_timestamp())::double precision * 1000)`;
  }

  /** Rows of a statement, which is run once; none until then. */
  read(sql: Sql): readonly Row[] {
    const rows = this.#rows.get(sql);
    if (!rows) this.#wanted.set(sql, { sql, take: (taken) => this.#rows.set(sql, taken) });
    return rows ?? [];
  }

  /** Runs a statement as the changes are saved. */
  run(sql: Sql): void {
    this.#statements.push(sql);
  }

  next(series: Series | "place"): number {
    if (series === "place") return NEW_PLACES + this.#places++;
    const at = this.#used[series]++;
    if (series !== "order") return this.#numbers[series][at] ?? NEW_PLACES + at;
    const base = this.#numbers.order[Math.floor(at / ORDERS)];
    return base === undefined ? NEW_PLACES + at : base * ORDERS + (at % ORDERS);
  }

  /** The session is one that this transaction makes. */
  isNewSession(ordinal: number): boolean {
    return ordinal >= NEW_PLACES || this.#numbers.session.includes(ordinal);
  }

  /** The last number of a series that this pass has given. */
  lastOf(series: Series): number {
    return this.#numbers[series][this.#used[series] - 1] ?? 0;
  }

  count(name: string, change: number): void {
    this.deltas.set(name, (this.deltas.get(name) ?? 0) + change);
  }

  /** The statements that bring the records that the last pass lacked; none if it lacked nothing. */
  wanted(): Statement[] {
    const statements: Statement[] = [...this.#wanted.values(), ...this.#parts.flatMap((part) => part.wanted?.() ?? [])];
    this.#wanted.clear();
    for (const series of Object.keys(NEXT) as Series[]) {
      const lacking = this.#needed(series) - this.#numbers[series].length;
      if (lacking <= 0 || (statements.length === 0 && this.#used[series] === 0)) continue;
      const take = (rows: readonly Row[]) => this.#numbers[series].push(...rows.map(({ n }) => n as number));
      statements.push({ sql: sql`select ${NEXT[series]} as n from generate_series(1, ${bounded(lacking)})`, take });
    }
    // All that is read after it may need it.
    if ((statements.length > 0 || this.#isTimeWanted) && this.#testTime === undefined && !this.#rows.has("time")) {
      statements.unshift({ sql: sql`select ${this.sqlTime} as time`, take: (rows) => this.#rows.set("time", rows) });
    }
    return statements;
  }

  /** Most that write need a number of the order. */
  #needed(series: Series): number {
    if (series !== "order") return this.#used[series];
    return Math.max(Math.ceil(this.#used.order / ORDERS), Number(this.isWriting));
  }

  /** Before another pass. */
  reset(): void {
    this.#used = { session: 0, event: 0, order: 0 };
    this.#places = 0;
    this.news = [];
    this.deltas = new Map();
    this.#statements = [];
    for (const part of this.#parts) part.reset?.();
  }

  saved(): Sql[] {
    return [...this.#parts.flatMap((part) => part.saved?.() ?? []), ...this.#statements];
  }
}
