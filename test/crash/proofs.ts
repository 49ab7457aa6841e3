import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startPostgres } from "#test/harness/postgres-server.ts";
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
];

type Wish = Pick<CrashWish, "main" | "folder" | "seed"> & Partial<CrashWish>;

/** Why a proof cannot be given here; undefined when it can. */
export const whyNot = ({ clock }: Proof): string | undefined => (clock ? whyNoClock() : undefined);

/** Runs one of them, with a store of its own. */
export const prove = async (proof: Proof, wish: Wish): Promise<CrashReport> => {
  const { engine, gateways, kills, clock, paused } = proof;
  mkdirSync(wish.folder, { recursive: true });
  // What was acknowledged has to be on the disk, as outside of tests.
  await using server = engine === "postgres" ? await startPostgres({ fsync: true }) : undefined;
  const store = server
    ? { type: "postgres", url: withPassword(server.url()) }
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
    ...(server && { logs: () => ({ files: [server.logFile] }) }),
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
