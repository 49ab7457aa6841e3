import type { AgentCounts, TurnEnd, TurnError } from "#store/store.ts";
import type { TurnRow } from "./rows.ts";

/** How each agent is. A turn holds on to the counters of its agent, so that counting costs no look-up. */
export class AgentCounters {
  #agents = new Map<string, AgentCounts>();

  of(agent: string): AgentCounts {
    let counts = this.#agents.get(agent);
    if (!counts) {
      counts = { ...NONE };
      this.#agents.set(agent, counts);
    }
    return counts;
  }

  /** Agents with turns or events that have not ended. */
  open(): string[] {
    return [...this.#agents].flatMap(([agent, counts]) => (isOpen(counts) ? agent : []));
  }

  read(agent: string): Readonly<AgentCounts> {
    return this.#agents.get(agent) ?? NONE;
  }
}

const NONE: AgentCounts = {
  queued: 0,
  running: 0,
  waitingEvents: 0,
  nextBeatAt: undefined,
  lastEndedAt: undefined,
  failing: false,
  pausedAt: undefined,
};

const isOpen = ({ queued, running, waitingEvents }: AgentCounts): boolean => queued + running + waitingEvents > 0;

/** Counts that a turn ends, as long as its row still says what it was. */
export const noteEnd = (row: TurnRow, now: number, status: TurnEnd["status"], error: TurnError | undefined): void => {
  const { counts } = row;
  counts.lastEndedAt = now;
  if (row.status === "queued") {
    counts.queued--;
    return;
  }
  counts.running--;
  if (status === "completed") counts.failing = false;
  else if (error?.name === "turn-failed" || error?.name === "turn-timeout") counts.failing = true;
};
