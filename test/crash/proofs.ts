import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { systemBins } from "#test/harness/postgres-bins.ts";
import { type PostgresServer, startPostgres } from "#test/harness/postgres-server.ts";
import { createRandom } from "#test/harness/random.ts";
import { createWallClock, whyNoClock } from "#test/harness/wall-clock.ts";
import type { Fleet } from "./fleet.ts";
import { withPassword } from "./requests.ts";
import { type CrashReport, type CrashWish, killOne, runCrash } from "./run.ts";

export type Proof = {
  name: string;
  words: string;
  engine: "sqlite" | "postgres";
  gateways: number;
  /** How often, where the command line does not say. */
  kills: number;
  /** What is done to the clock of the gateways. */
  clock?: "stopped" | "jumping";
  /** They are stopped past their leases and go on, in place of being killed. */
  paused?: boolean;
  /** The database fails over to its standby, and what it was comes back. */
  failover?: boolean;
};

const onSqlite = { engine: "sqlite", gateways: 1 } as const;
const onPostgres = { engine: "postgres", gateways: 3 } as const;

export const PROOFS: readonly Proof[] = [
  { name: "sqlite", words: "SQLite, killed", kills: 50, ...onSqlite },
  { name: "postgres-1", words: "PostgreSQL, one gateway, killed", kills: 50, ...onPostgres, gateways: 1 },
  { name: "postgres-3", words: "PostgreSQL, three gateways, killed", kills: 50, ...onPostgres },
  { name: "sqlite-stopped", words: "SQLite, its clock stopped", kills: 10, clock: "stopped", ...onSqlite },
  { name: "sqlite-jumping", words: "SQLite, its clock jumping", kills: 10, clock: "jumping", ...onSqlite },
  { name: "postgres-stopped", words: "PostgreSQL, clocks stopped", kills: 10, clock: "stopped", ...onPostgres },
  { name: "postgres-jumping", words: "PostgreSQL, clocks jumping", kills: 10, clock: "jumping", ...onPostgres },
  { name: "postgres-paused", words: "PostgreSQL, paused past its leases", kills: 5, paused: true, ...onPostgres },
  { name: "postgres-failover", words: "PostgreSQL, failed over and back", kills: 15, failover: true, ...onPostgres },
];

type Wish = Pick<CrashWish, "main" | "folder" | "seed"> & Partial<CrashWish>;

/** Why a proof cannot be given here; undefined when it can. */
export const whyNot = ({ clock, failover }: Proof): string | undefined => {
  if (failover && systemBins().length === 0) return "pg_basebackup of Debian's postgresql is not there";
  return clock ? whyNoClock() : undefined;
};

/** Runs one of them, with a store of its own. */
export const prove = async (proof: Proof, wish: Wish): Promise<CrashReport> => {
  const { engine, gateways, clock, paused, failover } = proof;
  const { kills = proof.kills } = wish;
  mkdirSync(wish.folder, { recursive: true });
  // What was acknowledged has to be on the disk, as outside of tests.
  await using server = engine === "postgres" ? await startPostgres({ fsync: true }) : undefined;
  await using standby = server && failover ? await withStandby(server) : undefined;
  const servers = [server, standby].filter((one) => one !== undefined);
  const store = server
    ? { type: "postgres", url: servers.map((one) => withPassword(one.url())) }
    : { type: "sqlite", path: join(wish.folder, "gateway.db") };
  using wall = clock && createWallClock();
  if (clock === "stopped") wall?.stop();
  const random = createRandom(wish.seed + 2);
  const jump = () => wall?.jumpTo(random.below(2 * HOUR_MS) - HOUR_MS);
  const disturbClock = async (fleet: Fleet) => {
    if (clock === "jumping") jump();
    await pause(random.below(200));
    await killOne(random.pick(fleet.nodes), random);
  };
  return await runCrash({
    store,
    gateways,
    kills,
    ...(wall && { env: wall.env, disturb: disturbClock }),
    ...(server && { logs: () => ({ files: servers.map((one) => one.logFile) }) }),
    ...(server && standby && { disturb: failOver(random, kills, failovers(server, standby)) }),
    ...(paused && { disturb: pauseOne(random), answerMs: 3_000 }),
    ...wish,
  });
};

const HOUR_MS = 3_600_000;
/** Longer than a lease, and than another gateway needs to see that it has ended. */
const PAUSED_MS = 16_000;

/** It stands still in the middle of its turns, while others take them over, and then goes on as if nothing had been. */
const pauseOne = (random: ReturnType<typeof createRandom>) => async (fleet: Fleet) => {
  const node = random.pick(fleet.nodes);
  node.signal("SIGSTOP");
  await pause(PAUSED_MS);
  node.signal("SIGCONT");
  await node.ready();
};

/** Gateways are killed, and now and then something happens to their database before. */
const failOver =
  (random: ReturnType<typeof createRandom>, kills: number, steps: (() => Promise<void>)[]) =>
  async (fleet: Fleet, round: number) => {
    if (round % Math.ceil(kills / (steps.length + 1)) === 0) await steps.shift()?.();
    await pause(random.below(400));
    await killOne(random.pick(fleet.nodes), random);
  };

/** A primary and a standby that follows it in step, so that what was acknowledged is on both. */
const withStandby = async (primary: PostgresServer): Promise<PostgresServer> => {
  const standby = await primary.standby();
  await primary.query("alter system set synchronous_standby_names = '*'");
  await primary.query("select pg_reload_conf()");
  const inStep = "select 1 from pg_stat_replication where sync_state = 'sync'";
  while ((await primary.query(inStep)).length === 0) await pause(100);
  return standby;
};

const AWAY_MS = 1_500;

/**
 * What happens to the two of them, a step at a call: the primary dies and its standby takes its place; it comes back as it was, and
 * takes writes, too; the new one is away for a while; all connections to it end.
 */
const failovers = (primary: PostgresServer, standby: PostgresServer): (() => Promise<void>)[] => [
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
