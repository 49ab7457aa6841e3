import { Ordered, type Range } from "./ordered.ts";

export type Key = string | number;
type Field = Key | boolean | undefined;

/**
 * An order of the records that have a value in the column `by`: in each group that shares the column `of`, only records where
 * `only` is true. With `hasTies`, several records may have the same value, and are in the order of their keys in a database. `isRare`: it is used so
 * rarely that a table in memory has no index for it.
 */
export type Order = {
  readonly by: string;
  readonly of?: string;
  readonly only?: string;
  readonly hasTies?: true;
  readonly isRare?: true;
};

/** The type of a column's values. A `text` may contain any characters. */
export type ColumnType = "text" | "integer" | "number" | "boolean";
/** A column by which records are found: its type, a function that returns its value, and a mark if the value never changes. */
export type Column<R> = readonly [type: ColumnType, of: (record: R) => Field, fixed?: "fixed"];

/** A table as data. The key never changes, and the group of a record in an order only while the record is not in the order. */
export type Layout<R> = {
  table: string;
  key: string;
  /** The columns by which records are found, including the key. An update does not write fixed columns or their indexes. */
  columns: { readonly [column: string]: Column<R> };
  orders?: { readonly [name: string]: Order };
  /** The bytes that a record counts for in the limit on the store. Without it: none. */
  weigh?(record: R): number;
  /** True for a table with few or unfinished records. An engine in this process has it completely in memory. */
  isLive?: true;
  /** True for flat records that rules change in place before they put them. An engine that repeats rules returns copies. */
  isMutable?: true;
  /** For a live table that is also stored in a file: returns true if a change must be saved. Without it, all changes are saved. */
  isSaved?(before: R, after: R): boolean;
};

export type Scan = Range<Key> & { of?: Key | boolean };

/** Called with each change of a record, as it was and as it is. */
export type Changed<R> = (before: R | undefined, after: R | undefined) => void;

/** Records by their keys. A record that is put, deleted or changed was found before, or is new. */
export interface RecordTable<R> {
  readonly keyOf: (record: R) => Key;
  find(key: Key): R | undefined;
  put(record: R): void;
  delete(key: Key): void;
  /** The records of a group in an order, within a range. Records with the same `by` are in any order. */
  scan(order: Order, scan: Scan): R[];
  /** The first record of a group in an order. */
  first(order: Order, of?: Key | boolean): R | undefined;
  /** The groups of an order that have records. */
  groups(order: Order): Key[];
}

function fieldOf<R>({ columns }: Layout<R>, column: string): (record: R) => Field {
  const field = columns[column];
  if (!field) throw new Error(`There is no column ${column}.`);
  return field[1];
}

/** Tells the key of a record. */
export function keyField<R>(layout: Layout<R>): (record: R) => Key {
  return fieldOf(layout, layout.key) as (record: R) => Key;
}

export class MemoryTable<R extends object> implements RecordTable<R> {
  readonly #changed: Changed<R>;
  readonly keyOf: (record: R) => Key;
  readonly #rows = new Map<Key, R>();
  readonly #indexes: readonly Index<R>[];
  readonly #rare: readonly Index<R>[];

  constructor(layout: Layout<R>, changed: Changed<R> = () => {}) {
    this.#changed = changed;
    this.keyOf = keyField(layout);
    const indexes = Object.values(layout.orders ?? {}).map((order) => new Index(layout, order));
    this.#indexes = indexes.filter(({ order }) => !order.isRare);
    this.#rare = indexes.filter(({ order }) => order.isRare);
  }

  find(key: Key): R | undefined {
    return this.#rows.get(key);
  }

  put(record: R): void {
    const before = this.#set(record);
    this.#changed(before, record);
  }

  /** Adds a stored record without a call of `changed`. */
  load(record: R): void {
    this.#set(record);
  }

  delete(key: Key): void {
    const before = this.find(key);
    if (!before) return;
    this.#rows.delete(key);
    for (const index of this.#indexes) index.move(key, before, undefined);
    this.#changed(before, undefined);
  }

  scan(order: Order, scan: Scan): R[] {
    const found: R[] = [];
    for (const key of this.#groupsOf(order).get(scan.of)?.scan(scan) ?? []) found.push(this.find(key) as R);
    return found;
  }

  first(order: Order, of?: Key | boolean): R | undefined {
    const key = this.#groupsOf(order).get(of)?.first;
    return key === undefined ? undefined : this.find(key);
  }

  groups(order: Order): Key[] {
    return [...this.#groupsOf(order).keys()] as Key[];
  }

  #set(record: R): R | undefined {
    const key = this.keyOf(record);
    const before = this.#rows.get(key);
    this.#rows.set(key, record);
    for (const index of this.#indexes) index.move(key, before, record);
    return before;
  }

  #groupsOf(order: Order): Index<R>["groups"] {
    for (const index of this.#indexes) if (index.order === order) return index.groups;
    for (const index of this.#rare) if (index.order === order) return index.groupsOf(this.#rows);
    throw new Error(`There is no order by ${order.by}.`);
  }
}

/** The keys of records in an order. */
class Index<R> {
  readonly order: Order;
  groups = new Map<Field, Ordered<Key, Key>>();
  /** A group that became empty, for the next one to begin: most last for one turn. */
  #spare: Ordered<Key, Key> | undefined;
  readonly #groupOf: (record: R) => Field;
  readonly #placeOf: (record: R) => Field;

  constructor(layout: Layout<R>, order: Order) {
    const { by, of, only } = order;
    this.order = order;
    const placeOf = fieldOf(layout, by);
    const isIn = only === undefined ? () => true : fieldOf(layout, only);
    this.#groupOf = of === undefined ? () => undefined : fieldOf(layout, of);
    this.#placeOf = (record) => (isIn(record) ? placeOf(record) : undefined);
  }

  /** The groups of these records, for an order without an index. */
  groupsOf(rows: ReadonlyMap<Key, R>): Index<R>["groups"] {
    this.groups = new Map();
    for (const [key, record] of rows) this.move(key, undefined, record);
    const { groups } = this;
    this.groups = new Map();
    return groups;
  }

  move(key: Key, before: R | undefined, after: R | undefined): void {
    const from = before && (this.#placeOf(before) as Key | undefined);
    const to = after && (this.#placeOf(after) as Key | undefined);
    if (from === to) return;
    const group = this.#groupOf((after ?? before) as R);
    const ordered = this.groups.get(group) ?? this.#begin(group);
    if (from !== undefined) ordered.delete(from, key);
    if (to !== undefined) ordered.add(to, key);
    if (ordered.size > 0) return;
    this.groups.delete(group);
    this.#spare = ordered;
  }

  #begin(group: Field): Ordered<Key, Key> {
    const ordered = this.#spare ?? new Ordered<Key, Key>();
    this.#spare = undefined;
    this.groups.set(group, ordered);
    return ordered;
  }
}
