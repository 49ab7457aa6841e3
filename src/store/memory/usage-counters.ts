import type { Store, Surface, UsageCount, UsageCounts, UsageRow } from "#store/store.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** What a counter weighs. Callers name models, so that there may be many. */
const COUNT_BYTES = 400;

type Of = { agent: string; surface: Surface; caller: string };
type Query = { from: number; to: number; agent?: string };

/** Counters per (hour, agent, model, surface, caller). Sessions come and go; these stay. */
export class UsageCounters {
  #hours = new Map<number, Map<string, UsageCount>>();
  #size = 0;
  /** The one that was counted in last: mostly the next is the same. */
  #last: UsageCount | undefined;

  get bytes(): number {
    return this.#size * COUNT_BYTES;
  }

  /** A message that started a turn. */
  message(at: number, of: Of & { countedModel: string }): void {
    this.#at(at, of, of.countedModel).messages++;
  }

  /** A turn that ended. */
  turn(at: number, of: Of, model: string, how: "completed" | "failed" | "cancelled"): void {
    this.#at(at, of, model)[how]++;
  }

  /** An attempt that reached a backend. */
  attempt(at: number, of: Of, { model, usage, latencyMs }: UsageRow): void {
    const count = this.#at(at, of, model);
    count.attempts++;
    count.latencyMs += latencyMs;
    count.input += usage.input;
    count.output += usage.output;
  }

  read(query: Query): UsageCount[] {
    const found: UsageCount[] = [];
    for (const count of this.#in(query)) found.push({ ...count });
    return found.sort((a, b) => a.hour - b.hour);
  }

  sum({ by, ...query }: Parameters<Store["sumUsage"]>[0]): Awaited<ReturnType<Store["sumUsage"]>> {
    const sums = new Map<string | number, UsageCounts>();
    for (const count of this.#in(query)) {
      const key = by === "day" ? Math.floor(count.hour / DAY) * DAY : count[by];
      let sum = sums.get(key);
      if (!sum) {
        sum = { ...NOTHING };
        sums.set(key, sum);
      }
      for (const name of NAMES) sum[name] += count[name];
    }
    return [...sums].map(([key, counts]) => ({ key, counts }));
  }

  forgetBefore(time: number): void {
    for (const [hour, counts] of this.#hours) {
      if (hour + HOUR > time) continue;
      this.#hours.delete(hour);
      this.#size -= counts.size;
      this.#last = undefined;
    }
  }

  *#in({ from, to, agent }: Query): Iterable<UsageCount> {
    for (const [hour, counts] of this.#hours) {
      if (hour < from || hour >= to) continue;
      for (const count of counts.values()) if (agent === undefined || count.agent === agent) yield count;
    }
  }

  #at(at: number, { agent, surface, caller }: Of, model: string): UsageCount {
    const hour = at - (at % HOUR);
    const last = this.#last;
    if (
      last?.hour === hour &&
      last.agent === agent &&
      last.model === model &&
      last.surface === surface &&
      last.caller === caller
    ) {
      return last;
    }
    let counts = this.#hours.get(hour);
    if (!counts) {
      counts = new Map();
      this.#hours.set(hour, counts);
    }
    const key = `${agent}\0${model}\0${surface}\0${caller}`;
    let count = counts.get(key);
    if (!count) {
      count = { hour, agent, model, surface, caller, ...NOTHING };
      counts.set(key, count);
      this.#size++;
    }
    this.#last = count;
    return count;
  }
}

const NOTHING: UsageCounts = {
  messages: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  attempts: 0,
  latencyMs: 0,
  input: 0,
  output: 0,
};
const NAMES = Object.keys(NOTHING) as (keyof UsageCounts)[];
