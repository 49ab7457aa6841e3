import type { Clock } from "#kit/clock.ts";
import { systemClock } from "#kit/clock.ts";
import { double, type Row, type Sql, sql } from "./sql.ts";

/** The current time of the database's clock, in milliseconds. Gateways compare their times by this clock. */
export const NOW = sql`(select extract(epoch from clock_timestamp())::double precision * 1000)`;

/** A statement. Its name says what it does, and is the name of its prepared plan. */
export type NamedSql = { readonly name: string; readonly sql: Sql };
/** A statement, and the function that processes its rows. */
export type Statement = NamedSql & { take(rows: readonly Row[]): void };

/** A part of a transaction. It loads missing records, discards the changes of an invalid pass, and saves those of the last pass. */
export type Part = {
  /** The statements that load the records that were missing in the last pass. */
  wanted?(): Statement[];
  reset?(): void;
  /** The statements that save the changes of the last pass. */
  saved?(): NamedSql[];
};

/**
 * A transaction that runs in passes. If a rule reads a record that is not loaded, it continues as if the record did not exist. After the pass, its
 * results are discarded, the missing records of all rules are loaded together, and all rules run again.
 */
export class Transaction {
  readonly now: number;
  /** The SQL expression for `time`. */
  readonly sqlTime: Sql;
  /** The time of the clock, if it is a test's clock. Otherwise the database's clock is used. */
  readonly #testTime: number | undefined;
  readonly #parts: Part[] = [];
  readonly #rows = new Map<Sql, readonly Row[]>();
  readonly #wanted = new Map<Sql, Statement>();
  #statements: NamedSql[] = [];
  #begun: { readonly time: number; readonly state: string } | undefined;

  constructor(clock: Clock) {
    this.now = clock.now();
    this.#testTime = clock === systemClock ? undefined : clock.monotonic();
    this.sqlTime = this.#testTime === undefined ? NOW : double(this.#testTime);
  }

  add<P extends Part>(part: P): P {
    this.#parts.push(part);
    return part;
  }

  /** The time of the database's clock, which all gateways share. */
  get time(): number {
    return this.#testTime ?? this.#begun?.time ?? this.now;
  }

  /** The state of the store as JSON, as it was before the transaction. Undefined in the first pass, which comes before the first exchange. */
  get state(): string | undefined {
    return this.#begun?.state;
  }

  /** The rows of a statement. The statement runs once, before the next pass; until then, the result is empty. */
  read(name: string, sql: Sql): readonly Row[] {
    const rows = this.#rows.get(sql);
    if (!rows) this.#wanted.set(sql, { name, sql, take: (taken) => this.#rows.set(sql, taken) });
    return rows ?? [];
  }

  /** Runs a statement when the changes are saved. */
  run(name: string, sql: Sql): void {
    this.#statements.push({ name, sql });
  }

  /** The statements that load the records that were missing in the last pass; none if the pass is valid. */
  wanted(): Statement[] {
    const statements = [...this.#wanted.values(), ...this.#parts.flatMap((part) => part.wanted?.() ?? [])];
    this.#wanted.clear();
    // The time is read before the rows that are compared with it.
    if (!this.#begun) statements.unshift(this.#begin());
    return statements;
  }

  #begin(): Statement {
    const begin = sql`select ${this.sqlTime} as time, body::text as state from gateway_state`;
    const take = ([row]: readonly Row[]): void => {
      if (!row) throw new Error("The row of gateway_state is missing. Restore the database from a backup.");
      this.#begun = { time: row.time as number, state: row.state as string };
    };
    return { name: "gateway_state_load", sql: begin, take };
  }

  /** Discards the changes before another pass. */
  reset(): void {
    this.#statements = [];
    for (const part of this.#parts) part.reset?.();
  }

  saved(): NamedSql[] {
    return [...this.#parts.flatMap((part) => part.saved?.() ?? []), ...this.#statements];
  }
}
