import { bytesOf, toSql } from "../text.ts";
import type { Database, Query, Rows, Value } from "./database.ts";

/** How the records of a table are kept: each has a key, columns by which it is found, and the whole of it as JSON. */
export type Shape<K, R> = {
  table: string;
  key: string;
  columns: readonly string[];
  keyOf(record: R): K;
  /** The values of `columns`. */
  valuesOf(record: R): readonly Value[];
  /** How many are held in memory between two batches. */
  held: number;
  /** A record is not held any more. */
  letGo?(record: R): void;
};

/**
 * Records as rows. The ones that were used last are held in memory. What is put is written with `flush`, each record once, however often
 * it was put.
 */
export class Table<K extends string | number, R extends object> {
  readonly #db: Database;
  readonly #shape: Shape<K, R>;
  readonly #byKey: Query;
  readonly #rows: Rows;
  readonly #deletes: Rows;
  readonly #held = new Map<K, R>();
  readonly #unwritten = new Set<K>();
  readonly #deleted = new Set<K>();

  constructor(db: Database, shape: Shape<K, R>) {
    const { table, key, columns } = shape;
    this.#db = db;
    this.#shape = shape;
    this.#byKey = db.query(`SELECT ${bytesOf("body")} FROM ${table} WHERE ${key} = ?`);
    this.#rows = db.rows(
      `INSERT OR REPLACE INTO ${table} (${[key, ...columns, "body"].join(", ")})`,
      columns.length + 2,
    );
    this.#deletes = db.keys(`DELETE FROM ${table} WHERE ${key} IN`);
  }

  find(key: K): R | undefined {
    const held = this.#held.get(key);
    if (held || this.#deleted.has(key)) return held;
    const row = this.#byKey.get<[string]>([toValue(key)]);
    return row && this.#hold(key, this.#read(row));
  }

  /** The record, where it is held in memory: one that was found in this batch is. */
  held(key: K): R | undefined {
    return this.#held.get(key);
  }

  put(record: R): void {
    const key = this.#shape.keyOf(record);
    this.#held.set(key, record);
    this.#unwritten.add(key);
    this.#deleted.delete(key);
  }

  delete(key: K): void {
    this.#forget(key);
    this.#unwritten.delete(key);
    this.#deleted.add(key);
  }

  /** Prepares a search for records, of which the body is read. `sql` follows FROM and the table's name. */
  search(sql: string): (...values: Value[]) => R[] {
    const query = this.#db.query(`SELECT ${bytesOf("body")} FROM ${this.#shape.table} ${sql}`);
    return (...values) => {
      this.flush();
      return query.all<[string]>(values).map((row) => this.#read(row));
    };
  }

  /** The same by another unique column, for a record that is not held. */
  lookUp(column: string): (value: Value) => R | undefined {
    const query = this.#db.query(`SELECT ${bytesOf("body")} FROM ${this.#shape.table} WHERE ${column} = ?`);
    return (value) => {
      const row = query.get<[string]>([value]);
      const record = row && this.#read(row);
      if (!record) return undefined;
      const key = this.#shape.keyOf(record);
      return this.#deleted.has(key) ? undefined : this.#hold(key, record);
    };
  }

  /** Holds records that were searched for and are needed soon. */
  hold(records: readonly R[]): readonly R[] {
    return records.map((record) => this.#hold(this.#shape.keyOf(record), record));
  }

  flush(): void {
    if (this.#unwritten.size + this.#deleted.size === 0) return;
    this.#db.begin();
    const { valuesOf } = this.#shape;
    for (const key of this.#deleted) this.#deletes.add(toValue(key));
    this.#deletes.flush();
    for (const key of this.#unwritten) {
      const record = this.#held.get(key) as R;
      this.#rows.add(toValue(key), ...valuesOf(record), JSON.stringify(record));
    }
    this.#rows.flush();
    this.#unwritten.clear();
    this.#deleted.clear();
  }

  /** Lets the oldest go of the records that are held. All are written. */
  trim(): void {
    for (const key of this.#held.keys()) {
      if (this.#held.size <= this.#shape.held) return;
      this.#forget(key);
    }
  }

  /** Rows were changed without it. Nothing waits to be written. */
  forgetHeld(): void {
    for (const key of [...this.#held.keys()]) this.#forget(key);
  }

  #read([body]: [string]): R {
    return JSON.parse(body) as R;
  }

  #hold(key: K, record: R): R {
    const held = this.#held.get(key);
    if (held) return held;
    this.#held.set(key, record);
    return record;
  }

  #forget(key: K): void {
    const record = this.#held.get(key);
    if (record) this.#shape.letGo?.(record);
    this.#held.delete(key);
  }
}

const toValue = (key: string | number): Value => (typeof key === "number" ? key : toSql(key));
