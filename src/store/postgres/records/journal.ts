import type { Stream } from "#store/rules/records.ts";
import type { Entry } from "#store/store.ts";
import { type AnyEntry, decodeEntries, encodeApart, GATEWAY } from "#store/tables/journal-rows.ts";
import { weighEntry } from "#store/tables/layouts.ts";
import { bounded, numberList, type Row, type Sql, sql, textList } from "./sql.ts";
import type { Part, Transaction } from "./transaction.ts";

/** A stored row: its entries, and the `seq` of the first entry of the stream. */
type Stored = { readonly entries: readonly AnyEntry[]; readonly head: number };

/** The streams of a transaction: the journals of sessions by their ordinals. The entries that it appends to a stream share a row. */
export class Journals implements Part {
  readonly #transaction: Transaction;
  readonly #weigh: (bytes: number) => void;
  readonly #journals = new Map<number, PostgresJournal>();
  /** The streams of which whole rows are deleted, and the first `seq` that each keeps. */
  #dropped = new Map<number, number>();

  /** `weigh` is called with the change of the weight of all entries. */
  constructor(transaction: Transaction, weigh: (bytes: number) => void) {
    this.#transaction = transaction;
    this.#weigh = weigh;
    transaction.add(this);
  }

  of<E extends AnyEntry>(session: number): Stream<E> {
    let journal = this.#journals.get(session);
    if (!journal) {
      journal = new PostgresJournal(this.#transaction, session, session === GATEWAY ? () => {} : this.#weigh);
      this.#journals.set(session, journal);
    }
    return journal as Stream<AnyEntry> as Stream<E>;
  }

  dropRows(session: number, seq: number): void {
    this.#dropped.set(session, seq);
  }

  reset(): void {
    for (const journal of this.#journals.values()) journal.reset();
    this.#dropped = new Map();
  }

  saved(): Sql[] {
    const rows: { session: number; entries: readonly AnyEntry[] }[] = [];
    const erased: [session: number, before: number][] = [];
    for (const [session, journal] of this.#journals) {
      if (journal.erasedBefore > 0) erased.push([session, journal.erasedBefore]);
      for (const entries of [journal.rest, journal.appended]) if (entries.length > 0) rows.push({ session, entries });
    }
    return [
      ...[...this.#dropped].map(dropped),
      ...(erased.length > 0 ? [deletion(erased)] : []),
      ...(rows.length > 0 ? [insertion(rows)] : []),
    ];
  }
}

function dropped([session, seq]: readonly [number, number]): Sql {
  const kept = sql`select max(first_seq) from journal where session = ${bounded(session)} and first_seq <= ${bounded(seq)}`;
  return sql`delete from journal where session = ${bounded(session)} and first_seq < (${kept})`;
}

function deletion(erased: readonly (readonly [session: number, before: number])[]): Sql {
  const [sessions, bounds] = [numberList(erased.map(([session]) => session)), numberList(erased.map(([, seq]) => seq))];
  return sql`delete from journal j using unnest(${sessions}, ${bounds}) as of (session, seq)
    where j.session = of.session and j.first_seq < of.seq`;
}

function insertion(rows: readonly { session: number; entries: readonly AnyEntry[] }[]): Sql {
  const texts = rows.map(({ entries }) => encodeApart(entries));
  const columns = [
    numberList(rows.map(({ session }) => session)),
    numberList(rows.map(({ entries }) => entries[0]?.seq ?? 0)),
    numberList(rows.map(({ entries }) => entries.at(-1)?.at ?? 0)),
    sql`${textList(texts.map(({ body }) => body))}::json[]`,
    sql`${textList(texts.map(({ calls }) => calls))}::json[]`,
  ];
  return sql`insert into journal (session, first_seq, at, body, calls) select * from unnest(${columns.join(", ")})`;
}

function firstOf({ entries }: Stored): number {
  return entries[0]?.seq ?? 0;
}

function lastOf({ entries }: Stored): number {
  return entries.at(-1)?.seq ?? 0;
}

/**
 * A journal as a transaction sees it: its stored rows, and over them the changes of this pass. The `seq` of its entries have no gaps, so the rows that
 * hold a range of entries are found by the first `seq` of each.
 */
class PostgresJournal implements Stream<AnyEntry> {
  readonly #transaction: Transaction;
  readonly #session: Sql;
  readonly #weigh: (bytes: number) => void;
  /** The rows that this pass has read whole, by the `seq` of their first entry. */
  #rows = new Map<number, Stored>();
  /** True if the last row is one of them, or if there are none. */
  #isEndRead = false;
  appended: AnyEntry[] = [];
  erasedBefore = 0;
  /** The other entries of a row of which some are erased. */
  rest: readonly AnyEntry[] = [];

  constructor(transaction: Transaction, session: number, weigh: (bytes: number) => void) {
    this.#transaction = transaction;
    this.#session = bounded(session);
    this.#weigh = weigh;
  }

  get first(): number {
    const [first] = this.#ends();
    return Math.max(first ?? this.appended[0]?.seq ?? 1, this.erasedBefore);
  }

  get last(): number {
    return this.appended.at(-1)?.seq ?? this.#ends()[1] ?? 0;
  }

  append(entries: readonly AnyEntry[]): void {
    this.appended.push(...entries);
    this.#weigh(weightOf(entries));
  }

  after(seq: number, limit: number): AnyEntry[] {
    const from = Math.max(seq + 1, this.erasedBefore, 1);
    const stored = this.#isAppended(from) ? [] : this.#readFrom(from, limit);
    return [...stored, ...this.appended.filter((entry) => entry.seq >= from)].slice(0, limit);
  }

  before(seq: number, limit: number, withToolCalls = false): AnyEntry[] {
    const newest = this.appended.filter((entry) => entry.seq < seq).reverse();
    const left = limit - newest.length;
    if (left <= 0 || this.#isAppended(1)) return newest.slice(0, limit);
    const end = Math.min(seq, this.appended[0]?.seq ?? Infinity);
    const stored = this.#readBefore(end, left, withToolCalls).flatMap(({ entries }) => entries.toReversed());
    const kept = stored.filter((entry) => entry.seq < end && entry.seq >= this.erasedBefore);
    return [...newest, ...kept.slice(0, left)];
  }

  eraseBefore(seq: number): void {
    if (seq <= Math.max(this.erasedBefore, 1)) return;
    const rows = this.#rowsBefore(seq);
    const stored = rows.flatMap(({ entries }) => entries);
    const erased = [...stored, ...this.appended].filter((entry) => entry.seq < seq && entry.seq >= this.erasedBefore);
    this.#weigh(-weightOf(erased));
    this.erasedBefore = seq;
    this.rest = stored.filter((entry) => entry.seq >= seq);
    this.appended = this.appended.filter((entry) => entry.seq >= seq);
  }

  reset(): void {
    this.#rows = new Map();
    this.#isEndRead = false;
    this.appended = [];
    this.erasedBefore = 0;
    this.rest = [];
  }

  /** True if this transaction appended the entry, so that there is nothing to read from it on. */
  #isAppended(seq: number): boolean {
    return (this.appended[0]?.seq ?? Infinity) <= seq;
  }

  /** The `seq` of the first and the last stored entry. */
  #ends(): [first?: number, last?: number] {
    if (this.#isAppended(1)) return [];
    const rows = this.#isEndRead ? [...this.#rows.values()] : this.#readBefore(Infinity, 1, false);
    const [first] = rows;
    return first ? [first.head, Math.max(...rows.map(lastOf))] : [];
  }

  #readFrom(seq: number, limit: number): AnyEntry[] {
    const [from, session] = [bounded(seq), this.#session];
    const rows = this.#read(
      sql`body, calls`,
      sql`first_seq >= coalesce((select max(first_seq) from journal where session = ${session} and first_seq <= ${from}), 0)
      and first_seq < greatest(${from}, (${this.#head})) + ${bounded(limit)} order by first_seq`,
    );
    for (const row of rows) this.#rows.set(firstOf(row), row);
    const found = rows.flatMap(({ entries }) => entries).filter((entry) => entry.seq >= seq);
    this.#isEndRead ||= found.length < limit;
    return found.slice(0, limit);
  }

  /** The rows that hold the last `limit` entries before `seq`, the newest first. */
  #readBefore(seq: number, limit: number, withToolCalls: boolean): Stored[] {
    const session = this.#session;
    const newest = sql`select max(first_seq) from journal where session = ${session}`;
    const from = sql`select max(first_seq) from journal where session = ${session} and first_seq <= least(${bounded(seq)}, (${newest}) + 1) - ${bounded(limit)}`;
    const where = sql`first_seq < ${bounded(seq)} and first_seq >= coalesce((${from}), 0) order by first_seq desc`;
    return this.#read(withToolCalls ? sql`body, calls` : sql`body`, where);
  }

  /** The rows with entries before `seq`, in order. A rule that erases entries has mostly read them. */
  #rowsBefore(seq: number): Stored[] {
    if (this.#isAppended(1)) return [];
    const found: Stored[] = [];
    const head = [...this.#rows.values()][0]?.head ?? 0;
    let next = head;
    for (let row = this.#rows.get(head); row && next < seq; row = this.#rows.get(next)) {
      found.push(row);
      next = lastOf(row) + 1;
    }
    if (next >= seq || (this.#isEndRead && next > (this.#ends()[1] ?? 0))) return found;
    return this.#read(sql`body, calls`, sql`first_seq < ${bounded(seq)} order by first_seq`);
  }

  get #head(): Sql {
    return sql`select min(first_seq) from journal where session = ${this.#session}`;
  }

  #read(columns: Sql, where: Sql): Stored[] {
    const found = sql`select ${columns}, (${this.#head}) as head from journal where session = ${this.#session} and ${where}`;
    return this.#transaction.read(found).map(storedOf);
  }
}

function storedOf({ body, calls, head }: Row): Stored {
  const entries = decodeEntries(body as AnyEntry[], (calls ?? undefined) as Parameters<typeof decodeEntries>[1]);
  return { entries, head: head as number };
}

function weightOf(entries: readonly AnyEntry[]): number {
  return entries.reduce((sum, entry) => sum + weighEntry(entry as Entry), 0);
}
