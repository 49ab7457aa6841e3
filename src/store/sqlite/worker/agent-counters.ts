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
  pausedAt: undefined,
};
type Row = [agent: string, body: string, pausedAt: number | null];

/** How each agent is. What its open turns, events and beat do not tell is kept: when its last turn ended, and how; and since when it is paused. */
export class AgentCounters {
  readonly #agents = new Map<string, AgentCounts>();
  readonly #rows: Rows;
  /** Those that may have changed since they were last handed to the main side, and since they were last kept. */
  readonly #changed = new Set<string>();
  readonly #unkept = new Set<string>();

  constructor(db: Database) {
    this.#rows = db.rows("INSERT OR REPLACE INTO agents (agent, body, paused_at)", 3);
    const stored = db.query(`SELECT ${freeBytesOf("agent")}, ${bytesOf("body")}, paused_at FROM agents`);
    for (const [agent, body, pausedAt] of stored.all<Row>([])) {
      const [lastEndedAt, failing] = JSON.parse(body) as [number | null, boolean];
      const of = { lastEndedAt: lastEndedAt ?? undefined, failing, pausedAt: pausedAt ?? undefined };
      this.#agents.set(agent, { ...NONE, ...of });
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

  pausedAt(agent: string): number | undefined {
    return this.#agents.get(agent)?.pausedAt;
  }

  isPaused(agent: string): boolean {
    return this.pausedAt(agent) !== undefined;
  }

  setPaused(agent: string, pausedAt: number | undefined): void {
    this.of(agent).pausedAt = pausedAt;
    this.#unkept.add(agent);
  }

  /** Counts that a turn ends. What has ended while it was queued says nothing of its agent's backend. */
  noteEnd(
    { agent, status }: { agent: string; status: string },
    now: number,
    how: TurnEnd["status"],
    error: TurnError | undefined,
  ): void {
    const counts = this.of(agent);
    this.#unkept.add(agent);
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
    if (this.#unkept.size === 0) return;
    for (const agent of this.#unkept) {
      const { lastEndedAt, failing, pausedAt } = this.#agents.get(agent) ?? NONE;
      this.#rows.add(toSql(agent), JSON.stringify([lastEndedAt, failing]), pausedAt ?? null);
    }
    this.#unkept.clear();
    this.#rows.flush();
  }
}
