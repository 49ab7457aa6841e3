import { encodeText } from "../texts.ts";
import { bounded, json, quote, type Row, type Sql, sql, textList } from "./sql.ts";
import type { Part, Statement, Transaction } from "./transaction.ts";

/** The times of a transaction: `now` by the wall clock, `time` by the database's clock. */
export type Moment = { readonly now: number; readonly time: number };
export type Column<R> = readonly [name: string, type: string, value: (record: R, moment: Moment) => unknown];
type Key = string | number;
/**
 * A computed column: the SQL expression for a row `t` (given the SQL expression for the current time), and the same value for a record. The
 * conditions of partial indexes are such columns, because a prepared plan does not know its parameter values.
 */
type Computed<R> = readonly [sql: (now: Sql) => Sql, value: (record: R, moment: Moment) => unknown];

/** The mapping between records and rows of a table. */
type Definition<R> = {
  table: string;
  /** The columns of the primary key. */
  key: readonly string[];
  /** The key of a record, and the SQL expression for the key of a row `t`. */
  keyOf(record: R): Key;
  keySql?: string;
  keyType?: string;
  /** Encodes a key, if it is not encoded like other texts. */
  encodeKey?(key: string): string;
  columns: readonly Column<R>[];
  computed?: { readonly [name: string]: Computed<R> };
  /** Further columns that never change. */
  fixed?: readonly string[];
  /** A boolean column that never becomes true again. */
  falling?: string;
  read(row: Row, moment: Moment): R;
  /** Returns true if a change must be saved. Without it, all changes are saved. */
  isSaved?(after: R, before: R | undefined): boolean;
  /** The select list for a row `t`, further joins, and another source than the table. All have defaults. */
  select?: string;
  joined?: string;
  from?: string;
};

/** A definition with its prepared statements: `update` and `insert` are the texts before and after the JSON of the rows. */
type Layout<R> = Required<Pick<Definition<R>, "keySql">> &
  Definition<R> & {
    found: ReadonlyMap<string, Computed<R>>;
    changing: readonly Column<R>[];
    update: readonly string[];
    insert: readonly string[];
  };

export function layout<R>(definition: Definition<R>): Layout<R> {
  const { table, key, columns, computed = {}, fixed = [], falling } = definition;
  const own = columns.map(([name, , value]): [string, Computed<R>] => [name, [() => `t.${name}`, value]]);
  const keys = columns.filter(([name]) => key.includes(name));
  const changes = columns.filter(([name]) => !key.includes(name) && !fixed.includes(name));
  const changing = [...keys, ...changes];
  const set = (to: string, row: string) =>
    changes.map(([name]) => `${name} = ${name === falling ? `${row}.${name} and ` : ""}${to}.${name}`).join(", ");
  const typesOf = (of: readonly Column<R>[]) => of.map(([name, type]) => `${name} ${type}`).join(", ");
  const isOf = key.map((name) => `t.${name} = of.${name}`).join(" and ");
  const names = columns.map(([name]) => name).join(", ");
  return {
    keySql: `t.${key[0]}`,
    ...definition,
    found: new Map([...own, ...Object.entries(computed)]),
    changing,
    update: [
      `update ${table} t set ${set("of", "t")} from json_to_recordset(`,
      `) as of (${typesOf(changing)}) where ${isOf}`,
    ],
    insert: [
      `insert into ${table} (${names}) overriding system value select ${names} from json_to_recordset(`,
      `) as of (${typesOf(columns)}) on conflict (${key.join(", ")}) do ${changes.length > 0 ? `update set ${set("excluded", table)}` : "nothing"}`,
    ],
  };
}

type Range = { above?: Key | undefined; below?: Key | undefined; upTo?: Key };
/**
 * A query for the records with these column values, ordered by the column `by`. If a bound equals the transaction's time, the query uses the
 * database's current time.
 */
export type Scan = {
  by: string;
  /** The value of a column. Undefined permits any value. */
  where?: { readonly [column: string]: Key | boolean | Range | undefined };
  newestFirst?: boolean;
  limit?: number;
};
/** Called with each change of a record. */
type Changed<R> = (before: R | undefined, after: R | undefined) => void;

/** The loaded part of a scan. `last` is the last loaded record; undefined if the whole scan is loaded. */
type Window<R> = { readonly keys: ReadonlySet<Key>; readonly size: number; readonly last: R | undefined };

