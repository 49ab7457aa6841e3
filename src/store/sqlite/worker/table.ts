import {
  type Changed,
  type Key,
  keyField,
  type Layout,
  type Order,
  type RecordTable,
  type Scan,
} from "#store/tables/table.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Query, Run, Value } from "./database.ts";

/** The number of a table's records that stay in memory between two batches. */
const HELD = 250;

/**
 * Records as rows: the columns by which they are found, and the whole of each as JSON. The ones that were used last are held in memory.
 * `flush` writes the records that were put, each once, even if it was put several times.
 */
export class StoredTable<R extends object> implements RecordTable<R> {
  readonly #db: Database;
  readonly #layout: Layout<R>;
  readonly #changed: Changed<R> | undefined;
  readonly keyOf: (record: R) => Key;
  readonly #byKey: Query;
  readonly #scans = new Map<string, Query>();
  readonly #save: Run;
  readonly #delete: Run;
  readonly #held = new Map<Key, R>();
  /** The keys of records that were put or deleted: a deleted one is not held. */
  readonly #unwritten = new Set<Key>();

  constructor(db: Database, layout: Layout<R>, changed?: Changed<R>) {
    const { table, key, columns } = layout;
    this.#db = db;
    this.#layout = layout;
    this.#changed = changed;
    this.keyOf = keyField(layout);
    this.#byKey = this.#select(`WHERE ${key} = ?`);
    const names = [...Object.keys(columns), "body"];
    const places = names.map(() => "?").join(", ");
    const changing = names.filter((name) => name !== key && columns[name]?.[2] !== "fixed");
    const changes = changing.map((name) => `${name} = excluded.${name}`).join(", ");
    this.#save = db.run(
      `INSERT INTO ${table} (${names.join(", ")}) VALUES (${places}) ON CONFLICT (${key}) DO UPDATE SET ${changes}`,
    );
    this.#delete = db.run(`DELETE FROM ${table} WHERE ${key} = ?`);
  }

  find(key: Key): R | undefined {
    const held = this.#held.get(key);
    if (held || this.#unwritten.has(key)) return held;
    const row = this.#byKey.get<[string]>([toValue(key)]);
    return row && this.#hold(read(row));
  }

  put(record: R): void {
    const key = this.keyOf(record);
    const before = this.#held.get(key);
    // The row of a deleted record may have other values in fixed columns.
    if (!before && this.#unwritten.has(key)) this.flush();
    this.#changed?.(before, record);
    this.#held.set(key, record);
    this.#unwritten.add(key);
  }

  delete(key: Key): void {
    if (this.#changed) {
      const record = this.find(key);
      if (!record) return;
      this.#changed(record, undefined);
    }
    this.#held.delete(key);
    this.#unwritten.add(key);
  }

  scan({ by, of, only, hasTies }: Order, { of: group, above, below, upTo, limit = Infinity, newestFirst }: Scan): R[] {
    const conditions = only === undefined ? [] : [`${only} = 1`];
    const values: Value[] = [];
    const where = (condition: string, value: Key | boolean | undefined): void => {
      if (value === undefined) return;
      conditions.push(condition);
      values.push(toValue(value));
    };
    where(`${of} = ?`, group);
    where(`${by} > ?`, above);
    where(`${by} < ?`, below);
    where(`${by} <= ?`, upTo);
    const direction = newestFirst ? "DESC" : "ASC";
    const ties = hasTies ? `, ${this.#layout.key} ${direction}` : "";
    const sql = `WHERE ${[...conditions, `${by} IS NOT NULL`].join(" AND ")} ORDER BY ${by} ${direction}${ties} LIMIT ?`;
    const query = this.#scans.get(sql) ?? this.#select(sql);
    this.#scans.set(sql, query);
    this.flush();
    return query.all<[string]>([...values, toValue(limit)]).map((row) => this.#hold(read(row)));
  }

  first(order: Order, of?: Key | boolean): R | undefined {
    return this.scan(order, { of, limit: 1 })[0];
  }

  groups({ by, of, only }: Order): Key[] {
    this.flush();
    const condition = only === undefined ? "" : `${only} = 1 AND `;
    const sql = `SELECT DISTINCT ${freeBytesOf(of ?? "NULL")} FROM ${this.#layout.table} WHERE ${condition}${by} IS NOT NULL`;
    return this.#db
      .query(sql)
      .all<[Key]>([])
      .map(([group]) => group);
  }

  flush(): void {
    if (this.#unwritten.size === 0) return;
    this.#db.begin();
    const columns = Object.values(this.#layout.columns);
    for (const key of this.#unwritten) {
      const record = this.#held.get(key);
      if (record) this.#save(...columns.map(([, of]) => toValue(of(record))), JSON.stringify(record));
      else this.#delete(toValue(key));
    }
    this.#unwritten.clear();
  }

  /** Lets the oldest go of the records that are held. All are written. */
  trim(): void {
    for (const key of this.#held.keys()) {
      if (this.#held.size <= HELD) return;
      this.#held.delete(key);
    }
  }

  /** Prepares a search for records, of which the body is read. */
  #select(sql: string): Query {
    return this.#db.query(`SELECT ${bytesOf("body")} FROM ${this.#layout.table} ${sql}`);
  }

  #hold(record: R): R {
    const key = this.keyOf(record);
    const held = this.#held.get(key) ?? record;
    this.#held.set(key, held);
    return held;
  }
}

function read<R>([body]: [string]): R {
  return JSON.parse(body) as R;
}

function toValue(field: Key | boolean | undefined): Value {
  if (typeof field === "string") return toSql(field);
  if (typeof field === "number") return Math.min(field, Number.MAX_SAFE_INTEGER);
  return field === undefined ? null : Number(field);
}
