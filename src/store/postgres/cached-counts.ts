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

/** The counts that this process knows without a query: the result of the last poll, updated by its own transactions since then. */
export class CachedCounts {
  #counts = new Map<string, number>();
  readonly #beats = new Map<string, Beat>();
  readonly #ends = new Map<string, EndRow>();

  committed({ deltas, beats, ends }: CommittedChanges): void {
    for (const [name, change] of deltas) this.#counts.set(name, this.of(name) + change);
    for (const beat of beats) this.#updateBeat(beat);
    for (const end of ends) this.#ends.set(end.agent, end);
  }

  /**
   * Replaces the counts. Returns the time until the first beat that is newly due, because its time has changed, its turn has ended or it is no
   * longer running or paused. Undefined if there is none. This gateway has to check for such a beat: the gateway that planned it may have stopped by then.
   */
  replace({ counts, beats, ends, time }: CountsSnapshot): number | undefined {
    this.#counts = new Map(counts);
    for (const end of ends) this.#ends.set(end.agent, end);
    let firstIn: number | undefined;
    for (const beat of beats) {
      const before = this.#beats.get(beat.agent);
      const { run, dueAt, pausedAt, noted } = beat;
      if (!this.#updateBeat(beat) || run?.openTurnId !== undefined) continue;
      const wasBlocked = before?.isRunning === true || before?.pausedAt !== undefined;
      const isSame = before?.noted === noted && !wasBlocked;
      if (!run && (isSame || dueAt === undefined || pausedAt !== undefined)) continue;
      firstIn = Math.min(firstIn ?? Infinity, run || dueAt === undefined ? 0 : dueAt - time);
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
      compactions: this.of(`compactions ${agent}`),
      waitingEvents: this.of(`waiting ${agent}`),
      nextBeatAt: nextAt,
      pausedAt,
      lastEndedAt,
      failing,
    };
  };

  /** True if a beat is running whose agent is not paused. */
  isBeating(): boolean {
    for (const { isRunning, pausedAt } of this.#beats.values()) if (isRunning && pausedAt === undefined) return true;
    return false;
  }

  /** True if turns or compactions are queued. */
  hasQueued(): boolean {
    for (const [name, count] of this.#counts) {
      if (count > 0 && (name === "queued" || name.startsWith("compactions "))) return true;
    }
    return false;
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Returns false if this version of the beat has been processed already. */
  #updateBeat({ agent, version, noted, nextAt, pausedAt, run }: BeatRow): boolean {
    const before = this.#beats.get(agent);
    if (before && version <= before.version) return false;
    // If the due time is unchanged, `nextAt` is kept: the difference between the clocks varies, and callers must not see the time move.
    const at = before?.noted === noted ? before?.nextAt : nextAt;
    this.#beats.set(agent, { version, noted, nextAt: at, pausedAt, isRunning: run !== undefined });
    return true;
  }
}
