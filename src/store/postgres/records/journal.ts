import type { Journal, Stream } from "#store/rules/streams.ts";
import type { Entry } from "#store/store.ts";
import { type AnyEntry, decodeEntries, encodeApart, GATEWAY } from "#store/tables/journal-rows.ts";
import { weighEntry } from "#store/tables/layouts.ts";
import { integer, numberList, type Row, type Sql, sql, textList } from "./sql.ts";
import type { NamedSql, Part, Transaction } from "./transaction.ts";

/** The streams of a transaction: the journals of sessions by their ordinals. Entries that the transaction appends to one stream share a row. */
export class Journals implements Part {
  readonly #transaction: Transaction;
  readonly #weigh: (bytes: number) => void;
  readonly #journals = new Map<number, PostgresJournal>();
  /** The streams whose old rows are deleted, with the first `seq` that remains in each. */
  #dropped = new Map<number, number>();

  /** `weigh` is called with the change of the weight of all entries. */
  constructor(transaction: Transaction, weigh: (bytes: number) => void) {
    this.#transaction = transaction;
    this.#weigh = weigh;
    transaction.add(this);
  }

  /** The journal of a session, by its ordinal. */
  of(session: number): Journal {
    return this.#of(session) as Journal;
  }

  stream<E extends AnyEntry>(session: number): Stream<E> {
    return this.#of(session) as Stream<AnyEntry> as Stream<E>;
  }

  dropRows(session: number, seq: number): void {
    this.#dropped.set(session, seq);
  }

  #of(session: number): PostgresJournal {
    let journal = this.#journals.get(session);
    if (!journal) {
      journal = new PostgresJournal(this.#transaction, session, session === GATEWAY ? () => {} : this.#weigh);
      this.#journals.set(session, journal);
    }
    return journal;
  }

