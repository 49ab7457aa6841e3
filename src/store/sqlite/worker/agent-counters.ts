import type { AgentCounts, TurnEnd, TurnError } from "#store/store.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Database, Rows } from "./database.ts";

const NONE: AgentCounts = {
  queued: 0,
  running: 0,
  waitingEvents: 0,
  nextBeatAt: undefined,
  lastEndedAt: undefined,
  failing: false,
};

/** How each agent is. What its open turns, events and beat do not tell is kept: when its last turn ended, and how. */
export class AgentCounters {
  readonly #agents = new Map<string, AgentCounts>();
  readonly #rows: Rows;
  /** Those that may have changed since they were last handed to the main side, and since they were last kept. */
  readonly #changed = new Set<string>();
  readonly #ended = new Set<string>();

  constructor(db: Database) {
    this.#rows = db.rows("INSERT OR REPLACE INTO agents", 2);
    const stored = db.query(`SELECT ${freeBytesOf("agent")}, ${bytesOf("body")} FROM agents`);
    for (const [agent, body] of stored.all<[string, string]>([])) {
      const [lastEndedAt, failing] = JSON.parse(body) as [number, boolean];
      this.#agents.set(agent, { ...NONE, lastEndedAt, failing });
    }
  }

  /** To change: the main side learns of it with the next answers. */
  of(agent: string): AgentCounts {
    this.#changed.add(agent);
    let counts = this.#agents.get(agent);
    if (!counts) {
      counts = { ...NONE };
      this.#agents.set(agent, counts);
    }
    return counts;
  }

  /** Counts that a turn ends. What has ended while it was queued says nothing of its agent's backend. */
  noteEnd(
    { agent, status }: { agent: string; status: string },
    now: number,
    how: TurnEnd["status"],
    error: TurnError | undefined,
  ): void {
    const counts = this.of(agent);
    this.#ended.add(agent);
    counts.lastEndedAt = now;
    if (status === "queued") {
      counts.queued--;
      return;
    }
    counts.running--;
    if (how === "completed") counts.failing = false;
    else if (error?.name === "turn-failed" || error?.name === "turn-timeout") counts.failing = true;
  }

  all(): [string, AgentCounts][] {
    return [...this.#agents];
  }

  /** Those that changed since the last time. */
  takeChanged(): [string, AgentCounts][] {
    if (this.#changed.size === 0) return [];
    const changed = Array.from(this.#changed, (agent): [string, AgentCounts] => [
      agent,
      this.#agents.get(agent) ?? NONE,
    ]);
    this.#changed.clear();
    return changed;
  }

  flush(): void {
    if (this.#ended.size === 0) return;
    for (const agent of this.#ended) {
      const { lastEndedAt, failing } = this.#agents.get(agent) ?? NONE;
      this.#rows.add(toSql(agent), JSON.stringify([lastEndedAt, failing]));
    }
    this.#ended.clear();
    this.#rows.flush();
  }
}
