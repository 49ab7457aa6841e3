import type { AgentCounts, Beat, BeatClaim, Store } from "#store/store.ts";
import { NO_SEQ } from "./rows.ts";
import { appendGateway, type State, tellGateway } from "./state.ts";

type BeatRow = {
  readonly agent: string;
  readonly counts: AgentCounts;
  /** Monotonic time at which the next one is due; undefined when none is planned. */
  due: number | undefined;
  /** `beatNow` came, and none has begun since. */
  isAsked: boolean;
  running: boolean;
  node: string;
  fence: number;
  leaseEnds: number;
};

type BeatMethods = Pick<Store, "planBeat" | "readBeat" | "claimBeats" | "extendBeat" | "endBeat">;

export const beatMethods = (state: State): BeatMethods => ({
  planBeat: async (agent, { delayMs, soonest }) => {
    const row = rowOf(state, agent);
    if (row.isAsked) return;
    const due = delayMs === undefined ? undefined : state.clock.monotonic() + delayMs;
    const isSooner = due !== undefined && (row.due === undefined || due < row.due);
    if (soonest && !isSooner) return;
    row.due = due;
    note(state, row);
    if (isSooner && !row.running) tellBeat(state);
  },

  readBeat: async (agent) => {
    const row = state.beats.get(agent);
    return row ? beatOf(state, row) : { agent, nextAt: undefined, running: false };
  },

  claimBeats: async ({ node, leaseMs, agents }) => {
    const time = state.clock.monotonic();
    const beats: BeatClaim[] = [];
    let nextDueInMs: number | undefined;
    for (const agent of agents) {
      const row = state.beats.get(agent);
      if (!row || row.counts.pausedAt !== undefined) continue;
      if (row.running && row.leaseEnds > time) continue;
      if (row.running || (row.due !== undefined && row.due <= time)) {
        beats.push(claim(state, row, node, time + leaseMs));
      } else if (row.due !== undefined) {
        nextDueInMs = Math.min(nextDueInMs ?? Infinity, row.due - time);
      }
    }
    return { beats, nextDueInMs };
  },

  extendBeat: async (held, leaseMs) => {
    const row = rowOfClaim(state, held);
    if (row) row.leaseEnds = state.clock.monotonic() + leaseMs;
    return row !== undefined;
  },

  endBeat: async (held, { now, delayMs, ran, streamKeep }) => {
    const row = rowOfClaim(state, held);
    if (!row) return false;
    const time = state.clock.monotonic();
    row.running = false;
    if (row.isAsked) row.due = time;
    else row.due = delayMs === undefined ? undefined : time + delayMs;
    note(state, row);
    const beat = beatOf(state, row);
    if (ran) {
      const { agent } = row;
      const nextAt = beat.nextAt ?? null;
      const entry = { seq: NO_SEQ, at: now, name: "heartbeat.ran", agentName: agent, ...ran, nextAt } as const;
      appendGateway(state, entry, streamKeep);
      tellGateway(state);
    }
    return beat;
  },
});

/** An event came that wants the agent's next beat at once. */
export const askForBeat = (state: State, agent: string): void => {
  const row = rowOf(state, agent);
  if (row.isAsked) return;
  row.isAsked = true;
  if (row.running) return;
  row.due = state.clock.monotonic();
  note(state, row);
  tellBeat(state);
};

/** Those whose node has let their lease end are due again. */
export const freeLostBeats = (state: State, time: number): void => {
  let isFreed = false;
  for (const row of state.beats.values()) {
    if (!row.running || row.leaseEnds > time) continue;
    row.running = false;
    row.due = time;
    note(state, row);
    isFreed = true;
  }
  if (isFreed) tellBeat(state);
};

const rowOf = (state: State, agent: string): BeatRow => {
  let row = state.beats.get(agent);
  if (!row) {
    const none = { due: undefined, isAsked: false, running: false, node: "", fence: 0, leaseEnds: 0 };
    row = { agent, counts: state.agents.of(agent), ...none };
    state.beats.set(agent, row);
  }
  return row;
};

const rowOfClaim = (state: State, { agent, node, fence }: BeatClaim): BeatRow | undefined => {
  const row = state.beats.get(agent);
  return row?.running && row.node === node && row.fence === fence ? row : undefined;
};

const claim = (state: State, row: BeatRow, node: string, leaseEnds: number): BeatClaim => {
  Object.assign(row, { running: true, isAsked: false, due: undefined, node, leaseEnds });
  return { agent: row.agent, node, fence: ++row.fence, through: state.events.order.last };
};

/** By the wall clock as it is now: what is due moves with nobody's clock. */
const wallTimeOf = (state: State, { due }: BeatRow): number | undefined =>
  due === undefined ? undefined : Math.round(state.clock.now() + due - state.clock.monotonic());

const beatOf = (state: State, row: BeatRow): Beat => {
  return { agent: row.agent, nextAt: wallTimeOf(state, row), running: row.running };
};

/** What `agentCounts` tells: while a beat runs, when that one was due. */
const note = (state: State, row: BeatRow): void => {
  if (!row.running) row.counts.nextBeatAt = wallTimeOf(state, row);
};

export const tellBeat = (state: State): void => {
  for (const watcher of state.watchers) watcher.beat();
};

export type Beats = Map<string, BeatRow>;
