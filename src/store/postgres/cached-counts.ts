import { countsOf, hasOpenWork } from "#store/rules/agents.ts";
import type { AgentCount, AgentRecord, BeatRecord, BeatRun } from "#store/rules/records.ts";
import type { AgentCounts, Store } from "#store/store.ts";
import { newState, type State, totalsOf } from "#store/tables/table-records.ts";

/** The state and the records of agents that a transaction read or changed. */
type Known = {
  state: State;
  counts: readonly AgentCount[];
  agents: readonly AgentRecord[];
  beats: readonly BeatRecord[];
};
/** A record, and the version of the state that came with it. */
type Versioned<R> = { version: number; readonly record: R };

/** The counts that this process knows without a query: the result of the last poll, updated by its own transactions since then. */
export class CachedCounts {
  #state = newState();
  readonly #counts = new Map<string, Versioned<AgentCount>>();
  readonly #agents = new Map<string, Versioned<AgentRecord>>();
  readonly #beats = new Map<string, Versioned<BeatRecord>>();

  /** Stores the records that are newer than the known ones. */
  learn({ state, counts, agents, beats }: Known): void {
    const { version } = state;
    if (version >= this.#state.version) this.#state = state;
    for (const record of counts) update(this.#counts, version, record);
    for (const record of agents) update(this.#agents, version, record);
    for (const record of beats) update(this.#beats, version, record);
  }

  /** Lets the next snapshot replace everything, even with an older version: a server that takes over may have lost commits. */
  expectAnyVersion(): void {
    this.#state = { ...this.#state, version: 0 };
    for (const map of [this.#counts, this.#agents, this.#beats]) for (const known of map.values()) known.version = 0;
  }

  /**
   * Learns the records of all agents. Returns the time until the first beat that is newly due, because its time has changed, its turn has ended or it is
   * no longer running or paused. Undefined if there is none. This gateway has to check for such a beat: the gateway that planned it may have stopped by
   * then.
   */
  replace(known: Known, time: number): number | undefined {
    const before = new Map(known.beats.map(({ agent }) => [agent, this.#viewOf(agent)]));
    this.learn(known);
    let firstIn: number | undefined;
    for (const [agent, was] of before) {
      const { beat, isPaused } = this.#viewOf(agent);
      if (!beat || beat.run?.openTurnId !== undefined) continue;
      const isSameTime = was.beat?.dueAt === beat.dueAt;
      if (isSameTime && was.isPaused === isPaused && isSameRun(was.beat?.run, beat.run)) continue;
      const wasBlocked = was.beat?.run !== undefined || was.isPaused;
      if (!beat.run && ((isSameTime && !wasBlocked) || beat.dueAt === undefined || isPaused)) continue;
      firstIn = Math.min(firstIn ?? Infinity, beat.run || beat.dueAt === undefined ? 0 : beat.dueAt - time);
    }
    return firstIn;
  }

  readonly stats: Store["stats"] = () => totalsOf(this.#state);

  readonly agentCounts = (agent: string): AgentCounts =>
    countsOf(this.#counts.get(agent)?.record, this.#agents.get(agent)?.record, this.#beats.get(agent)?.record);

  /** True if turns or compactions are queued. */
  hasQueued(): boolean {
    const { queued, compactions } = this.#state.open;
    return queued + compactions > 0;
  }

  openAgents(): string[] {
    return [...this.#counts.values()].flatMap(({ record }) => (hasOpenWork(record) ? record.agent : []));
  }

  /** True if a beat is running whose agent is not paused. */
  isBeating(): boolean {
    for (const { record } of this.#beats.values()) {
      if (record.run && this.#agents.get(record.agent)?.record.pausedAt === undefined) return true;
    }
    return false;
  }

  #viewOf(agent: string) {
    const isPaused = this.#agents.get(agent)?.record.pausedAt !== undefined;
    return { beat: this.#beats.get(agent)?.record, isPaused };
  }
}

function isSameRun(one: BeatRun | undefined, other: BeatRun | undefined): boolean {
  return one?.began === other?.began && one?.openTurnId === other?.openTurnId && one?.after === other?.after;
}

function update<R extends { readonly agent: string }>(
  known: Map<string, Versioned<R>>,
  version: number,
  record: R,
): void {
  const before = known.get(record.agent);
  if (!before || version >= before.version) known.set(record.agent, { version, record });
}
