import type { GatewayEntry, GatewayNews } from "#store/store.ts";
import { type KeptNews, lengthOf, lengthOfAll, readNews } from "../gateway-codec.ts";
import { bytesOf } from "../text.ts";
import type { Rows } from "./database.ts";
import type { Parts } from "./parts.ts";
import { type State, tellGateway } from "./state.ts";

/** So many entries that are not kept any more may still be in the file. */
const GONE_TOGETHER = 1_000;

type Row = [lastSeq: number, body: string];

/** The gateway's stream: its newest entries, in order and without a gap. Those of a batch share a row. */
export class GatewayLog {
  readonly #rows: Rows;
  readonly #read;
  readonly #delete;
  readonly #setFirst;
  /** As JSON. */
  #unwritten: string[] = [];
  /** The oldest that is kept, or the next to come; and what the newest row says of it. */
  #first: number;
  #writtenFirst: number;
  #last: number;

  constructor({ db }: Parts) {
    this.#rows = db.rows("INSERT INTO gateway_entries (last_seq, first_seq, body)", 3);
    this.#read = db.query(
      `SELECT last_seq, ${bytesOf("body")} FROM gateway_entries WHERE last_seq > ? ORDER BY last_seq LIMIT 1`,
    );
    this.#delete = db.run("DELETE FROM gateway_entries WHERE last_seq < ?");
    this.#setFirst = db.run("UPDATE gateway_entries SET first_seq = ? WHERE last_seq = ?");
    const newest = db.query("SELECT last_seq, first_seq FROM gateway_entries ORDER BY last_seq DESC LIMIT 1");
    [this.#last, this.#first] = newest.get<[number, number]>([]) ?? [0, 1];
    this.#writtenFirst = this.#first;
  }

  /** The `seq` of the newest ever. */
  get last(): number {
    return this.#last;
  }

  /** Answers the last entry's `seq`. */
  append(news: KeptNews, keep: number): number {
    this.#unwritten.push(jsonOfNews(news));
    this.#last += lengthOf(news);
    this.#first = Math.max(this.#first, this.#last - keep + 1);
    return this.#last;
  }

  read(after: number, limit: number): { entries: GatewayEntry[]; first: number; last: number } {
    this.flush();
    const entries: GatewayEntry[] = [];
    let next = Math.max(after + 1, this.#first);
    while (next <= this.#last && entries.length < limit) {
      const row = this.#read.get<Row>([next - 1]);
      if (!row) break;
      const more = entriesOf(row).filter(({ seq }) => seq >= next);
      entries.push(...more.slice(0, limit - entries.length));
      next = row[0] + 1;
    }
    return { entries, first: this.#first, last: this.#last };
  }

  /** Lets go what is from before a time, of so many rows at most. Answers how many it looked at. */
  forgetBefore(time: number, limit: number): number {
    this.flush();
    let looked = 0;
    while (looked < limit && this.#first <= this.#last) {
      const row = this.#read.get<Row>([this.#first - 1]);
      if (!row) break;
      const kept = entriesOf(row).find(({ seq, at }) => seq >= this.#first && at >= time);
      this.#first = kept?.seq ?? row[0] + 1;
      if (kept) break;
      looked++;
    }
    this.flush();
    return looked;
  }

  flush(): void {
    const hasNew = this.#unwritten.length > 0;
    if (hasNew) {
      this.#rows.add(this.#last, this.#first, `[${this.#unwritten.join(",")}]`);
      this.#rows.flush();
      this.#unwritten = [];
    }
    // The newest row tells what is kept. Each look at the oldest rows costs a commit a page, so that they go many at a time.
    if (this.#first === this.#writtenFirst || (hasNew && this.#first - this.#writtenFirst < GONE_TOGETHER)) return;
    this.#writtenFirst = this.#first;
    // The newest row stays: it says how far the stream has come.
    this.#delete([Math.min(this.#first, this.#last)]);
    if (!hasNew) this.#setFirst([this.#first, this.#last]);
  }
}

/** One that tells of a queued event comes with every event. */
const jsonOfNews = (news: KeptNews): string => {
  if (!Array.isArray(news) || typeof news[1] !== "string") return JSON.stringify(news);
  const [at, eventId, agent] = news;
  return `[${at},${JSON.stringify(eventId)},${JSON.stringify(agent)}]`;
};

const entriesOf = ([lastSeq, body]: Row): GatewayEntry[] => {
  const news = JSON.parse(body) as KeptNews[];
  return readNews(lastSeq - lengthOfAll(news) + 1, news);
};

/** Appends to the gateway's stream; watchers learn of it at the next `tellGateway`. Answers the last entry's `seq`. */
export const appendGateway = (state: State, news: KeptNews, keep: number): number => {
  state.untoldGateway.push(news);
  return state.gateway.append(news, keep);
};

export const gatewayMethods = {
  write: {
    appendGatewayEntry: (
      state: State,
      { news, now, keep }: { news: GatewayNews; now: number; keep: number },
    ): GatewayEntry => {
      const entry = { at: now, ...news };
      const seq = appendGateway(state, entry, keep);
      tellGateway(state);
      return { seq, ...entry };
    },
  },
  read: {
    readGatewayEntries: (state: State, { after, limit }: { after: number; limit: number }) =>
      state.gateway.read(after, limit),
  },
};
