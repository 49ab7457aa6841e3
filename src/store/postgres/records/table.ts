import type { Changed, Key, Layout, Order, RecordTable, Scan } from "#store/tables/table.ts";
import { decodeText } from "../texts.ts";
import { Columns, type NamedColumn, namesOf } from "./columns.ts";
import { double, integer, quote, type Row, type Sql, sql, truth } from "./sql.ts";
import type { NamedSql, Part, Statement, Transaction } from "./transaction.ts";

/** The columns of an order. */
type OrderColumns<R> = { readonly by: NamedColumn<R>; readonly of?: NamedColumn<R>; readonly only?: NamedColumn<R> };

/** The number of records that are loaded with the first of a group, because a rule often needs the next ones as well. */
export const FIRST_OF_GROUP = 32;

/** The loaded part of a scan. `last` is the last loaded record; undefined if the whole scan is loaded. */
type Window<R> = { readonly keys: ReadonlySet<Key>; readonly size: number; readonly last: R | undefined };
type WantedScan = Statement & { readonly size: number };
const NOTHING: Window<never> = { keys: new Set(), size: 0, last: undefined };

export type TableOptions<R> = {
  /** True if this transaction assigned the value of that column, so that no stored record has it. */
  isNew(column: string, value: Key | boolean): boolean;
  /** The record as this process knew it last. It may be outdated. */
  guess?(key: Key): R | undefined;
  /** More statements, which load data that belongs to the records of these keys. They run after the records are loaded. */
  loading?(keys: readonly Key[]): Statement[];
};

/** Rows of a table as a transaction sees them: the loaded rows with the changes of this pass. */
export class PostgresTable<R extends object> implements RecordTable<R>, Part {
  readonly #transaction: Transaction;
  readonly #layout: Layout<R>;
  readonly #columns: Columns<R>;
  readonly #orders = new Map<Order, OrderColumns<R>>();
  readonly #options: TableOptions<R>;
  readonly keyOf: (record: R) => Key;
  /** Called with each change. Each pass sets it. */
  onChange: Changed<R> | undefined;
  readonly #loaded = new Map<Key, R | undefined>();
  readonly #changed = new Map<Key, R | undefined>();
  /** Copies of loaded records that a pass may change. */
  readonly #copies = new Map<Key, R>();
  /** Keys whose records were deleted in this pass, and may have been put again. */
  readonly #deleted = new Set<Key>();
  readonly #wanted = new Set<Key>();
  readonly #windows = new Map<Sql, Window<R>>();
  readonly #wantedScans = new Map<Sql, WantedScan>();
  readonly #groups = new Map<Order, readonly Key[]>();
  readonly #wantedGroups = new Set<Order>();

  constructor(transaction: Transaction, layout: Layout<R>, options: TableOptions<R>) {
    this.#transaction = transaction;
    this.#layout = layout;
    this.#options = options;
    this.#columns = new Columns(layout);
    this.keyOf = this.#columns.key.of as (record: R) => Key;
    transaction.add(this);
  }

