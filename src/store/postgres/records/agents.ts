import type { AgentRecord, BeatRecord, BeatRun, CountChange, Records } from "#store/rules/records.ts";
import { number, optional, type Row } from "./sql.ts";
import { layout, type Moment, Table } from "./table.ts";
import type { Transaction } from "./transaction.ts";

/** A beat with the other columns of its row. Each change increases `version`. */
export type BeatRow = BeatRecord & {
  readonly version: number;
  readonly pausedAt: number | undefined;
  /** The due time of the planned beat, or the one of the running beat. */
  readonly noted: number | undefined;
};

/** The time of an agent's last turn end, and whether its turns fail. */
export type EndRow = Pick<AgentRecord, "agent" | "lastEndedAt" | "failing">;

const BEATS = layout<BeatRow>({
  table: "beats",
  key: ["agent"],
  keyOf: ({ agent }) => agent,
  columns: [
    ["agent", "text", ({ agent }) => agent],
    ["version", "bigint", ({ version }) => version],
    ["due", "double precision", ({ dueAt }) => dueAt],
    ["noted", "double precision", ({ noted }) => noted],
    ["is_asked", "boolean", ({ isAsked }) => isAsked],
    ["run", "json", ({ run }) => run],
    ["paused_at", "bigint", ({ pausedAt }) => pausedAt],
  ],
  read: (row, moment) => readBeat(row, moment),
});

/** Reads a row. `nextAt` is the due time by the wall clock, converted with the current difference to the database's clock. */
export function readBeat(row: Row, moment: Moment): BeatRow {
  const noted = optional(row.noted);
  return {
    agent: row.agent as string,
    dueAt: optional(row.due),
    noted,
    nextAt: noted === undefined ? undefined : Math.round(moment.now + noted - moment.time),
    isAsked: row.is_asked as boolean,
    run: row.run === null ? undefined : (row.run as BeatRun),
    pausedAt: optional(row.paused_at),
    version: number(row.version),
  };
}

/** Combines the rows of an agent: gateways of the previous version write several, one for each lane. */
export const ENDS = `(select agent, max(ended_at) as ended_at,
  (array_agg(failing order by failing_at desc nulls last) filter (where failing is not null))[1] as failing
  from agent_ends group by agent) as t`;

const AGENT_ENDS = layout<EndRow>({
  table: "agent_ends",
  key: ["lane", "agent"],
  keyOf: ({ agent }) => agent,
  keySql: "t.agent",
  from: ENDS,
  columns: [
    ["lane", "text", () => "all"],
    ["agent", "text", ({ agent }) => agent],
    ["ended_at", "bigint", ({ lastEndedAt }) => lastEndedAt],
    ["failing", "boolean", ({ failing }) => failing],
    ["failing_at", "double precision", (_, { time }) => time],
  ],
  read: (row) => readEnd(row),
});

export function readEnd(row: Row): EndRow {
  return {
    agent: row.agent as string,
    lastEndedAt: optional(row.ended_at),
    failing: row.failing === true,
  };
}

/** The names of the counters that a change of an agent's counts affects. */
const COUNTERS: Readonly<Record<keyof CountChange, (agent: string) => readonly string[]>> = {
  queued: (agent) => ["queued", `queued ${agent}`],
  running: (agent) => ["running", `running ${agent}`],
  compactions: (agent) => [`compactions ${agent}`],
  waitingEvents: (agent) => [`waiting ${agent}`],
  openEvents: () => ["events"],
  deadEvents: () => ["dead"],
};

/** Agents and their beats. The row of a beat also stores the time at which the agent was paused. */
export class Agents {
  readonly #transaction: Transaction;
  readonly #beats: Table<BeatRow>;
  readonly #ends: Table<EndRow>;

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    this.#beats = new Table(transaction, BEATS);
    this.#ends = new Table(transaction, AGENT_ENDS);
  }

  readonly beats: Records["beats"] = {
    find: (agent) => this.#beats.find(agent),
    put: (record) => this.#putBeat(record),
  };

  readonly records: Records["agents"] = {
    find: (agent) => {
      const end = this.#ends.find(agent);
      const pausedAt = this.#beats.find(agent)?.pausedAt;
      return { agent, lastEndedAt: end?.lastEndedAt, failing: end?.failing ?? false, pausedAt };
    },
    put: ({ agent, pausedAt, lastEndedAt, failing }) => {
      const beat = this.#beats.peek(agent);
      const bare = { agent, dueAt: undefined, nextAt: undefined, isAsked: false, run: undefined };
      if (beat?.pausedAt !== pausedAt) this.#putBeat(beat ?? bare, { pausedAt });
      const end = this.#ends.peek(agent);
      if (end?.lastEndedAt !== lastEndedAt || end?.failing !== failing) this.#ends.put({ agent, lastEndedAt, failing });
    },
    count: (agent, change) => {
      for (const [name, by] of Object.entries(change) as [keyof CountChange, number][]) {
        for (const counter of COUNTERS[name](agent)) this.#transaction.count(counter, by);
      }
    },
    // No rule calls these in a transaction: `CachedCounts` has the counts.
    counts: () => ({ queued: 0, running: 0, compactions: 0, waitingEvents: 0 }),
    open: () => [],
  };

  /** The beats and turn ends that this pass has changed. `areAgentsPaused` is true if it paused or resumed an agent. */
  changes(): { beats: BeatRow[]; ends: EndRow[]; areAgentsPaused: boolean } {
    const beats = [...this.#beats.changes()];
    return {
      beats: beats.flatMap(([beat]) => beat ?? []),
      ends: [...this.#ends.changes()].flatMap(([end]) => end ?? []),
      areAgentsPaused: beats.some(([after, before]) => after?.pausedAt !== before?.pausedAt),
    };
  }

  #putBeat(record: BeatRecord, change: Partial<BeatRow> = {}): void {
    const before = this.#beats.peek(record.agent);
    const noted = record.run ? before?.noted : record.dueAt;
    const version = (before?.version ?? 0) + 1;
    this.#beats.put({ ...record, pausedAt: before?.pausedAt, noted, version, ...change });
  }
}
