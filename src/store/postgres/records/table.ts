import { keepText } from "../texts.ts";
import { bounded, json, type Row, type Sql, sql, textList } from "./sql.ts";
import type { Part, Statement, Transaction } from "./transaction.ts";

/** The clocks of a transaction. */
export type Moment = { readonly now: number; readonly time: number };
export type Column<R> = readonly [name: string, type: string, value: (record: R, moment: Moment) => unknown];

/** How records are rows of a table. */
type Definition<R> = {
  table: string;
  /** The columns that no two rows share. */
  key: readonly string[];
  /** The key of a record, and that of a row `t` in SQL. */
  keyOf(record: R): string;
  keySql?: string;
  keyType?: string;
  /** The key as the table has it, if not as other texts. */
  keepKey?(key: string): string;
  columns: readonly Column<R>[];
  /** Columns beside the key that never change. */
  fixed?: readonly string[];
  /** A column that never becomes true again. */
  falling?: string;
  read(row: Row, moment: Moment): R;
  /** Tells if a change is kept; without it all are. */
  isSaved?(after: R, before: R | undefined): boolean;
  /** The list of a query for a row `t`, and its source, if they are not just the columns and the table. */
  select?: string;
  joined?: string;
  from?: string;
};

/** A definition, with the texts around the rows that an update and an insert save. */
export type Layout<R> = Required<Pick<Definition<R>, "keySql">> &
  Definition<R> & { changing: readonly Column<R>[]; update: readonly string[]; insert: readonly string[] };