  find(key: Key): R | undefined {
    if (!this.#knows(key)) this.#wanted.add(key);
    if (!this.#layout.isMutable || this.#changed.has(key)) return this.#peek(key);
    const copy = this.#copies.get(key) ?? structuredClone(this.#loaded.get(key));
    if (copy) this.#copies.set(key, copy);
    return copy;
  }

  put(record: R): void {
    this.#change(this.keyOf(record), record);
  }

  delete(key: Key): void {
    // Without a listener, the record need not be known.
    const isMissing = this.onChange || this.#knows(key) ? !this.find(key) : false;
    if (isMissing) return;
    this.#deleted.add(key);
    this.#change(key, undefined);
  }

  scan(order: Order, scan: Scan): R[] {
    return this.#scan(order, scan, scan.limit ?? Infinity);
  }

  first(order: Order, of?: Key | boolean): R | undefined {
    return this.#scan(order, { of, limit: 1 }, FIRST_OF_GROUP)[0];
  }

  /** The groups of an order. They may include groups that this pass has emptied. */
  groups(order: Order): Key[] {
    const stored = this.#groups.get(order);
    if (!stored) this.#wantedGroups.add(order);
    const groups = new Set<Key>(stored);
    const { of } = this.#columnsOf(order);
    for (const record of this.#changed.values()) {
      if (of && record && this.#isIn(order, {}, record)) groups.add(of.of(record) as Key);
    }
    return [...groups];
  }

  /** The records that this pass has changed, by their keys. */
  get changed(): ReadonlyMap<Key, R | undefined> {
    return this.#changed;
  }

  /** The record, if it is loaded. */
  loaded(key: Key): R | undefined {
    return this.#loaded.get(key);
  }

  /** Takes the rows of a query. Returns their records, without those that this pass has deleted. */
  take(rows: readonly Row[]): R[] {
    return this.#take(bodiesOf(rows)).flatMap((record) => this.#peek(this.keyOf(record)) ?? []);
  }

  /** The first `limit` loaded records of a group in an order, without records that this pass has changed. */
  loadedIn(order: Order, of: Key, limit: number): R[] {
    const found: R[] = [];
    for (const key of this.#windows.get(this.#idOf(order, { of }))?.keys ?? []) {
      if (found.length === limit) break;
      const record = this.#changed.has(key) ? undefined : this.#loaded.get(key);
      if (record) found.push(record);
    }
    return found;
  }

  /** Takes the records of a group from its beginning: all, if there are fewer than `size`. */
  takeGroup(order: Order, of: Key, records: readonly R[], size: number): void {
    this.#window(this.#idOf(order, { of }), this.#take(records), size);
  }

  /** The statement that loads the first `size` records of the groups of an order. `groups` is a statement that selects them as `of`. */
  groupsOf(order: Order, groups: Sql, size: number): NamedSql {
    const { table } = this.#layout;
    const { by, of = "" } = order;
    const found = sql`select t.body from (${groups}) g cross join lateral (select body from ${table} r
      where r.${of} = g.of and r.${by} is not null order by r.${by} limit ${integer(size)}) t`;
    return { name: `${table}_load_groups_of_${this.#nameOf(order)}`, sql: found };
  }

  wanted(): Statement[] {
    const statements: Statement[] = [...this.#wantedScans.values()];
    this.#wantedScans.clear();
    for (const order of this.#wantedGroups) statements.push(this.#loadGroups(order));
    this.#wantedGroups.clear();
    if (this.#wanted.size === 0) return statements;
    const keys = [...this.#wanted];
    this.#wanted.clear();
    const { table, key } = this.#layout;
    const load = sql`select body from ${table} where ${key} = any (${this.#columns.array(this.#columns.key, keys)})`;
    const asked = new Map(keys.map((one) => [this.#stored(one), one]));
    const take = (rows: readonly Row[]): void => {
      for (const one of keys) this.#loaded.set(one, undefined);
      this.#take(bodiesOf(rows), asked);
    };
    return [...statements, { name: `${table}_load`, sql: load, take }, ...(this.#options.loading?.(keys) ?? [])];
  }

  reset(): void {
    for (const some of [this.#changed, this.#copies, this.#deleted, this.#wanted]) some.clear();
    this.#wantedScans.clear();
    this.#wantedGroups.clear();
  }

  saved(): NamedSql[] {
    const deleted: Key[] = [];
    const updated: R[] = [];
    const inserted: R[] = [];
    for (const [key, record] of this.#changed) {
      const before = this.#loaded.get(key);
      const isUnknown = this.#deleted.has(key) && !this.#loaded.has(key);
      if (record === before && !isUnknown) continue;
      // The row of a record that was put after its deletion has other values in fixed columns.
      const isNew = before === undefined || this.#deleted.has(key);
      if (isUnknown || (before !== undefined && (record === undefined || isNew))) deleted.push(key);
      if (record !== undefined) (isNew ? inserted : updated).push(record);
    }
    const statements: NamedSql[] = [];
    const { table, key } = this.#layout;
    if (deleted.length > 0) {
      const keys = this.#columns.array(this.#columns.key, deleted);
      statements.push({ name: `${table}_delete`, sql: sql`delete from ${table} where ${key} = any (${keys})` });
    }
    if (updated.length > 0) {
      const { changing } = this.#columns;
      const names = [...changing.slice(1).map(({ name }) => name), "body"];
      const set = names.map((name) => `${name} = of.${name}`).join(", ");
      const rows = sql`${this.#columns.rows(updated, changing)} as of (${namesOf(changing)})`;
      statements.push({
        name: `${table}_update`,
        sql: sql`update ${table} t set ${set} from ${rows} where t.${key} = of.${key}`,
      });
    }
    if (inserted.length > 0) {
      const { all } = this.#columns;
      const insert = sql`insert into ${table} (${namesOf(all)}) select * from ${this.#columns.rows(inserted, all)}`;
      statements.push({ name: `${table}_insert`, sql: insert });
    }
    return statements;
  }

  #columnsOf(order: Order): OrderColumns<R> {
    let columns = this.#orders.get(order);
    if (!columns) {
      const { by, of, only } = order;
      columns = {
        by: this.#columns.named(by),
        ...(of !== undefined && { of: this.#columns.named(of) }),
        ...(only !== undefined && { only: this.#columns.named(only) }),
      };
      this.#orders.set(order, columns);
    }
    return columns;
  }

  /** True if it is known whether the record exists. */
  #knows(key: Key): boolean {
    return this.#changed.has(key) || this.#loaded.has(key) || this.#options.isNew(this.#layout.key, key);
  }

  #peek(key: Key): R | undefined {
    if (this.#changed.has(key)) return this.#changed.get(key);
    if (this.#loaded.has(key)) return this.#loaded.get(key);
    // A guess decides only what is loaded.
    return this.#transaction.state === undefined ? this.#options.guess?.(key) : undefined;
  }

  #change(key: Key, after: R | undefined): void {
    const before = this.#peek(key);
    this.#changed.set(key, after);
    this.onChange?.(before, after);
  }

  /** The key as its column stores it. */
  #stored(key: Key): Key {
    return typeof key === "string" ? this.#columns.encode(key) : key;
  }

  /**
   * Stores loaded records. If a record was loaded before, returns that one. `asked` has the requested keys by their stored forms, because a
   * record of version 0.2.0 may have only the stored form of its key.
   */
  #take(records: readonly R[], asked?: ReadonlyMap<Key, Key>): R[] {
    return records.map((record) => {
      const key = asked?.get(this.#stored(this.keyOf(record))) ?? this.keyOf(record);
      const known = this.#loaded.get(key) ?? record;
      this.#loaded.set(key, known);
      return known;
    });
  }

  #window(id: Sql, records: readonly R[], size: number): void {
    const last = records.length < size ? undefined : records.at(-1);
    this.#windows.set(id, { keys: new Set(records.map(this.keyOf)), size, last });
  }

  /** The records of a scan, with the changes of this pass; none until they are loaded. `window` is the number of records to load first. */
  #scan(order: Order, scan: Scan, window: number): R[] {
    const { limit = Infinity, of } = scan;
    const isNew = of !== undefined && order.of !== undefined && this.#options.isNew(order.of, of);
    const id = this.#idOf(order, scan);
    const known = isNew ? NOTHING : this.#windows.get(id);
    if (!known) {
      // Each call for the first record of a group is likely to need one more record of the group.
      const asked = this.#wantedScans.get(id)?.size ?? 0;
      this.#wantScan(order, scan, Math.max(asked + 1, window));
      return [];
    }
    const { last } = known;
    const found: R[] = [];
    for (const record of this.#changed.values()) if (record && this.#isIn(order, scan, record)) found.push(record);
    const isInOrder = found.length === 0;
    for (const key of known.keys) {
      if (isInOrder && found.length === limit) return found;
      const record = this.#changed.has(key) ? undefined : this.#loaded.get(key);
      if (record && this.#isIn(order, scan, record)) found.push(record);
    }
    const compare = this.#comparing(order, scan);
    if (!isInOrder) found.sort(compare);
    if (last === undefined) return found.slice(0, limit);
    const before = found.filter((record) => compare(record, last as R) <= 0);
    if (before.length < limit) this.#wantScan(order, scan, Math.max(known.size * 2, limit));
    return before.slice(0, limit);
  }

  #wantScan(order: Order, scan: Scan, size: number): void {
    const { table } = this.#layout;
    const { newestFirst = false } = scan;
    const id = this.#idOf(order, scan);
    const limit = size === Infinity ? "" : `limit ${integer(size)}`;
    const take = (rows: readonly Row[]): void => this.#window(id, this.#take(bodiesOf(rows)), size);
    const name = `${table}_scan_${this.#nameOf(order)}${newestFirst ? "_back" : ""}`;
    this.#wantedScans.set(id, { name, sql: sql`select body from ${table} ${id} ${limit}`, take, size });
  }

  /** The conditions and the order of a scan as SQL. */
  #idOf({ by, of, only, hasTies }: Order, { of: group, above, below, upTo, newestFirst }: Scan): Sql {
    const conditions = only === undefined ? [] : [only];
    if (of !== undefined && group !== undefined) conditions.push(`${of} = ${this.#literal(of, group)}`);
    if (above !== undefined) conditions.push(`${by} > ${this.#literal(by, above)}`);
    if (below !== undefined && below !== Infinity) conditions.push(`${by} < ${this.#literal(by, below)}`);
    if (upTo !== undefined && upTo !== Infinity) conditions.push(`${by} <= ${this.#literal(by, upTo)}`);
    const direction = newestFirst ? " desc" : "";
    const columns = hasTies ? [by, this.#layout.key] : [by];
    const ordered = columns.map((column) => `${column}${direction}`).join(", ");
    return sql`where ${[...conditions, `${by} is not null`].join(" and ")} order by ${ordered}`;
  }

  #literal(column: string, value: Key | boolean): Sql {
    if (typeof value === "boolean") return truth(value);
    if (typeof value === "string") return quote(this.#columns.encode(value));
    if (this.#columns.named(column).type === "integer") return integer(value);
    // The statement runs later, so it reads the time itself.
    return value === this.#transaction.time ? this.#transaction.sqlTime : double(value);
  }

  #isIn(order: Order, { of: group, above, below, upTo }: Scan, record: R): boolean {
    const { by, of, only } = this.#columnsOf(order);
    const value = by.of(record) as Key | undefined;
    return (
      value !== undefined &&
      (only === undefined || only.of(record) === true) &&
      (group === undefined || of === undefined || of.of(record) === group) &&
      (above === undefined || value > above) &&
      (below === undefined || value < below) &&
      (upTo === undefined || value <= upTo)
    );
  }

  #comparing(order: Order, { newestFirst }: Scan): (a: R, b: R) => number {
    const { of } = this.#columnsOf(order).by;
    const sign = newestFirst ? -1 : 1;
    return (a, b) => {
      const [first, second] = [of(a) as Key, of(b) as Key];
      if (first !== second) return first < second ? -sign : sign;
      const [one, other] = [this.keyOf(a), this.keyOf(b)];
      return one === other ? 0 : one < other ? -sign : sign;
    };
  }

  /** The query jumps from group to group in the index of the order, so that it does not read all rows. */
  #loadGroups(order: Order): Statement {
    const { table } = this.#layout;
    const { by, of = "", only } = order;
    const next = (after: string) =>
      `select ${of} as name from ${table} where ${only === undefined ? "" : `${only} and `}${by} is not null${after} order by ${of} limit 1`;
    const jump = sql`with recursive found as ((${next("")}) union all
      select (${next(` and ${of} > found.name`)}) from found where found.name is not null)
      select name from found where name is not null`;
    const take = (rows: readonly Row[]): void => {
      this.#groups.set(
        order,
        rows.map(({ name }) => (typeof name === "string" ? decodeText(name) : (name as Key))),
      );
    };
    return { name: `${table}_groups_${this.#nameOf(order)}`, sql: jump, take };
  }

  #nameOf(order: Order): string {
    const [name = order.by] = Object.entries(this.#layout.orders ?? {}).find(([, one]) => one === order) ?? [];
    return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }
}

function bodiesOf<R>(rows: readonly Row[]): R[] {
  return rows.map(({ body }) => body as R);
}
