import type { Clock } from "#kit/clock.ts";
import { systemClock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { SessionRef } from "#store/store.ts";
import { type AgentEnds, createAgentEnds, type EndedAgent } from "./agent-ends.ts";
import { createBatcher, Gates } from "./batches.ts";
import type { NotedBeats } from "./beats.ts";
import { type Counts, createCounts, type Deltas } from "./counts.ts";
import { failureOf, unavailable } from "./errors.ts";
import { entriesOf, type ToldNews } from "./gateway-stream.ts";
import type { GatewayTellings } from "./gateway-tellings.ts";
import { createHandingOver } from "./handing-over.ts";
import type { Pool } from "./pool.ts";
import { createReadyWork } from "./ready-work.ts";
import type { Tellings } from "./tellings.ts";
import { readText } from "./texts.ts";
import { type EntryRow, readEntries } from "./turn-codec.ts";

/** Stands among a function's arguments for the lane of the connection that the call runs on. */
export const LANE: unique symbol = Symbol("lane");

/** A session and some entries of it, as a function tells of what it has written. */
export type ToldRow = [
  ordinal: number,
  sessionId: string,
  agent: string,
  contextBytes: number,
  entries: EntryRow[] | null,
];
export type DeletedRow = [
  "d",
  ordinal: number,
  sessionId: string,
  agent: string,
  contextBytes: number,
  seq: number,
  at: number,
];
/** What other gateways are to know of a call. */
export type Change =
  | ["e", ordinal: number, sessionId: string, agent: string, contextBytes: number, from: number, through: number]
  | DeletedRow
  | ["c", turnId: string]
  | ["p", compactionId: string]
  | ["w"];
/** What other gateways are to know that no call keeps for them. */
export type Notice =
  | "beat"
  | "announcement"
  | "keys"
  | "gateway"
  | "gatewayAsked"
  | "handed"
  | "paused"
  | "textsAsked"
  | "textsPut";

/** What a function may answer beside what its caller asked for. */
export type Answer = {
  counts?: Deltas;
  entries?: ToldRow[];
  deleted?: DeletedRow[];
  cancelled?: string[];
  compactions?: string[];
  work?: boolean;
  beat?: boolean;
  announcement?: boolean;
  keys?: boolean;
  gateway?: ToldNews | null;
  ends?: EndedAgent[] | null;
  news?: number | null;
  changes?: Change[];
  results?: unknown[];
};

type BatchCall = readonly [name: string, args: readonly unknown[]];

export type Batch<O> = {
  most: number;
  /** So many calls of the kind may be on their way. */
  atOnce?: number;
  bytesOf?: (order: O) => number;
  pauseOf?: (tookMs: number) => number;
  /** The function to be called. `again`: what was sent may have been kept, as the connection broke before its answer came. */
  call: (orders: readonly O[], again: boolean) => BatchCall;
  /** Hears an answer before those that wait for it do. */
  heard?: (answer: Record<string, unknown>, orders: readonly O[]) => void;
};

/** So often a call is made again that clashed with another one. */
const CLASHES = 5;

export type FrameParts = {
  clock: Clock;
  node: string;
  pool: Pool;
  tellings: Tellings;
  gatewayTellings: GatewayTellings;
  /** Lets other gateways know. */
  publish: (news: number | null, changes: readonly Change[]) => void;
  notify: (notice: Notice, of: number | readonly string[]) => void;
};

/** What every method of the engine works with. */
export const createFrame = ({ clock, node, pool, tellings, gatewayTellings, publish, notify }: FrameParts) => {
  const counts: Counts = createCounts();
  const ends: AgentEnds = createAgentEnds();
  const gates = new Gates();
  const beats: NotedBeats = new Map();
  const readyWork = createReadyWork(() => publish(null, [["w"]]));
  const { watchers } = tellings;

  /** Running turns that should end, and were told so. */
  const stopped = new Set<string>();
  const shouldEnd = (turnId: string): void => {
    if (stopped.has(turnId)) return;
    stopped.add(turnId);
    for (const watcher of watchers) watcher.cancel(turnId);
  };
  /** Compactions that may begin, and were told so. */
  const begun = new Set<string>();
  const mayBegin = (id: string): void => {
    if (begun.has(id)) return;
    begun.add(id);
    for (const watcher of watchers) watcher.compaction(id);
  };

  const take = (answer: unknown, isCounted: boolean): void => {
    if (typeof answer !== "object" || answer === null || Array.isArray(answer)) return;
    const told = answer as Answer;
    if (told.counts && isCounted) counts.add(told.counts);
    if (told.ends) for (const end of told.ends) ends.own(end);
    for (const row of told.entries ?? []) if (row[4]) tellings.entries(refOf(row), readEntries(row[4]));
    for (const turnId of told.cancelled ?? []) shouldEnd(turnId);
    for (const [, ...row] of told.deleted ?? []) tellings.deleted(refOf(row), { seq: row[4], at: row[5] });
    for (const id of told.compactions ?? []) mayBegin(id);
    const { gateway } = told;
    if (gateway) gatewayTellings.own(gateway.first, gateway.news.length, () => entriesOf(gateway));
    if (told.work) {
      readyWork.add();
      for (const watcher of watchers) watcher.work();
    }
    if (told.beat) for (const watcher of watchers) watcher.beat();
    if (told.announcement) for (const watcher of watchers) watcher.announcement();
    for (const notice of NOTICES) if (told[notice]) notify(notice, []);
    const changes = told.changes?.filter(([kind]) => kind !== "w") ?? [];
    if (changes.length > 0) publish(told.news ?? null, changes);
  };

  /** So often a newer gateway changed tables such that prepared statements have to be prepared again, by another name. */
  let plans = 0;

  /** Runs a statement; what clashed with another one is run again. */
  const run = async <T>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<{ rows: T[]; lane: string }> => {
    for (let clashes = 0; ; clashes++) {
      try {
        return await pool.run(async (client, lane) => {
          const { rows } = await client.query({
            name: plans === 0 ? name : `${name} ${plans}`,
            text,
            values: values.map((value) => (value === LANE ? lane : value)),
          });
          return { rows: rows as T[], lane };
        });
      } catch (error) {
        const failure = failureOf(error);
        if (failure === "stale") plans++;
        if (failure === "broken") throw error;
        // Where the database is and what it said is the log's business, not a caller's.
        if (error instanceof GatewayError) throw unavailable("The database cannot be reached.", error);
        if (failure === "lost") frame.isUnsure = true;
        if ((failure !== "clash" && failure !== "stale") || clashes === CLASHES)
          throw unavailable("The database did not answer.", error);
      }
    }
  };

  /** Calls of functions that share a statement and a commit, one after another; their answers. */
  const callAll = async (calls: readonly BatchCall[]): Promise<unknown[]> => {
    const values: unknown[] = [];
    const made = calls.map(
      ([name, args], n) => `${name}(${args.map((arg) => `$${values.push(arg)}`).join(", ")}) as a${n}`,
    );
    const name = calls.map(([name]) => name).join(" ");
    const { rows, lane } = await run<Record<string, unknown>>(name, `select ${made.join(", ")}`, values);
    const answers = calls.map((_, n) => rows[0]?.[`a${n}`]);
    for (const answer of answers) take(answer, lane.startsWith(`${pool.lanes}/`));
    return answers;
  };

  const call = async <T>(name: string, args: readonly unknown[]): Promise<T> => (await callAll([[name, args]]))[0] as T;

  const names = new Map<string, string>();
  const frame = {
    clock,
    node,
    counts,
    ends,
    gates,
    beats,
    readyWork,
    watchers,
    tellings,
    gatewayTellings,
    notify,
    handingOver: createHandingOver(clock),
    call,
    callAll,
    begun,
    mayBegin,
    stopped,
    shouldEnd,
    /** How many gateways there are, with this one, as of the last look. */
    gateways: 1,
    /** When events were seen being handed over (monotonic). */
    beatingAt: Number.NEGATIVE_INFINITY,
    /** A call's answer was lost: nobody knows whether what it counted was kept. */
    isUnsure: false,
    get lanes(): string {
      return pool.lanes;
    },
    /** Calls count on new lanes from now on, so that the old ones can be read as somebody else's. */
    renewLanes(): void {
      frame.isUnsure = false;
      pool.renewLanes();
      counts.renew();
    },
    /** The recorder's own bytes, as the last request that was recorded named them. */
    ringBytes: Number.POSITIVE_INFINITY,

    /** The time that leases go by, for a function's \`at_ms\`: null for the database's clock; that of a test, where it brings one. */
    time: (): number | null => (clock === systemClock ? null : clock.monotonic()),

    /** Rows of a plain read. */
    query: async <T>(text: string, values: readonly unknown[]): Promise<T[]> => {
      let name = names.get(text);
      if (!name) {
        name = `read ${names.size}`;
        names.set(text, name);
      }
      return (await run<T>(name, text, values)).rows;
    },

    batcher: <O, R>({
      most,
      atOnce = 2,
      bytesOf,
      pauseOf,
      call,
      heard,
    }: Batch<O>): ((order: O, gate?: string) => Promise<R>) => {
      const send = async (orders: readonly O[]): Promise<readonly R[]> => {
        const answer = await once<Answer>((again) => call(orders, again));
        heard?.(answer, orders);
        return answer.results as R[];
      };
      return createBatcher<O, R>({ most, atOnce, bytesOf, pauseOf, gates, send });
    },
  };

  /** A call that may be made again where nobody knows what became of it. */
  const once = async <T>(made: (again: boolean) => BatchCall): Promise<T> => {
    try {
      return await call<T>(...made(false));
    } catch (error) {
      const { cause } = error as Error;
      const isSent = cause !== undefined && !(cause instanceof GatewayError);
      if (pool.isAway || !isSent || failureOf(cause) !== "lost") throw error;
      return await call<T>(...made(true));
    }
  };
  return frame;
};

export type Frame = ReturnType<typeof createFrame>;

const NOTICES = ["beat", "announcement", "keys"] as const;

export const refOf = ([ordinal, sessionId, agent, contextBytes]: readonly [
  number,
  string,
  string,
  number,
  ...unknown[],
]): SessionRef => ({
  ordinal,
  sessionId: readText(sessionId),
  agent,
  contextBytes,
});
