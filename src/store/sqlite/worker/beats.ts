import type { Beat, BeatClaim } from "#store/store.ts";
import { bytesOf } from "../text.ts";
import type { Database } from "./database.ts";
import { appendGateway } from "./gateway-log.ts";
import type { Parts } from "./parts.ts";
import { type State, tellGateway, tellOf } from "./state.ts";

type BeatRow = {
  readonly agent: string;
  /** Monotonic time at which the next one is due; undefined when none is planned. */
  due: number | undefined;
  /** When that is by the wall clock; while one runs, when that one was due. */
  toldAt: number | undefined;
  /** `beatNow` came, and none has begun since. */
  isAsked: boolean;
  running: boolean;
  node: string;
  fence: number;
  leaseEnds: number;
};
type StoredRow = [
  agent: string,
  due: number | null,
  toldAt: number | null,
  asked: number,
  running: number,
  node: string,
  fence: number,
  leaseEnds: number,
];

const READ = `${bytesOf("agent")}, due, told_at, asked, running, ${bytesOf("node")}, fence, lease_ends`;

/** The agents' beats: few, so that all are held, and written as they change. */
export class Beats {
  readonly #offset: number;
  readonly #rows = new Map<string, BeatRow>();
  readonly #dirty = new Set<BeatRow>();
  readonly #write: ReturnType<Database["run"]>;

  constructor({ db, agents, moment }: Parts) {
    this.#offset = moment.offset;
    this.#write = db.run("INSERT OR REPLACE INTO beats VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    const stored = db.query(`SELECT ${READ} FROM beats`);
    for (const [agent, due, toldAt, asked, running, node, fence, leaseEnds] of stored.all<StoredRow>([])) {
      agents.of(agent).nextBeatAt = toldAt ?? undefined;
      this.#rows.set(agent, {
        agent,
        due: due === null ? undefined : due - this.#offset,
        toldAt: toldAt ?? undefined,
        isAsked: asked === 1,
        running: running === 1,
        node,
        fence,
        leaseEnds: leaseEnds - this.#offset,
      });
    }
  }

  get(agent: string): BeatRow | undefined {
    return this.#rows.get(agent);
  }

  list(): BeatRow[] {
    return [...this.#rows.values()];
  }

  /** One that is to change. */
  of(agent: string): BeatRow {
    let row = this.#rows.get(agent);
    if (!row) {
      const none = { isAsked: false, running: false, node: "", fence: 0, leaseEnds: 0 };
      row = { agent, due: undefined, toldAt: undefined, ...none };
      this.#rows.set(agent, row);
    }
    this.#dirty.add(row);
    return row;
  }

  flush(): void {
    for (const { agent, due, toldAt = null, isAsked, running, node, fence, leaseEnds } of this.#dirty) {
      const kept = due === undefined ? null : due + this.#offset;
      this.#write([agent, kept, toldAt, isAsked ? 1 : 0, running ? 1 : 0, node, fence, leaseEnds + this.#offset]);
    }
    this.#dirty.clear();
  }
}

/** The wall clock and the monotonic one. */
type Clocks = { now: number; time: number };

/** By the wall clock as it is now: what is due moves with nobody's clock. */
const wallTimeOf = ({ due }: BeatRow, { now, time }: Clocks): number | undefined =>
  due === undefined ? undefined : Math.round(now + due - time);

/** What `agentCounts` tells: while a beat runs, when that one was due. */
const note = (state: State, row: BeatRow, clocks: Clocks): void => {
  if (row.running) return;
  row.toldAt = wallTimeOf(row, clocks);
  state.agents.of(row.agent).nextBeatAt = row.toldAt;
};

/** An event came that wants the agent's next beat at once. */
export const askForBeat = (state: State, agent: string, clocks: Clocks): void => {
  if (state.beats.get(agent)?.isAsked) return;
  const row = state.beats.of(agent);
  row.isAsked = true;
  if (row.running) return;
  row.due = clocks.time;
  note(state, row, clocks);
  tellOf(state, "beat");
};

/** Those whose node has let their lease end are due again. */
export const freeLostBeats = (state: State, clocks: Clocks): void => {
  for (const { agent, running, leaseEnds } of state.beats.list()) {
    if (running && leaseEnds <= clocks.time) free(state, agent, clocks);
  }
};

