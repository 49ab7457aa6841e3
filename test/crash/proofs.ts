import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { systemBins } from "#test/harness/postgres-bins.ts";
import { startPostgres } from "#test/harness/postgres-server.ts";
import { createRandom } from "#test/harness/random.ts";
import { createWallClock, whyNoClock } from "#test/harness/wall-clock.ts";
import { failovers, withStandby } from "./failover.ts";
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

export const PROOFS: readonly Proof[] = [
  { name: "sqlite", words: "SQLite, killed", engine: "sqlite", gateways: 1, kills: 50 },
  { name: "postgres-1", words: "PostgreSQL, one gateway, killed", engine: "postgres", gateways: 1, kills: 50 },
  { name: "postgres-3", words: "PostgreSQL, three gateways, killed", engine: "postgres", gateways: 3, kills: 50 },
  {
    name: "sqlite-stopped",
    words: "SQLite, its clock stopped",
    engine: "sqlite",
    gateways: 1,
    kills: 10,
    clock: "stopped",
  },
  {
    name: "sqlite-jumping",
    words: "SQLite, its clock jumping",
    engine: "sqlite",
    gateways: 1,
    kills: 10,
    clock: "jumping",
  },
  {
    name: "postgres-stopped",
    words: "PostgreSQL, clocks stopped",
    engine: "postgres",
    gateways: 3,
    kills: 10,
    clock: "stopped",
  },
  {
    name: "postgres-jumping",
    words: "PostgreSQL, clocks jumping",
    engine: "postgres",
    gateways: 3,
    kills: 10,
    clock: "jumping",
  },
  {
    name: "postgres-paused",
    words: "PostgreSQL, paused past its leases",
    engine: "postgres",
    gateways: 3,
    kills: 5,
    paused: true,
  },
  {
    name: "postgres-failover",
    words: "PostgreSQL, failed over to its standby, and the old primary back",
    engine: "postgres",
    gateways: 3,
    kills: 15,
    failover: true,
  },
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
