import type { Store, UsageCount, UsageRow } from "#store/store.ts";
import {
  COUNT_BYTES,
  type CountedOf,
  countAttempt,
  createSums,
  HOUR,
  NO_COUNTS,
  type UsageQuery,
} from "#store/usage-counts.ts";

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

  read(query: UsageQuery): UsageCount[] {
    const found: UsageCount[] = [];
    for (const count of this.#in(query)) found.push({ ...count });
    return found.sort((a, b) => a.hour - b.hour);
  }

  sum({ by, ...query }: Parameters<Store["sumUsage"]>[0]): Awaited<ReturnType<Store["sumUsage"]>> {
    const sums = createSums(by);
    for (const count of this.#in(query)) sums.add(count);
    return sums.all();
  }

  forgetBefore(time: number): void {
    for (const [hour, counts] of this.#hours) {
      if (hour + HOUR > time) continue;
      this.#hours.delete(hour);
      this.#size -= counts.size;
      this.#last = undefined;
    }
  }

  *#in({ from, to, agent }: UsageQuery): Iterable<UsageCount> {
    for (const [hour, counts] of this.#hours) {
      if (hour < from || hour >= to) continue;
      for (const count of counts.values()) if (agent === undefined || count.agent === agent) yield count;
    }
  }

  #at(at: number, { agent, surface, caller }: CountedOf, model: string): UsageCount {
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
      count = { hour, agent, model, surface, caller, ...NO_COUNTS };
      counts.set(key, count);
      this.#size++;
    }
    this.#last = count;
    return count;
  }
}