/** At the opening of the file: nobody holds what a predecessor held; what this process holds (`isOurs`) it goes on with. Answers how many were freed. */
export const takeBeatsBack = (state: State, clocks: Clocks, isOurs: boolean): number => {
  let freed = 0;
  for (const row of state.beats.list()) {
    if (row.running && !isOurs) {
      free(state, row.agent, clocks);
      freed++;
    } else note(state, state.beats.of(row.agent), clocks);
  }
  return freed;
};

const free = (state: State, agent: string, clocks: Clocks): void => {
  const row = state.beats.of(agent);
  row.running = false;
  row.due = clocks.time;
  note(state, row, clocks);
  tellOf(state, "beat");
};

const rowOfClaim = (state: State, { agent, node, fence }: BeatClaim): BeatRow | undefined => {
  const row = state.beats.get(agent);
  return row?.running && row.node === node && row.fence === fence ? state.beats.of(agent) : undefined;
};

const claim = (state: State, agent: string, node: string, leaseEnds: number): BeatClaim => {
  const row = state.beats.of(agent);
  Object.assign(row, { running: true, isAsked: false, due: undefined, node, leaseEnds, fence: row.fence + 1 });
  return { agent, node, fence: row.fence, through: state.events.last };
};

const beatOf = (row: BeatRow, clocks: Clocks): Beat => {
  return { agent: row.agent, nextAt: wallTimeOf(row, clocks), running: row.running };
};

type Plan = { agent: string; now: number; delayMs: number | undefined; soonest: boolean };
type Claiming = { node: string; leaseMs: number; agents: readonly string[] };
type BeatEnd = {
  claim: BeatClaim;
  now: number;
  delayMs: number | undefined;
  ran: { events: number; turnIds: readonly string[] } | undefined;
  streamKeep: number;
};

export const beatMethods = {
  write: {
    planBeat: (state: State, { agent, now, delayMs, soonest }: Plan, time: number): void => {
      const known = state.beats.get(agent);
      if (known?.isAsked) return;
      const due = delayMs === undefined ? undefined : time + delayMs;
      const isSooner = due !== undefined && (known?.due === undefined || due < known.due);
      if (soonest && !isSooner) return;
      const row = state.beats.of(agent);
      row.due = due;
      note(state, row, { now, time });
      if (isSooner && !row.running) tellOf(state, "beat");
    },

    claimBeats: (state: State, { node, leaseMs, agents }: Claiming, time: number) => {
      const beats: BeatClaim[] = [];
      let nextDueInMs: number | undefined;
      for (const agent of agents) {
        const row = state.beats.get(agent);
        if (!row || state.agents.isPaused(agent) || (row.running && row.leaseEnds > time)) continue;
        if (row.running || (row.due !== undefined && row.due <= time)) {
          beats.push(claim(state, agent, node, time + leaseMs));
        } else if (row.due !== undefined) {
          nextDueInMs = Math.min(nextDueInMs ?? Infinity, row.due - time);
        }
      }
      return { beats, nextDueInMs };
    },

    extendBeat: (state: State, { claim, leaseMs }: { claim: BeatClaim; leaseMs: number }, time: number): boolean => {
      const row = rowOfClaim(state, claim);
      if (row) row.leaseEnds = time + leaseMs;
      return row !== undefined;
    },

    endBeat: (state: State, { claim, now, delayMs, ran, streamKeep }: BeatEnd, time: number): Beat | false => {
      const row = rowOfClaim(state, claim);
      if (!row) return false;
      row.running = false;
      if (row.isAsked) row.due = time;
      else row.due = delayMs === undefined ? undefined : time + delayMs;
      note(state, row, { now, time });
      const beat = beatOf(row, { now, time });
      if (ran) {
        const nextAt = beat.nextAt ?? null;
        appendGateway(state, { at: now, name: "heartbeat.ran", agentName: row.agent, ...ran, nextAt }, streamKeep);
        tellGateway(state);
      }
      return beat;
    },
  },
  read: {
    readBeat: (state: State, { agent, now }: { agent: string; now: number }, time: number): Beat => {
      const row = state.beats.get(agent);
      return row ? beatOf(row, { now, time }) : { agent, nextAt: undefined, running: false };
    },
  },
};
