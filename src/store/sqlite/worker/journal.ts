import type { Journal, Stream } from "#store/rules/streams.ts";
import type { Entry } from "#store/store.ts";
import { type AnyEntry, decodeEntries, encodeEntries, GATEWAY } from "#store/tables/journal-rows.ts";
import { weighEntry } from "#store/tables/layouts.ts";
import { bytesOf } from "../text.ts";
import type { Database, Query, Run } from "./database.ts";

type Row = [firstSeq: number, body: string];

const ROWS_A_SCAN = 64;

/**
 * Numbered entries of many streams: the journals of sessions by their ordinals. The entries that a batch appends to one stream
 * share a row.
 */
export class Journals {
  readonly #db: Database;
  /** The weight of all that is kept. */
  readonly #state: { bytes: number };
  readonly #insert: Run;
  readonly #after: Query;
  readonly #before: Query;
  readonly #delete: Run;
  readonly #unwritten = new Map<number, AnyEntry[]>();

  constructor(db: Database, state: { bytes: number }) {
    this.#db = db;
    this.#state = state;
    this.#insert = db.run("INSERT INTO journal (session, first_seq, body) VALUES (?, ?, ?)");
    const read = `SELECT first_seq, ${bytesOf("body")} FROM journal WHERE session = ?`;
    const from = "SELECT max(first_seq) FROM journal WHERE session = ? AND first_seq <= ?";
    this.#after = db.query(`${read} AND first_seq >= ifnull((${from}), 0) ORDER BY first_seq LIMIT ?`);
    this.#before = db.query(`${read} AND first_seq < ? ORDER BY first_seq DESC LIMIT ?`);
    this.#delete = db.run("DELETE FROM journal WHERE session = ? AND first_seq < ?");
  }

  /** The journal of a session, by its ordinal. */
  of(session: number): Journal {
    return { ...this.stream<Entry>(session), erase: (oldest) => this.#erase(session, oldest) };
  }

  stream<E extends AnyEntry>(session: number): Stream<E> {
    return {
      append: (entries) => this.#append(session, entries),
      after: (seq, limit) => this.#readAfter(session, seq, limit) as E[],
      before: (seq, limit) => this.#readBefore(session, seq, limit) as E[],
    };
  }

  /** Deletes the rows of which all entries are before `seq`. */
  dropRows(session: number, seq: number): void {
    this.flush();
    this.#db.begin();
    const [row] = this.#after.all<Row>([session, session, seq, 1]);
    this.#delete(session, row?.[0] ?? seq);
  }

  flush(): void {
    if (this.#unwritten.size === 0) return;
    this.#db.begin();
    for (const [session, entries] of this.#unwritten) {
      this.#insert(session, (entries[0] as AnyEntry).seq, encodeEntries(entries));
    }
    this.#unwritten.clear();
  }

  #append(session: number, entries: readonly AnyEntry[]): void {
    const unwritten = this.#unwritten.get(session) ?? [];
    this.#unwritten.set(session, unwritten);
    for (const entry of entries) {
      unwritten.push(entry);
      if (session !== GATEWAY) this.#state.bytes += weighEntry(entry as Entry);
    }
  }

  #readAfter(session: number, seq: number, limit: number): AnyEntry[] {
    const unwritten = this.#unwritten.get(session) ?? [];
    const written = (unwritten[0]?.seq ?? Infinity) - 1;
    // A turn that begins reads the message that was appended a moment ago.
    if (seq >= written) return unwritten.slice(seq - written, seq - written + limit);
    const found: AnyEntry[] = [];
    for (let more = 0; found.length < limit; more = 1) {
      const from = (found.at(-1)?.seq ?? seq) + 1;
      // Only the first row can end before `from`.
      const count = Math.min(limit - found.length + more, ROWS_A_SCAN);
      const rows = this.#after.all<Row>([session, session, from, count]);
      for (const [, body] of rows) {
        for (const entry of decode(body)) if (entry.seq >= from && found.length < limit) found.push(entry);
      }
      if (rows.length < count) break;
    }
    return found.concat(unwritten.slice(0, limit - found.length));
  }

  #readBefore(session: number, seq: number, limit: number): AnyEntry[] {
    this.flush();
    const found: AnyEntry[] = [];
    for (let end = Math.min(seq, Number.MAX_SAFE_INTEGER); ; ) {
      const count = Math.min(limit - found.length, ROWS_A_SCAN);
      const rows = this.#before.all<Row>([session, end, count]);
      for (const [firstSeq, body] of rows) {
        for (const entry of decode(body).reverse()) {
          if (entry.seq < end && found.length < limit) found.push(entry);
        }
        end = firstSeq;
      }
      if (rows.length < count || found.length === limit) return found;
    }
  }

  #erase(session: number, oldest: readonly Entry[]): void {
    const last = oldest.at(-1)?.seq;
    if (last === undefined) return;
    for (const entry of oldest) this.#state.bytes -= weighEntry(entry);
    this.flush();
    this.#db.begin();
    // The last row may have entries that stay.
    const [row] = this.#after.all<Row>([session, session, last, 1]);
    const left = row ? decode(row[1]).filter(({ seq }) => seq > last) : [];
    this.#delete(session, last + 1);
    if (left.length > 0) this.#insert(session, last + 1, encodeEntries(left));
  }
}

function decode(body: string): AnyEntry[] {
  return decodeEntries(JSON.parse(body));
}
