import type { Surface, UsageCount, UsageRow } from "#store/store.ts";

const HOUR = 3_600_000;

/** How an attempt ended; `released` is one that will be made again. */
export type Outcome = "completed" | "failed" | "cancelled" | "released";

/** Counters per (hour, agent, model, surface, caller). Sessions come and go; these stay. */
export class UsageCounters {
  #hours = new Map<number, Map<string, UsageCount>>();

  add(at: number, of: { agent: string; surface: Surface; caller: string }, row: UsageRow, outcome: Outcome): void {
    const hour = Math.floor(at / HOUR) * HOUR;
    const counts = this.#hours.get(hour) ?? new Map<string, UsageCount>();
    this.#hours.set(hour, counts);
    const key = `${of.agent}\0${row.model}\0${of.surface}\0${of.caller}`;
    let count = counts.get(key);
    if (!count) {
      count = { hour, agent: of.agent, model: row.model, surface: of.surface, caller: of.caller, ...NOTHING };
      counts.set(key, count);
    }
    count.attempts++;
    if (outcome === "released") count.failed++;
    else count[outcome]++;
    count.latencyMs += row.latencyMs;
    count.input += row.usage.input;
    count.output += row.usage.output;
  }

  read(query: { from: number; to: number; agent?: string }): UsageCount[] {
    const found: UsageCount[] = [];
    for (const [hour, counts] of this.#hours) {
      if (hour < query.from || hour >= query.to) continue;
      for (const count of counts.values()) {
        if (query.agent === undefined || count.agent === query.agent) found.push({ ...count });
      }
    }
    return found.sort((a, b) => a.hour - b.hour);
  }

  forgetBefore(time: number): void {
    for (const hour of this.#hours.keys()) if (hour + HOUR <= time) this.#hours.delete(hour);
  }
}

const NOTHING = { attempts: 0, completed: 0, failed: 0, cancelled: 0, latencyMs: 0, input: 0, output: 0 };