/** The records of a table that a transaction has loaded, with its changes. */
export class Table<R> implements Part {
  readonly #layout: Layout<R>;
  readonly #transaction: Transaction;
  readonly #onChange: Changed<R>;
  readonly #loaded = new Map<Key, R | undefined>();
  readonly #changed = new Map<Key, R | undefined>();
  readonly #wanted = new Set<Key>();
  readonly #scans = new Map<Sql, Window<R>>();
  readonly #wantedScans = new Map<Sql, Statement>();

  constructor(transaction: Transaction, layout: Layout<R>, onChange: Changed<R> = () => {}) {
    this.#transaction = transaction;
    this.#layout = layout;
    this.#onChange = onChange;
    transaction.add(this);
  }

  find(key: Key): R | undefined {
    if (!this.knows(key)) this.#wanted.add(key);
    return this.peek(key);
  }

  /** True if it is known whether the record exists. */
  knows(key: Key): boolean {
    return this.#changed.has(key) || this.#loaded.has(key);
  }

  /** The record, if it is loaded. */
  peek(key: Key): R | undefined {
    return this.#changed.has(key) ? this.#changed.get(key) : this.#loaded.get(key);
  }

  put(record: R): void {
    this.#change(this.#layout.keyOf(record), record);
  }

  delete(record: R): void {
    this.#change(this.#layout.keyOf(record), undefined);
  }