  get isChanged(): boolean {
    const journals = [...this.#journals.values()];
    return this.#dropped.size > 0 || journals.some(({ appended, erasedBefore }) => appended.length + erasedBefore > 0);
  }

  reset(): void {
    for (const journal of this.#journals.values()) journal.reset();
    this.#dropped = new Map();
  }

  saved(): NamedSql[] {
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

function dropped([session, seq]: readonly [number, number]): NamedSql {
  const kept = sql`select max(first_seq) from journal where session = ${integer(session)} and first_seq <= ${integer(seq)}`;
  return {
    name: "journal_drop_rows",
    sql: sql`delete from journal where session = ${integer(session)} and first_seq < (${kept})`,
  };
}

function deletion(erased: readonly (readonly [session: number, before: number])[]): NamedSql {
  const [sessions, bounds] = [numberList(erased.map(([session]) => session)), numberList(erased.map(([, seq]) => seq))];
  const deleted = sql`delete from journal j using unnest(${sessions}, ${bounds}) as of (session, seq)
    where j.session = of.session and j.first_seq < of.seq`;
  return { name: "journal_erase", sql: deleted };
}

function insertion(rows: readonly { session: number; entries: readonly AnyEntry[] }[]): NamedSql {
  const texts = rows.map(({ entries }) => encodeApart(entries));
  const columns = [
    numberList(rows.map(({ session }) => session)),
    numberList(rows.map(({ entries }) => entries[0]?.seq ?? 0)),
    numberList(rows.map(({ entries }) => entries.at(-1)?.at ?? 0)),
    sql`${textList(texts.map(({ body }) => body))}::json[]`,
    sql`${textList(texts.map(({ calls }) => calls))}::json[]`,
  ];
  const insert = sql`insert into journal (session, first_seq, at, body, calls) select * from unnest(${columns.join(", ")})`;
  return { name: "journal_insert", sql: insert };
}

/**
 * A journal as a transaction sees it: its stored rows with the changes of this pass. The `seq` of its entries have no gaps, so the rows that
 * hold a range of entries are found by the first `seq` of each.
 */
class PostgresJournal implements Stream<AnyEntry> {
  readonly #transaction: Transaction;
  readonly #session: Sql;
  readonly #weigh: (bytes: number) => void;
  /** The rows that this pass has read whole. */
  #rows: AnyEntry[][] = [];
  appended: AnyEntry[] = [];
  erasedBefore = 0;
  /** The remaining entries of a row that is partly erased. */
  rest: readonly AnyEntry[] = [];

  constructor(transaction: Transaction, session: number, weigh: (bytes: number) => void) {
    this.#transaction = transaction;
    this.#session = integer(session);
    this.#weigh = weigh;
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
    const stored = this.#readBefore(end, left, withToolCalls);
    const found = stored.filter((entry) => entry.seq < end && entry.seq >= this.erasedBefore);
    return [...newest, ...found.slice(0, left)];
  }

  erase(oldest: readonly AnyEntry[]): void {
    const last = oldest.at(-1)?.seq;
    if (last === undefined) return;
    this.#weigh(-weightOf(oldest));
    this.erasedBefore = last + 1;
    this.appended = this.appended.filter(({ seq }) => seq > last);
    this.rest = (this.#rowOf(last) ?? []).filter(({ seq }) => seq > last);
  }

  reset(): void {
    this.#rows = [];
    this.appended = [];
    this.erasedBefore = 0;
    this.rest = [];
  }

  /** True if this transaction appended the entry. The entry and later ones are then not read from the database. */
  #isAppended(seq: number): boolean {
    return (this.appended[0]?.seq ?? Infinity) <= seq;
  }

  /** The stored row of an entry. A rule has mostly read it. */
  #rowOf(seq: number): AnyEntry[] | undefined {
    const isIn = (row: AnyEntry[]) => (row[0]?.seq ?? Infinity) <= seq && (row.at(-1)?.seq ?? 0) >= seq;
    const found = this.#rows.find(isIn);
    if (found || this.#isAppended(seq)) return found;
    this.#readFrom(seq, 1);
    return this.#rows.find(isIn);
  }

  #readFrom(seq: number, limit: number): AnyEntry[] {
    const [from, session] = [integer(seq), this.#session];
    const first = sql`select max(first_seq) from journal where session = ${session} and first_seq <= ${from}`;
    const head = sql`select min(first_seq) from journal where session = ${session}`;
    const rows = this.#read(
      "journal_read_after",
      sql`body, calls`,
      sql`first_seq >= coalesce((${first}), 0) and first_seq < greatest(${from}, (${head})) + ${integer(limit)} order by first_seq`,
    );
    this.#rows.push(...rows);
    return rows
      .flat()
      .filter((entry) => entry.seq >= seq)
      .slice(0, limit);
  }

  /** The entries of the rows that hold the last `limit` entries before `seq`, the newest first. */
  #readBefore(seq: number, limit: number, withToolCalls: boolean): AnyEntry[] {
    const [end, session] = [integer(seq), this.#session];
    const newest = sql`select max(first_seq) from journal where session = ${session}`;
    const from = sql`least(${end}, (${newest}) + 1) - ${integer(limit)}`;
    const first = sql`select max(first_seq) from journal where session = ${session} and first_seq <= ${from}`;
    const where = sql`first_seq < ${end} and first_seq >= coalesce((${first}), 0) order by first_seq desc`;
    const columns = withToolCalls ? sql`body, calls` : sql`body`;
    return this.#read("journal_read_before", columns, where).flatMap((row) => row.toReversed());
  }

  #read(name: string, columns: Sql, where: Sql): AnyEntry[][] {
    const found = sql`select ${columns} from journal where session = ${this.#session} and ${where}`;
    return this.#transaction.read(name, found).map(entriesOf);
  }
}

function entriesOf({ body, calls }: Row): AnyEntry[] {
  return decodeEntries(body as AnyEntry[], (calls ?? undefined) as Parameters<typeof decodeEntries>[1]);
}

function weightOf(entries: readonly AnyEntry[]): number {
  return entries.reduce((sum, entry) => sum + weighEntry(entry as Entry), 0);
}
