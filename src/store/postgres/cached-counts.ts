import type { AgentCounts, Store } from "#store/store.ts";
import type { BeatRow, EndRow } from "./records/agents.ts";
import { type CommittedChanges, totalsOf } from "./records/records.ts";

type Beat = Pick<BeatRow, "version" | "noted" | "nextAt" | "pausedAt"> & { isRunning: boolean };

/** The counts of all gateways together, at one moment. */
type CountsSnapshot = {
  counts: ReadonlyMap<string, number>;
  beats: readonly BeatRow[];
  ends: readonly EndRow[];
  time: number;
};

/** The counts that this process has without a query: those of the last poll of the database, with its own transactions since. */
export class CachedCounts {
  #counts = new Map<string, number>();
  readonly #beats = new Map<string, Beat>();
  readonly #ends = new Map<string, EndRow>();

  committed({ deltas, beats, ends }: CommittedChanges): void {
    for (const [name, change] of deltas) this.#counts.set(name, this.of(name) + change);
    for (const beat of beats) this.#note(beat);
    for (const end of ends) this.#ends.set(end.agent, end);
  }

  /**
   * Replaces the counts. Returns the time until the first beat whose due time has changed: the gateway that planned it, or ran the one before,
   * may have stopped by then.
   */
  replace({ counts, beats, ends, time }: CountsSnapshot): number | undefined {
    this.#counts = new Map(counts);
    for (const end of ends) this.#ends.set(end.agent, end);
    let firstIn: number | undefined;
    for (const beat of beats) {
      const known = this.#beats.get(beat.agent);
      if (!this.#note(beat) || beat.lease || beat.pausedAt !== undefined || beat.dueAt === undefined) continue;
      const isFree = known?.isRunning === true || known?.pausedAt !== undefined;
      if (known?.noted === beat.noted && !isFree) continue;
      firstIn = Math.min(firstIn ?? Infinity, beat.dueAt - time);
    }
    return firstIn;
  }

  readonly stats: Store["stats"] = () => totalsOf((name) => this.of(name));

  readonly agentCounts = (agent: string): AgentCounts => {
    const { nextAt, pausedAt } = this.#beats.get(agent) ?? {};
    const { lastEndedAt, failing = false } = this.#ends.get(agent) ?? {};
    return {
      queued: this.of(`queued ${agent}`),
      running: this.of(`running ${agent}`),
      waitingEvents: this.of(`waiting ${agent}`),
      nextBeatAt: nextAt,
      pausedAt,
      lastEndedAt,
      failing,
    };
  };

  /** True if a gateway is giving an agent its events. */
  isBeating(): boolean {
    for (const { isRunning, pausedAt } of this.#beats.values()) if (isRunning && pausedAt === undefined) return true;
    return false;
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Returns false if the beat is known already. */
  #note({ agent, version, noted, nextAt, pausedAt, lease }: BeatRow): boolean {
    const known = this.#beats.get(agent);
    if (known && version <= known.version) return false;
    // A beat that is planned for the same time keeps its time by the wall clock: it must not move with the clock of a gateway.
    const at = known?.noted === noted ? known?.nextAt : nextAt;
    this.#beats.set(agent, { version, noted, nextAt: at, pausedAt, isRunning: lease !== undefined });
    return true;
  }
}
