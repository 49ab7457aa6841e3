import { startPostgres } from "#test/harness/postgres-server.ts";
import { type Call, messageCall, wakeCall } from "./calls.ts";
import { requireNoneLost } from "./events.ts";
import { type GatewayWish, readMetrics, type Started, startGateway, untilAnswers } from "./gateways.ts";
import { requireClean, runWrk } from "./load.ts";
import { cpuOf } from "./machine.ts";
import { BEATING } from "./p2.ts";
import { ALL_ENDED_MS } from "./turns.ts";

/** What several gateways took in together. Times in microseconds. */
export type Taken = { rate: number; requests: number; cpu: number; databaseCpu: number; p99: number };

const CONNECTIONS = 48;
const SESSIONS = 1_000;
const WARM_UP_S = 2;
const COMPLETED = 'gateway_turns_total{agent="main",status="completed"}';

export const LOADS = {
  wakes: { call: wakeCall(), how: BEATING },
  turns: { call: messageCall(), how: {} },
} satisfies Record<string, { call: Call; how: GatewayWish }>;

/**
 * One load on so many gateways with one database: they share the server's core, as one would have it alone, and the database waits for
 * its disk. It counts when nothing was refused and all of it has ended 2 s later.
 */
export const loadNodes = async (
  kind: keyof typeof LOADS,
  count: number,
  seconds: number,
  seed: number,
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
      const connections = CONNECTIONS / count;
      const wish = { call, sessions: SESSIONS, seconds: lasting, connections };
      const reports = await Promise.all(gateways.map(({ url }, n) => runWrk({ ...wish, url, seed: seeds + n })));
      for (const report of reports) requireClean(report, `${kind} on ${count} gateways`);
      return reports;
    };
    const warm = await run(WARM_UP_S, seed);
    const cpu = () => gateways.reduce((sum, { pid }) => sum + cpuOf(pid), 0);
    const [before, beforeDatabase] = [cpu(), await cpuOfServer(server)];
    const reports = await run(seconds, seed + count);
    const spent = cpu() - before;
    const spentDatabase = (await cpuOfServer(server)) - beforeDatabase;
    const requests = reports.reduce((sum, report) => sum + report.requests, 0);
    const accepted = requests + warm.reduce((sum, report) => sum + report.requests, 0);
    await requireAllEnded(kind, gateways, accepted);
    return {
      rate: reports.reduce((sum, { rate }) => sum + rate, 0),
      requests,
      cpu: spent / requests,
      databaseCpu: spentDatabase / requests,
      p99: Math.max(...reports.map(({ p99 }) => p99)),
    };
  } finally {
    await Promise.all(gateways.map((gateway) => gateway[Symbol.asyncDispose]()));
  }
};

/** All processes of the server so far; those that have ended count as long as their parent lives. */
const cpuOfServer = async (server: Awaited<ReturnType<typeof startPostgres>>): Promise<number> => {
  const pids = await server.pids();
  return pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
};

const requireAllEnded = async (kind: keyof typeof LOADS, gateways: readonly Started[], accepted: number) => {
  if (kind === "wakes") return await requireNoneLost(gateways[0]?.url as string);
  const end = performance.now() + ALL_ENDED_MS;
  for (;;) {
    const reads = await Promise.all(gateways.map(({ url }) => readMetrics(url)));
    const completed = reads.reduce((sum, read) => sum + read(COMPLETED), 0);
    if (completed >= accepted) return;
    if (performance.now() > end) throw new Error(`after 2 s ${completed} of ${accepted} turns have completed`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
