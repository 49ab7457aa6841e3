import type { Store, Surface, UsageCount, UsageRow } from "#store/store.ts";
import {
  COUNT_BYTES,
  COUNT_NAMES,
  type CountedOf,
  countAttempt,
  createSums,
  HOUR,
  NO_COUNTS,
  type UsageQuery,
} from "#store/usage-counts.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Rows, Value } from "./database.ts";
import type { Slices } from "./methods.ts";
import type { Parts } from "./parts.ts";
import type { State } from "./state.ts";
import type { TotalsRow } from "./totals.ts";

/** So many counters are read before others run. */
const SLICE = 1_000;

type Row = [hour: number, agent: string, model: string, surface: Surface, caller: string, ...counts: number[]];

/** In the order of `COUNT_NAMES`. */
const COLUMNS = COUNT_NAMES.map((name) => (name === "latencyMs" ? "latency_ms" : name));
const KEYS = "hour, agent, model, surface, caller";
const READ = `hour, ${freeBytesOf("agent")}, ${freeBytesOf("model")}, ${bytesOf("surface")}, ${freeBytesOf("caller")}`;

/** Counters per (hour, agent, model, surface, caller). What a batch counts is added to them with it. */
export class UsageCounters {
  readonly #db: Database;
  readonly #totals: TotalsRow;
  readonly #rows: Rows;
  readonly #has;
  readonly #forget;
  #unwritten = new Map<string, UsageCount>();
  /** The one that was counted in last: mostly the next is the same. */
  #last: UsageCount | undefined;
  /** Keys of counters of the hour that is known to be there. */
  #known = new Set<string>();
  #knownHour = 0;

  constructor({ db, totals }: Parts) {
    this.#db = db;
    this.#totals = totals;
    const added = COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(", ");
    const all = [KEYS, ...COLUMNS].join(", ");
    this.#rows = db.rows(
      `INSERT INTO usage_counters (${all})`,
      5 + COLUMNS.length,
      `ON CONFLICT DO UPDATE SET ${added}`,
    );
    this.#has = db.query(
      "SELECT 1 FROM usage_counters WHERE hour = ? AND agent = ? AND model = ? AND surface = ? AND caller = ?",
    );
    this.#forget = db.run("DELETE FROM usage_counters WHERE hour <= ?");
  }

  /** A message that started a turn. */
  message(at: number, of: CountedOf & { countedModel: string }): void {
    this.#at(at, of, of.countedModel).messages++;
  }

  /** A turn that ended. */
  turn(at: number, of: CountedOf, model: string, how: "completed" | "failed" | "cancelled"): void {
    this.#at(at, of, model)[how]++;
  }

  /** An attempt that reached a backend. */
  attempt(at: number, of: CountedOf, used: UsageRow): void {
    countAttempt(this.#at(at, of, used.model), used);
  }

  /** In the order of their hours. */
  *slices({ from, to, agent }: UsageQuery): Generator<UsageCount[], void> {
    this.flush();
    const page = this.#db.query(
      `SELECT ${READ}, ${COLUMNS.join(", ")} FROM usage_counters
      WHERE (${KEYS}) > (?, ?, ?, ?, ?) AND hour < ? AND (? IS NULL OR agent = ?) ORDER BY ${KEYS} LIMIT ${SLICE}`,
    );
    const only = agent === undefined ? null : toSql(agent);
    const until = Math.min(to, Number.MAX_SAFE_INTEGER);
    for (let after: Value[] = [Math.ceil(from) - 1, LAST, LAST, "~", LAST]; ; ) {
      const rows = page.all<Row>([...after, until, only, only]);
      yield rows.map(countOf);
      const last = rows.at(-1);
      if (!last || rows.length < SLICE) return;
      after = [last[0], toSql(last[1]), toSql(last[2]), last[3], toSql(last[4])];
    }
  }

  forgetBefore(time: number): void {
    this.flush();
    const gone = this.#forget([time - HOUR]);
    if (gone === 0) return;
    this.#totals.addBytes(-gone * COUNT_BYTES);
    this.#known.clear();
  }

  flush(): void {
    if (this.#unwritten.size === 0) return;
    for (const [key, count] of this.#unwritten) {
      const { hour, agent, model, surface, caller } = count;
      const of = [hour, toSql(agent), toSql(model), surface, toSql(caller)] as const;
      if (!this.#isKnown(key, hour)) {
        if (!this.#has.get(of)) this.#totals.addBytes(COUNT_BYTES);
        this.#known.add(key);
      }
      this.#rows.add(...of, ...COUNT_NAMES.map((name) => count[name]));
    }
    this.#unwritten.clear();
    this.#last = undefined;
    this.#rows.flush();
  }

  #isKnown(key: string, hour: number): boolean {
    if (hour !== this.#knownHour) this.#known.clear();
    this.#knownHour = hour;
    return this.#known.has(key);
  }

  #at(at: number, { agent, surface, caller }: CountedOf, model: string): UsageCount {
    const hour = at - (at % HOUR);
    const last = this.#last;
    if (last?.hour === hour && last.agent === agent && last.model === model) {
      if (last.surface === surface && last.caller === caller) return last;
    }
    const key = `${hour}\0${agent}\0${model}\0${surface}\0${caller}`;
    let count = this.#unwritten.get(key);
    if (!count) {
      count = { hour, agent, model, surface, caller, ...NO_COUNTS };
      this.#unwritten.set(key, count);
    }
    this.#last = count;
    return count;
  }
}

/** Behind every text and all bytes that a name can be. */
const LAST = Buffer.from([0xff, 0xff, 0xff, 0xff]);

const countOf = ([hour, agent, model, surface, caller, ...counts]: Row): UsageCount => {
  const count = { hour, agent, model, surface, caller, ...NO_COUNTS };
  for (const [at, name] of COUNT_NAMES.entries()) count[name] = counts[at] as number;
  return count;
};

type SumQuery = Parameters<Store["sumUsage"]>[0];

type Used = UsageRow & CountedOf & { now: number };

export const usageMethods = {
  write: {
    countUsage: (state: State, used: Used): void => state.usage.attempt(used.now, used, used),
  },
  read: {
    *readUsage(state: State, query: UsageQuery): Slices {
      const counts: UsageCount[] = [];
      for (const slice of state.usage.slices(query)) {
        counts.push(...slice);
        yield;
      }
      return counts;
    },

    *sumUsage(state: State, { by, ...query }: SumQuery): Slices {
      const sums = createSums(by);
      for (const slice of state.usage.slices(query)) {
        for (const count of slice) sums.add(count);
        yield;
      }
      return sums.all();
    },
  },
};