  #change(key: Key, after: R | undefined): void {
    const before = this.peek(key);
    this.#changed.set(key, after);
    this.#onChange(before, after);
  }

  /** Stores loaded rows and returns their records. For a key of `keys` without a row, no record exists. */
  take(rows: readonly Row[], keys: Iterable<Key> = []): R[] {
    for (const key of keys) this.#loaded.set(key, undefined);
    return rows.map((row) => {
      const record = this.#layout.read(row, this.#transaction);
      this.#loaded.set(this.#layout.keyOf(record), record);
      return record;
    });
  }

  /** The changes of this pass, each with the record as it was loaded. */
  *changes(): Iterable<readonly [after: R | undefined, before: R | undefined]> {
    for (const [key, record] of this.#changed) yield [record, this.#loaded.get(key)];
  }

  /** The loaded records that match, with the changes of this pass. */
  filter(matches: (record: R) => boolean): R[] {
    const found: R[] = [];
    for (const [key, record] of this.#loaded) {
      if (record !== undefined && !this.#changed.has(key) && matches(record)) found.push(record);
    }
    for (const record of this.#changed.values()) if (record !== undefined && matches(record)) found.push(record);
    return found;
  }

  /** The records of a scan, with the changes of this pass; none until they are loaded. `window` is the number of records to load first. */
  scan(scan: Scan, window = scan.limit ?? Infinity): R[] {
    const { limit = Infinity } = scan;
    const id = this.#idOf(scan);
    const known = this.#scans.get(id);
    if (!known) {
      this.#wantScan(id, window);
      return [];
    }
    const { last } = known;
    const found: R[] = [];
    for (const record of this.#changed.values())
      if (record !== undefined && this.#matches(scan, record)) found.push(record);
    const isInOrder = found.length === 0;
    for (const key of known.keys) {
      if (isInOrder && found.length === limit) return found;
      const record = this.#changed.has(key) ? undefined : this.#loaded.get(key);
      if (record !== undefined && this.#matches(scan, record)) found.push(record);
    }
    if (!isInOrder) found.sort((a, b) => this.#compare(scan, a, b));
    if (last === undefined) return found.slice(0, limit);
    const before = found.filter((record) => this.#compare(scan, record, last) <= 0);
    if (before.length < limit) this.#wantScan(id, Math.max(known.size * 2, limit));
    return before.slice(0, limit);
  }

  #sqlOf(column: string): Sql {
    return this.#layout.found.get(column)?.[0](this.#transaction.sqlTime) ?? column;
  }

  #valueOf(column: string, record: R): unknown {
    return this.#layout.found.get(column)?.[1](record, this.#transaction);
  }

  #idOf({ by, where = {}, newestFirst }: Scan): Sql {
    const conditions = Object.entries(where).flatMap(([column, value]) => {
      const field = this.#sqlOf(column);
      if (value === undefined) return [];
      if (typeof value === "boolean") return `${value ? "" : "not "}(${field})`;
      if (typeof value !== "object") return `${field} = ${this.#literal(value)}`;
      const { above, below, upTo } = value;
      return [
        ...(above === undefined ? [] : [`${field} > ${this.#literal(above)}`]),
        ...(below === undefined ? [] : [`${field} < ${this.#literal(below)}`]),
        ...(upTo === undefined ? [] : [`${field} <= ${this.#literal(upTo)}`]),
      ];
    });
    return sql`where ${conditions.join(" and ") || "true"} order by ${this.#sqlOf(by)} ${newestFirst ? "desc" : ""}`;
  }

  #literal(value: Key): Sql {
    if (typeof value === "string") return quote(encodeText(value));
    return value === this.#transaction.time ? this.#transaction.sqlTime : bounded(value);
  }

  #matches({ where = {} }: Scan, record: R): boolean {
    for (const column in where) {
      const [value, wanted] = [this.#valueOf(column, record), where[column]];
      if (typeof wanted === "object" ? !isWithin(value as Key | undefined, wanted) : value !== (wanted ?? value))
        return false;
    }
    return true;
  }

  #compare({ by, newestFirst = false }: Scan, a: R, b: R): number {
    const [first, second] = [this.#valueOf(by, a) as Key, this.#valueOf(by, b) as Key];
    if (first === second) return 0;
    return first < second === newestFirst ? 1 : -1;
  }

  /** A query for records. `rest` is the statement after the source: its conditions on rows `t`, order and locks. */
  query(rest: Sql): Sql {
    const { select = "t.*", table, from = `${table} t`, joined = "" } = this.#layout;
    return sql`select ${select} from ${from} ${joined} ${rest}`;
  }

  wanted(): Statement[] {
    const statements = [...this.#wantedScans.values()];
    this.#wantedScans.clear();
    const keys = [...this.#wanted];
    this.#wanted.clear();
    if (keys.length > 0) {
      const { from, keySql } = this.#layout;
      const lock = this.#transaction.isWriting && from === undefined ? "for no key update of t" : "";
      const found = sql`where ${keySql} = any (${this.#keyList(keys)}) ${lock}`;
      statements.push({ sql: this.query(found), take: (rows) => this.take(rows, keys) });
    }
    return statements;
  }

  reset(): void {
    this.#changed.clear();
    this.#wanted.clear();
    this.#wantedScans.clear();
  }

  saved(): Sql[] {
    const { table, keySql, columns, changing, update, insert, from, isSaved = () => true } = this.#layout;
    const deletedKeys: Key[] = [];
    const known: object[] = [];
    const added: object[] = [];
    for (const [key, record] of this.#changed) {
      const before = this.#loaded.get(key);
      if (record === undefined) {
        if (before !== undefined) deletedKeys.push(key);
      } else if (isSaved(record, before)) {
        if (from === undefined && before !== undefined) known.push(this.#rowOf(record, changing));
        else added.push(this.#rowOf(record, columns));
      }
    }
    const deleted = sql`delete from ${table} t where ${keySql} = any (${this.#keyList(deletedKeys)})`;
    return [
      ...(deletedKeys.length > 0 ? [deleted] : []),
      ...(known.length > 0 ? [update.join(json(known))] : []),
      ...(added.length > 0 ? [insert.join(json(added))] : []),
    ];
  }

  #keyList(keys: readonly Key[]): Sql {
    const { encodeKey = encodeText, keyType = "text" } = this.#layout;
    return `${textList(keys.map((key) => encodeKey(String(key))))}::${keyType}[]`;
  }

  #rowOf(record: R, columns: readonly Column<R>[]): object {
    const row: Record<string, unknown> = {};
    for (const [name, , value] of columns) row[name] = value(record, this.#transaction);
    return row;
  }

  #wantScan(id: Sql, size: number): void {
    const limit = size === Infinity ? "" : `limit ${bounded(size)}`;
    const take = (rows: readonly Row[]): void => {
      const records = this.take(rows);
      const keys = new Set(records.map(this.#layout.keyOf));
      this.#scans.set(id, { keys, size, last: rows.length < size ? undefined : records.at(-1) });
    };
    this.#wantedScans.set(id, { sql: this.query(sql`${id} ${limit}`), take });
  }
}

function isWithin(value: Key | undefined, { above, below, upTo }: Range): boolean {
  return (
    value !== undefined &&
    (above === undefined || value > above) &&
    (below === undefined || value < below) &&
    (upTo === undefined || value <= upTo)
  );
}

/** The methods that all records have. */
export function storedIn<R>(table: Table<R>) {
  return {
    find: (key: Key) => table.find(key),
    put: (record: R) => table.put(record),
    delete: (record: R) => table.delete(record),
  };
}