export const layout = <R>(definition: Definition<R>): Layout<R> => {
  const { table, key, columns, fixed = [], falling } = definition;
  const keys = columns.filter(([name]) => key.includes(name));
  const changes = columns.filter(([name]) => !key.includes(name) && !fixed.includes(name));
  const changing = [...keys, ...changes];
  const set = (to: string, own: string) =>
    changes.map(([name]) => `${name} = ${name === falling ? `${own}.${name} and ` : ""}${to}.${name}`).join(", ");
  const typesOf = (of: readonly Column<R>[]) => of.map(([name, type]) => `${name} ${type}`).join(", ");
  const isOf = key.map((name) => `t.${name} = of.${name}`).join(" and ");
  const names = columns.map(([name]) => name).join(", ");
  return {
    keySql: `t.${key[0]}`,
    ...definition,
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
};

/** Records in an order: `where` selects them in the database, and `matches` here. */
export type Scan<R> = { where: Sql; order: string; matches(record: R): boolean; compare(a: R, b: R): number };

/** The part of a scan that was loaded. `last` is the last record of one that has more. */
type Window<R> = { readonly keys: ReadonlySet<string>; readonly size: number; readonly last: R | undefined };

/** The records of a table that a transaction has loaded, and its changes of them. */
export class Table<R> implements Part {
  readonly #layout: Layout<R>;
  readonly #transaction: Transaction;
  readonly #loaded = new Map<string, R | undefined>();
  readonly #changed = new Map<string, R | undefined>();
  readonly #wanted = new Set<string>();
  readonly #scans = new Map<string, Window<R>>();
  readonly #wantedScans = new Map<string, Statement>();

  constructor(transaction: Transaction, layout: Layout<R>) {
    this.#transaction = transaction;
    this.#layout = layout;
    transaction.add(this);
  }

  find(key: string): R | undefined {
    if (!this.knows(key)) this.#wanted.add(key);
    return this.peek(key);
  }

  /** Tells if it is known here that the record is there, or is not. */
  knows(key: string): boolean {
    return this.#changed.has(key) || this.#loaded.has(key);
  }

  /** The record, if it is here already. */
  peek(key: string): R | undefined {
    return this.#changed.has(key) ? this.#changed.get(key) : this.#loaded.get(key);
  }

  put(record: R): void {
    this.#changed.set(this.#layout.keyOf(record), record);
  }

  delete(key: string): void {
    this.#changed.set(key, undefined);
  }

  /** Takes rows that were loaded. A key of `keys` without a row has no record. */
  take(rows: readonly Row[], keys: Iterable<string> = []): R[] {
    for (const key of keys) this.#loaded.set(key, undefined);
    return rows.map((row) => {
      const record = this.#layout.read(row, this.#transaction);
      this.#loaded.set(this.#layout.keyOf(record), record);
      return record;
    });
  }

  /** The changes of this pass, each with the loaded record. */
  *changes(): Iterable<readonly [after: R | undefined, before: R | undefined]> {
    for (const [key, record] of this.#changed) yield [record, this.#loaded.get(key)];
  }

  /** The records that are here already. */
  here(matches: (record: R) => boolean): R[] {
    const found: R[] = [];
    for (const [key, record] of this.#loaded) {
      if (record !== undefined && !this.#changed.has(key) && matches(record)) found.push(record);
    }
    for (const record of this.#changed.values()) if (record !== undefined && matches(record)) found.push(record);
    return found;
  }

  /** Has a scan loaded that will be asked for. */
  want(of: Scan<R>, size: number): void {
    if (!this.#scans.has(idOf(of))) this.#wantScan(of, size);
  }

  scan(of: Scan<R>, limit = Infinity, window = limit): R[] {
    const known = this.#scans.get(idOf(of));
    if (!known) {
      this.#wantScan(of, window);
      return [];
    }
    const { last } = known;
    const found: R[] = [];
    for (const record of this.#changed.values()) if (record !== undefined && of.matches(record)) found.push(record);
    const isInOrder = found.length === 0;
    for (const key of known.keys) {
      if (isInOrder && found.length === limit) return found;
      const record = this.#changed.has(key) ? undefined : this.#loaded.get(key);
      if (record !== undefined && of.matches(record)) found.push(record);
    }
    if (!isInOrder) found.sort(of.compare);
    if (last === undefined) return found.slice(0, limit);
    const before = found.filter((record) => of.compare(record, last) <= 0);
    if (before.length < limit) this.#wantScan(of, Math.max(known.size * 2, limit));
    return before.slice(0, limit);
  }

  /** Takes the first `size` rows of a scan that were loaded otherwise. */
  takeScan(of: Scan<R>, rows: readonly Row[], size: number): void {
    const records = this.take(rows);
    const keys = new Set(records.map(this.#layout.keyOf));
    this.#scans.set(idOf(of), { keys, size, last: rows.length < size ? undefined : records.at(-1) });
  }

  /** A query for all that is read of some rows `t`. */
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
    const gone: string[] = [];
    const kept: R[] = [];
    for (const [key, record] of this.#changed) {
      if (record !== undefined) kept.push(record);
      else if (this.#loaded.get(key) !== undefined) gone.push(key);
    }
    const { table, keySql } = this.#layout;
    const deleted = sql`delete from ${table} t where ${keySql} = any (${this.#keyList(gone)})`;
    return [...(gone.length > 0 ? [deleted] : []), ...this.#saving(kept)];
  }

  #keyList(keys: readonly string[]): Sql {
    const { keepKey = keepText, keyType = "text" } = this.#layout;
    return sql`${textList(keys.map((key) => keepKey(key)))}::${keyType}[]`;
  }

  #saving(changed: readonly R[]): Sql[] {
    const { keyOf, columns, changing, update, insert, from, isSaved = () => true } = this.#layout;
    const before = (record: R): R | undefined => this.#loaded.get(keyOf(record));
    const records = changed.filter((record) => isSaved(record, before(record)));
    const isKnown = (record: R): boolean => from === undefined && before(record) !== undefined;
    const known = this.#rowsOf(records.filter(isKnown), changing);
    const added = this.#rowsOf(
      records.filter((record) => !isKnown(record)),
      columns,
    );
    return [
      ...(known.length > 0 ? [sql(update, json(known))] : []),
      ...(added.length > 0 ? [sql(insert, json(added))] : []),
    ];
  }

  #rowsOf(records: readonly R[], columns: readonly Column<R>[]): object[] {
    return records.map((record) => {
      const row: Record<string, unknown> = {};
      for (const [name, , value] of columns) row[name] = value(record, this.#transaction);
      return row;
    });
  }

  #wantScan(of: Scan<R>, size: number): void {
    const limit = size === Infinity ? "" : sql`limit ${bounded(size)}`;
    const found = sql`where ${of.where} order by ${of.order} ${limit}`;
    this.#wantedScans.set(idOf(of), { sql: this.query(found), take: (rows) => this.takeScan(of, rows, size) });
  }
}

const idOf = ({ where, order }: Scan<never>): string => `${where.id} ${order}`;
