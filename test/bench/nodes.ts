import { type PostgresServer, startPostgres } from "#test/harness/postgres-server.ts";
import { wakeCall } from "./calls.ts";
import { compare, type Figure, type Gate, measure, median } from "./figures.ts";
import { type Started, startGateway, untilAnswers } from "./gateways.ts";
import { BEATING } from "./http.ts";
import { type Report, requireClean, runWrk } from "./load.ts";
import { busyOf, cpuOf, cpuOfAll, SERVER_CORE, whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { ALL_ENDED_MS } from "./work.ts";

/** The intake of several gateways together. Times in microseconds. */
type Taken = {
  rate: number;
  cpu: number;
  databaseCpu: number;
  p99: number;
  /** The share of the gateways' core that other processes used. */
  disturbed: number;
};

/** The number of callers of each gateway. */
const CONNECTIONS = 48;
const MANY = 3;
/**
 * The number of requests that each gateway accepts before the measurement, however long that takes. V8 compiles the code of a batch, and there are
 * fewer batches than requests: until then the CPU per request falls from 180 us to 90, for one gateway as for each of three.
 */
const WARM_UP = 30_000;
const WARM_UP_SHORT = 5_000;
const WARM_UP_SLICE_S = 4;
/**
 * The time for which each load runs before it is measured: a gateway that was idle while others were measured costs up to twice as much at first, and
 * three gateways have three times that to catch up.
 */
const RUN_IN_S = 3;
/** A request has three digits for its seed. */
const LAST_SEED = 990;

/** The queued events, counted in the database because a gateway's counts of the others are up to a second old. By an index: the gateways still work. */
const QUEUED = "select count(*) as queued from events where is_queued";
/** Reads the whole table, so it runs only after the last event. */
const ENDED = `select count(*) filter (where body->>'status' = 'handled') as handled, count(*) filter (where body->>'status' = 'dead') as dead
  from events`;

/**
 * Starts gateways with a separate database. They share the server's core, as a single gateway would have it, and the database waits for its disk.
 * They remain, so that they can alternate with others in the measurement; meanwhile they are idle.
 */
class Nodes implements AsyncDisposable {
  readonly #server: PostgresServer;
  readonly #gateways: Started[] = [];
  /** The number of accepted requests of each. */
  readonly #taken: number[] = [];
  #seeds = 0;

  private constructor(server: PostgresServer) {
    this.#server = server;
  }

  static async start(count: number): Promise<Nodes> {
    const nodes = new Nodes(await startPostgres({ fsync: true }));
    try {
      for (let n = 0; n < count; n++) await nodes.#add();
      return nodes;
    } catch (error) {
      await nodes[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs again after others were measured or warmed up: a gateway that was idle for half a minute costs a fifth more for some seconds. */
  async warmUp(short: boolean): Promise<void> {
    const enough = short ? WARM_UP_SHORT : WARM_UP;
    do await this.#run(WARM_UP_SLICE_S);
    while (Math.min(...this.#taken) < enough);
    await this.#untilEnded();
  }

  /**
   * One load, after a run-in. It counts if nothing was refused and all work has ended 2 s later. Its cost is the cost until then; the database's cost
   * is only that of the load, because reading the results also costs.
   */
  async load(seconds: number): Promise<Taken> {
    await this.#run(RUN_IN_S);
    await this.#untilEnded();
    const cpu = () => sumOf(this.#gateways, ({ pid }) => cpuOf(pid));
    const databaseFrom = await cpuOfServer(this.#server);
    const from = { cpu: cpu(), busy: busyOf(SERVER_CORE), at: performance.now() };
    const reports = await this.#run(seconds);
    const databaseSpent = (await cpuOfServer(this.#server)) - databaseFrom;
    await this.#untilEnded();
    const spent = cpu() - from.cpu;
    const others = busyOf(SERVER_CORE) - from.busy - spent;
    const elapsed = (performance.now() - from.at) * 1_000;
    const requests = sumOf(reports, (report) => report.requests);
    return {
      rate: sumOf(reports, ({ rate }) => rate),
      cpu: spent / requests,
      databaseCpu: databaseSpent / requests,
      p99: Math.max(...reports.map(({ p99 }) => p99)),
      disturbed: Math.max(0, others / elapsed),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
    await this.#server[Symbol.asyncDispose]();
  }

  async #add(): Promise<void> {
    const store = { type: "postgres", url: this.#server.url() };
    const gateway = await startGateway({ ...BEATING, store });
    this.#gateways.push(gateway);
    this.#taken.push(0);
    await untilAnswers(`${gateway.url}/readyz`);
  }

  async #run(seconds: number): Promise<Report[]> {
    const first = this.#seeds;
    this.#seeds += this.#gateways.length;
    if (this.#seeds > LAST_SEED) throw new Error(`${this.#what}: too slow, ${this.#taken.join(", ")} so far`);
    const options = { call: wakeCall(), sessions: 0, seconds, connections: CONNECTIONS };
    const reports = await Promise.all(this.#gateways.map(({ url }, n) => runWrk({ ...options, url, seed: first + n })));
    for (const [n, report] of reports.entries()) {
      requireClean(report, this.#what);
      this.#taken[n] = (this.#taken[n] as number) + report.requests;
    }
    return reports;
  }

  async #untilEnded(): Promise<void> {
    const accepted = sumOf(this.#taken, (taken) => taken);
    const end = performance.now() + ALL_ENDED_MS;
    for (;;) {
      const [row] = await this.#server.query(QUEUED);
      if (Number(row?.queued) === 0) break;
      if (performance.now() > end) throw new Error(`${this.#what}: ${row?.queued} events are still queued after 2 s`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const [row] = await this.#server.query(ENDED);
    const [handled, dead] = [Number(row?.handled), Number(row?.dead)];
    if (dead > 0 || handled < accepted)
      throw new Error(`${this.#what}: of ${accepted} events ${handled} are handled and ${dead} are dead`);
  }

  get #what(): string {
    return `wakes on ${this.#gateways.length} gateways`;
  }
}

function sumOf<One>(all: readonly One[], pick: (one: One) => number): number {
  return all.reduce((sum, one) => sum + pick(one), 0);
}

/** All processes of the server so far. */
async function cpuOfServer(server: PostgresServer): Promise<number> {
  const [parent, ...children] = await server.pids();
  return cpuOfAll(parent as number, children);
}

/** Slices of a load in a round: with short slices, less changes on the machine between the compared ones. */
const SLICES = 4;

/** P17: wakes that one gateway and three accept, each on a separate PostgreSQL. */
async function measureNodes({ rounds, seconds, short, say }: BenchOptions): Promise<Figure[]> {
  say("P17: warming up");
  await using one = await Nodes.start(1);
  await using many = await Nodes.start(MANY);
  for (let turn = 0; turn < 2; turn++) {
    await many.warmUp(short);
    await one.warmUp(short);
  }
  const found = { one: [] as Taken[], many: [] as Taken[] };
  const slice = Math.ceil((seconds * 2) / SLICES);
  for (let round = 1; round <= rounds; round++) {
    say(`P17: round ${round} of ${rounds}`);
    // Forward and backward, so that a gradual change of the machine causes no difference between them.
    for (let n = 0; n < SLICES; n += 2) {
      found.one.push(await one.load(slice));
      found.many.push(await many.load(slice), await many.load(slice));
      found.one.push(await one.load(slice));
    }
  }
  const list = (taken: readonly Taken[], pick: (one: Taken) => number) => taken.map(pick);
  const noteOf = (taken: readonly Taken[]) =>
    `${Math.round(median(list(taken, ({ databaseCpu }) => databaseCpu)))} us CPU a request of the database, which shares the client's core; ` +
    `p99 ${(median(list(taken, ({ p99 }) => p99)) / 1_000).toFixed(1)} ms; ` +
    `others took at most ${Math.round(Math.max(...list(taken, ({ disturbed }) => disturbed)) * 100)} % of the core`;
  const cpu = (taken: Taken) => taken.cpu;
  return [
    measure(
      list(found.one, ({ rate }) => rate),
      {
        gate: "P17",
        figure: "wakes on PostgreSQL, one gateway",
        unit: "a second",
        bound: { atLeast: 2_000 },
        note: noteOf(found.one),
      },
    ),
    compare(list(found.many, cpu), list(found.one, cpu), {
      gate: "P17",
      figure: `CPU a request of wakes, ${MANY} gateways on one core, ${CONNECTIONS} callers each`,
      unit: "us",
      bound: { atMost: 1.5, what: "x one" },
      note: noteOf(found.many),
    }),
  ];
}

export const NODE_GATES: readonly Gate[] = [
  { gate: "P17", figure: "wakes on PostgreSQL", lack: whyNoLoad, measure: measureNodes },
];
