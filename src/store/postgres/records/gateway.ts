import type { Stream } from "#store/rules/records.ts";
import type { GatewayEntry, GatewayNews } from "#store/store.ts";
import { decodeText, encodeText } from "../texts.ts";
import { bounded, json, number, type Row, type Sql, sql } from "./sql.ts";
import type { Part, Transaction } from "./transaction.ts";

/** A row contains consecutive entries with the same time, from `first` to `last`. */
type StoredNews = { first: number; last: number; at: number; news: GatewayNews[] };

/** Encodes or decodes the reason of an event's death: it is the only text that may contain arbitrary characters. */
function withReason(news: GatewayNews, change: (text: string) => string): GatewayNews {
  return news.name === "event.dead" ? { ...news, reason: change(news.reason) } : news;
}

function entriesOf(row: Row): GatewayEntry[] {
  return (JSON.parse(row.news as string) as GatewayNews[]).map((news, n) => {
    return { seq: number(row.first) + n, at: number(row.at), ...withReason(news, decodeText) };
  });
}

/** The stream of gateway entries. */
export class GatewayStream implements Stream<GatewayEntry>, Part {
  readonly #transaction: Transaction;
  #appended: GatewayEntry[] = [];
  #erasedBefore = 0;

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    transaction.add(this);
  }

  get first(): number {
    return Math.max((this.#place()?.first as number | undefined) ?? 1, this.#erasedBefore);
  }

  get last(): number {
    return this.#appended.at(-1)?.seq ?? (this.#place()?.last as number | undefined) ?? 0;
  }

  append(entries: readonly GatewayEntry[]): void {
    this.#appended.push(...entries);
  }

  after(seq: number, limit: number): GatewayEntry[] {
    const from = Math.max(seq, this.first - 1);
    // The first row may contain entries before `from`.
    const found = sql`select first, at, news from gateway_entries where last > ${bounded(from)} and
      first >= coalesce((select max(first) from gateway_entries where first <= ${bounded(from + 1)}), 0)
      order by first limit ${bounded(limit)}`;
    const stored = this.#transaction.read(found).flatMap(entriesOf);
    return [...stored, ...this.#appended].filter((entry) => entry.seq > from).slice(0, limit);
  }

  before(): GatewayEntry[] {
    throw new Error("The gateway's stream can only be read forwards.");
  }

  eraseBefore(seq: number): void {
    this.#erasedBefore = Math.max(this.#erasedBefore, seq);
  }

  #place(): Row | undefined {
    const lock = this.#transaction.isWriting ? "for no key update" : "";
    return this.#transaction.read(sql`select first, last from gateway_place ${lock}`)[0];
  }

  reset(): void {
    this.#appended = [];
    this.#erasedBefore = 0;
  }

  saved(): Sql[] {
    if (this.#appended.length === 0 && this.#erasedBefore === 0) return [];
    const rows: StoredNews[] = [];
    for (const { seq, at, ...news } of this.#appended) {
      const previous = rows.at(-1);
      const stored = withReason(news, encodeText);
      if (previous?.at !== at) rows.push({ first: seq, last: seq, at, news: [stored] });
      else {
        previous.last = seq;
        previous.news.push(stored);
      }
    }
    const erased = bounded(this.#erasedBefore);
    return [
      sql`update gateway_place set first = ${bounded(this.first)}, last = ${bounded(this.last)}`,
      ...(rows.length > 0
        ? [
            sql`insert into gateway_entries (first, last, at, news) select first, last, at, news
            from json_to_recordset(${json(rows)}) as of (first bigint, last bigint, at bigint, news text)`,
          ]
        : []),
      ...(this.#erasedBefore > 0
        ? [sql`delete from gateway_entries where first < ${erased} and last < ${erased}`]
        : []),
    ];
  }
}
