import { startPostgres } from "#test/harness/postgres-server.ts";
import { type Call, messageCall, wakeCall } from "./calls.ts";
import { type GatewayWish, readMetrics, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { requireClean, runWrk } from "./load.ts";
import { busyOf, cpuOf, SERVER_CORE } from "./machine.ts";
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
/** A request has three digits for its seed. */
const LAST_SEED = 990;
const COMPLETED = 'gateway_turns_total{agent="main",status="completed"}';

export const LOADS = {
  wakes: { call: wakeCall(), how: BEATING },
  turns: { call: messageCall(), how: {} },
} satisfies Record<string, { call: Call; how: GatewayWish }>;

type Wish = { count: number; connections: number; seconds: number; seed: number; short: boolean };

/**
 * One load, `connections` on each of so many gateways with one database: they share the server's core, as one would have it alone, and
 * the database waits for its disk. It counts when nothing was refused and all of it has ended 2 s later.
 */
export const loadNodes = async (
  kind: keyof typeof LOADS,
  { count, connections, seconds, seed, short }: Wish,
): Promise<Taken> => {
  const { call, how } = LOADS[kind];
  await using server = await startPostgres({ fsync: true });
  const gateways: Started[] = [];
  try {
    for (let n = 0; n < count; n++) {
      const gateway = await startGateway({ ...how, store: { type: "postgres", url: server.url() } });
      gateways.push(gateway);
      await untilAnswers(`${gateway.url}/readyz`);
    }
    const run = async (lasting: number, seeds: number) => {
      const wish = { call, sessions: SESSIONS, seconds: lasting, connections };
      const reports = await Promise.all(gateways.map(({ url }, n) => runWrk({ ...wish, url, seed: seeds + n })));
      for (const report of reports) requireClean(report, `${kind} on ${count} gateways`);
      return reports;
    };
    const enough = short ? WARM_UP_SHORT : WARM_UP;
    let warmed: number[] = gateways.map(() => 0);
    let seeds = seed;
    for (; Math.min(...warmed) < enough; seeds += count) {
      if (seeds > LAST_SEED)
        throw new Error(`${kind} on ${count} gateways: too slow to warm up, ${warmed.join(", ")} of ${enough} each`);
      const reports = await run(WARM_UP_SLICE_S, seeds);
      warmed = warmed.map((before, n) => before + (reports[n]?.requests ?? 0));
    }
    const cpu = () => gateways.reduce((sum, { pid }) => sum + cpuOf(pid), 0);
    const beforeDatabase = await cpuOfServer(server);
    const from = { cpu: cpu(), busy: busyOf(SERVER_CORE), at: performance.now() };
    const reports = await run(seconds, seeds);
    const spent = cpu() - from.cpu;
    const others = busyOf(SERVER_CORE) - from.busy - spent;
    const elapsed = (performance.now() - from.at) * 1_000;
    const spentDatabase = (await cpuOfServer(server)) - beforeDatabase;
    const requests = sumOf(reports, (report) => report.requests);
    const accepted = requests + sumOf(warmed, (each) => each);
    if (kind === "wakes") await requireAllHandled(server, accepted);
    else await requireAllCompleted(gateways, accepted);
    return {
      rate: sumOf(reports, ({ rate }) => rate),
      requests,
      cpu: spent / requests,
      databaseCpu: spentDatabase / requests,
      p99: Math.max(...reports.map(({ p99 }) => p99)),
      disturbed: Math.max(0, others / elapsed),
    };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
  }
};

const sumOf = <One>(all: readonly One[], pick: (one: One) => number): number =>
  all.reduce((sum, one) => sum + pick(one), 0);

type Server = Awaited<ReturnType<typeof startPostgres>>;

/** All processes of the server so far; those that have ended count as long as their parent lives. */
const cpuOfServer = async (server: Server): Promise<number> => {
  const pids = await server.pids();
  return pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
};

const untilEnded = async (what: string, count: () => Promise<number>): Promise<void> => {
  const end = performance.now() + ALL_ENDED_MS;
  for (;;) {
    const left = await count();
    if (left <= 0) return;
    if (performance.now() > end) throw new Error(`after 2 s ${left} ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

/** By the database: what one gateway knows of the others is a second old. */
const requireAllHandled = async (server: Server, accepted: number): Promise<void> => {
  const count = async (where: string) => Number((await server.query(`select count(*) from events ${where}`))[0]?.count);
  await untilEnded("events wait", () => count("where state = 'queued'"));
  const handled = await count("where state = 'handled'");
  const dead = await count("where state = 'dead'");
  if (dead > 0) throw new Error(`${dead} events are dead`);
  if (handled < accepted) throw new Error(`${accepted} events were accepted, and ${handled} handled`);
};

const requireAllCompleted = (gateways: readonly Started[], accepted: number): Promise<void> =>
  untilEnded("turns have not completed", async () => {
    const reads = await Promise.all(gateways.map(({ url }) => readMetrics(url)));
    return reads.reduce((left, read) => left - read(COMPLETED), accepted);
  });
