import type { AgentRecord, CountChange, Records } from "#store/rules/records.ts";

type Counts = Required<CountChange>;

const NONE: Counts = { queued: 0, running: 0, waitingEvents: 0, openEvents: 0, deadEvents: 0 };

const isOpen = ({ queued, running, waitingEvents }: Counts): boolean => queued + running + waitingEvents > 0;

export class Agents {
  readonly #records = new Map<string, AgentRecord>();
  readonly #counts = new Map<string, Counts>();
  /** The counts of all agents together. */
  readonly totals: Readonly<Counts> = { ...NONE };

  /** The agents that something is known of. */
  names(): string[] {
    return [...new Set([...this.#records.keys(), ...this.#counts.keys()])];
  }

  allCounts(agent: string): Readonly<Counts> {
    return this.#counts.get(agent) ?? NONE;
  }

  readonly records: Records["agents"] = {
    find: (agent) => this.#records.get(agent),
    put: (record) => {
      this.#records.set(record.agent, record);
    },
    count: (agent, change) => {
      const counts = this.#counts.get(agent) ?? { ...NONE };
      this.#counts.set(agent, counts);
      for (const name of Object.keys(change) as (keyof Counts)[]) {
        counts[name] += change[name] ?? 0;
        (this.totals as Counts)[name] += change[name] ?? 0;
      }
    },
    counts: (agent) => {
      const { queued, running, waitingEvents } = this.#counts.get(agent) ?? NONE;
      return { queued, running, waitingEvents };
    },
    open: () => [...this.#counts].flatMap(([agent, counts]) => (isOpen(counts) ? agent : [])),
  };
}
