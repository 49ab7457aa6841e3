import { type PostgresServer, startPostgres } from "#test/harness/postgres-server.ts";
import { type Call, messageCall, wakeCall } from "./calls.ts";
import { type GatewayWish, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { type Report, requireClean, runWrk } from "./load.ts";
import { busyOf, cpuOf, cpuOfAll, SERVER_CORE } from "./machine.ts";
import { BEATING } from "./p2.ts";
import { ALL_ENDED_MS } from "./turns.ts";

/** What several gateways took in together. Times in microseconds. */
export type Taken = {
  rate: number;
  requests: number;
  cpu: number;
  databaseCpu: number;
  p99: number;
  /** The share of the gateways' core that others took. */
  disturbed: number;
};

/** Of all callers of one gateway; a third of them is a whole number. */
export const CONNECTIONS = 48;
const SESSIONS = 1_000;
/**
 * Each gateway has taken in so many before it counts, however long that takes. V8 compiles what a batch goes through, and there are fewer
 * batches than requests: till then the CPU a request falls from 180 us to 90, for one gateway as for each of three.
 */
const WARM_UP = 30_000;
const WARM_UP_SHORT = 5_000;
const WARM_UP_SLICE_S = 4;
/**
 * Each load is counted after so long of the same: what was idle while others were measured costs up to twice as much at first, and three
 * that were idle have three times that to make up for.
 */
export const RUN_IN_S = 3;
/** A request has three digits for its seed. */
const LAST_SEED = 990;

type Kind = keyof typeof LOADS;

export const LOADS = {
  wakes: { call: wakeCall(), how: BEATING },
  turns: { call: messageCall(), how: {} },
} satisfies Record<string, { call: Call; how: GatewayWish }>;

/** How the database tells what became of a load: what one gateway knows of the others is a second old. */
const LEFT: Record<Kind, string> = {
  wakes: `select count(*) filter (where state = 'queued') as open, count(*) filter (where state = 'handled') as well,
    count(*) filter (where state = 'dead') as ill from events`,
  turns: `select count(*) filter (where status in ('queued', 'running')) as open, count(*) filter (where status = 'completed') as well,
    count(*) filter (where status = 'failed') as ill from turns`,
};

/**
 * So many gateways with one database of their own: they share the server's core, as one would have it alone, and the database waits for
 * its disk. They stay, so that they can be measured by turns with others; meanwhile they are idle.
 */
export class Nodes implements AsyncDisposable {
  readonly #kind: Kind;
  readonly #server: PostgresServer;
  readonly #gateways: Started[] = [];
  /** How many each of them has taken in. */
  readonly #taken: number[] = [];
  #seeds = 0;

  private constructor(kind: Kind, server: PostgresServer) {
    this.#kind = kind;
    this.#server = server;
  }

  static async start(kind: Kind, count: number): Promise<Nodes> {
    const nodes = new Nodes(kind, await startPostgres({ fsync: true }));
    try {
      for (let n = 0; n < count; n++) await nodes.#add();
      return nodes;
    } catch (error) {
      await nodes[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Again after others were measured or warmed up: who was idle for half a minute costs a fifth more for some seconds. */
  async warmUp(connections: number, short: boolean): Promise<void> {
    const enough = short ? WARM_UP_SHORT : WARM_UP;
    do await this.#run(connections, WARM_UP_SLICE_S);
    while (Math.min(...this.#taken) < enough);
    await this.#untilEnded();
  }

  /**
   * One load, `connections` on each gateway, after a run-in. It counts when nothing was refused and all of it has ended 2 s later, and what it costs
   * until then is its cost; the database's is that of the load itself, as to ask it costs, too.
   */
  async load(connections: number, seconds: number): Promise<Taken> {
    await this.#run(connections, RUN_IN_S);
    await this.#untilEnded();
    const cpu = () => sumOf(this.#gateways, ({ pid }) => cpuOf(pid));
    const databaseFrom = await cpuOfServer(this.#server);
    const from = { cpu: cpu(), busy: busyOf(SERVER_CORE), at: performance.now() };
    const reports = await this.#run(connections, seconds);
    const databaseSpent = (await cpuOfServer(this.#server)) - databaseFrom;
    await this.#untilEnded();
    const spent = cpu() - from.cpu;
    const others = busyOf(SERVER_CORE) - from.busy - spent;
    const elapsed = (performance.now() - from.at) * 1_000;
    const requests = sumOf(reports, (report) => report.requests);
    return {
      rate: sumOf(reports, ({ rate }) => rate),
      requests,
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
    const gateway = await startGateway({ ...LOADS[this.#kind].how, store });
    this.#gateways.push(gateway);
    this.#taken.push(0);
    await untilAnswers(`${gateway.url}/readyz`);
  }

  async #run(connections: number, seconds: number): Promise<Report[]> {
    const first = this.#seeds;
    this.#seeds += this.#gateways.length;
    if (this.#seeds > LAST_SEED) throw new Error(`${this.#what}: too slow, ${this.#taken.join(", ")} so far`);
    const wish = { call: LOADS[this.#kind].call, sessions: SESSIONS, seconds, connections };
    const reports = await Promise.all(this.#gateways.map(({ url }, n) => runWrk({ ...wish, url, seed: first + n })));
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
      const [row] = await this.#server.query(LEFT[this.#kind]);
      const [open, well, ill] = [Number(row?.open), Number(row?.well), Number(row?.ill)];
      if (ill > 0) throw new Error(`${this.#what}: ${ill} ended badly`);
      if (open === 0 && well >= accepted) return;
      if (performance.now() > end)
        throw new Error(`${this.#what}: after 2 s ${open} wait, and ${well} of ${accepted} have ended well`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  get #what(): string {
    return `${this.#kind} on ${this.#gateways.length} gateways`;
  }
}

const sumOf = <One>(all: readonly One[], pick: (one: One) => number): number =>
  all.reduce((sum, one) => sum + pick(one), 0);

/** All processes of the server so far. */
const cpuOfServer = async (server: PostgresServer): Promise<number> => {
  const [parent, ...children] = await server.pids();
  return cpuOfAll(parent as number, children);
};
