import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { systemBins } from "#test/harness/postgres-bins.ts";
import { type PostgresServer, startPostgres } from "#test/harness/postgres-server.ts";
import { createRandom } from "#test/harness/random.ts";
import type { Proof, ProofOptions } from "./command.ts";
import type { Fleet } from "./fleet.ts";
import { startEndpoint } from "./notified.ts";
import { withPassword } from "./requests.ts";
import { type CrashOptions, type CrashReport, killOne, runCrash } from "./run.ts";

type Given = {
  name: string;
  words: string;
  engine: "sqlite" | "postgres";
  gateways: number;
  /** The number of rounds without an option. */
  kills: number;
  /** Events are sent to an endpoint, and gateways are killed between the end of a turn and its event. */
  notified?: boolean;
  /** The database fails over to its standby, and the former primary returns. */
  failover?: boolean;
};

const onSqlite = { engine: "sqlite", gateways: 1 } as const;
const onPostgres = { engine: "postgres", gateways: 3 } as const;

const GIVEN: readonly Given[] = [
  { name: "sqlite", words: "SQLite, killed", kills: 50, ...onSqlite },
  { name: "postgres-1", words: "PostgreSQL, one gateway, killed", kills: 50, ...onPostgres, gateways: 1 },
  { name: "postgres-3", words: "PostgreSQL, three gateways, killed", kills: 50, ...onPostgres },
  {
    name: "notify-sqlite",
    words: "SQLite, killed between a turn's end and its event",
    kills: 50,
    notified: true,
    ...onSqlite,
  },
  {
    name: "notify-postgres",
    words: "PostgreSQL, three gateways, killed between a turn's end and its event",
    kills: 50,
    notified: true,
    ...onPostgres,
  },
  { name: "postgres-failover", words: "PostgreSQL, failed over and back", kills: 15, failover: true, ...onPostgres },
];

/** Runs one of them, with its own store. */
async function prove(
  { engine, gateways, failover, notified, kills: usual }: Given,
  options: ProofOptions,
): Promise<CrashReport & { more?: readonly string[] }> {
  const { kills = usual } = options;
  mkdirSync(options.folder, { recursive: true });
  // Acknowledged work must be on the disk, as in production.
  await using server = engine === "postgres" ? await startPostgres({ fsync: true }) : undefined;
  await using standby = server && failover ? await withStandby(server) : undefined;
  const servers = [server, standby].filter((one) => one !== undefined);
  const store = server
    ? { type: "postgres", url: servers.map((one) => withPassword(one.url())) }
    : { type: "sqlite", path: join(options.folder, "gateway.db") };
  const random = createRandom(options.seed + 2);
  await using endpoint = notified ? await startEndpoint() : undefined;
  const report = await runCrash({
    store,
    gateways,
    ...(endpoint && killBeforeEvents(endpoint, random)),
    ...(server && { logs: () => ({ files: servers.map((one) => one.logFile) }) }),
    ...(server && standby && { disturb: failOver(random, kills, failovers(server, standby)) }),
    ...options,
    kills,
  });
  if (!endpoint) return report;
  const { turns, repeats } = endpoint.counts();
  return { ...report, more: [`  ${turns} turns with their event, ${repeats} events that came again`] };
}

export const PROOFS: readonly Proof[] = GIVEN.map((given) => ({
  name: given.name,
  words: `${given.words}, ${given.kills} times`,
  whyNot: () =>
    given.failover && systemBins().length === 0 ? "pg_basebackup of Debian's postgresql is not there" : undefined,
  run: (options) => prove(given, options),
}));

const AFTER_EVENT_MS = 20;

/**
 * Kills a gateway while an event waits for its answer, or a few milliseconds after: further turns have ended by then, whose events are not sent yet.
 */
export function killBeforeEvents(
  endpoint: Awaited<ReturnType<typeof startEndpoint>>,
  random: ReturnType<typeof createRandom>,
): Pick<CrashOptions, "more" | "disturb" | "after"> {
  return {
    more: endpoint.config,
    async disturb(fleet) {
      await endpoint.stall();
      await pause(random.below(AFTER_EVENT_MS));
      const killed = killOne(random.pick(fleet.nodes), random);
      endpoint.answer();
      await killed;
    },
    after: (fleet) => endpoint.verify(fleet),
  };
}

/** Gateways are killed, and sometimes their database fails before that. */
function failOver(random: ReturnType<typeof createRandom>, kills: number, steps: (() => Promise<void>)[]) {
  return async (fleet: Fleet, round: number) => {
    if (round % Math.ceil(kills / (steps.length + 1)) === 0) await steps.shift()?.();
    await pause(random.below(400));
    await killOne(random.pick(fleet.nodes), random);
  };
}

/** A primary and a synchronous standby, so that acknowledged work is on both. */
async function withStandby(primary: PostgresServer): Promise<PostgresServer> {
  const standby = await primary.standby();
  await primary.query("alter system set synchronous_standby_names = '*'");
  await primary.query("select pg_reload_conf()");
  const inStep = "select 1 from pg_stat_replication where sync_state = 'sync'";
  while ((await primary.query(inStep)).length === 0) await pause(100);
  return standby;
}

const AWAY_MS = 1_500;

/**
 * Disturbs both servers, one step per call: the primary fails and its standby takes over; the former primary returns unchanged, and also accepts
 * writes; the new one is unavailable for a while; all its connections end.
 */
function failovers(primary: PostgresServer, standby: PostgresServer): (() => Promise<void>)[] {
  return [
    async () => {
      await primary.kill();
      await standby.promote();
    },
    async () => {
      await primary.start();
      await primary.query("alter system reset synchronous_standby_names");
      await primary.query("select pg_reload_conf()");
    },
    async () => {
      await standby.stop("fast");
      await pause(AWAY_MS);
      await standby.start();
    },
    async () => {
      await standby.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'agent-gateway'",
      );
    },
  ];
}
