import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Broken, breach } from "#test/crash/breaches.ts";
import type { Fleet, GatewayNode } from "#test/crash/fleet.ts";
import { withPassword } from "#test/crash/requests.ts";
import { type CrashReport, runCrash } from "#test/crash/run.ts";
import { createFailingDisk, whyNoFailingDisk } from "#test/harness/failing-disk.ts";
import { startPostgres } from "#test/harness/postgres-server.ts";
import { createRandom } from "#test/harness/random.ts";
import { createWallClock, whyNoClock } from "#test/harness/wall-clock.ts";
import { CLIENT_FAULTS } from "./client-faults.ts";
import { startMinting, verifyKeys } from "./keys.ts";
import { PROCESS_FAULTS } from "./process-faults.ts";
import { grownOf, REPORTING_ENV, type Resources, readResources, reporting } from "./resources.ts";
import type { Fault, World } from "./world.ts";

type ChaosOptions = {
  main: string;
  folder: string;
  engine: "sqlite" | "postgres";
  seed: number;
  seconds: number;
  lanes?: number;
  say?: (words: string) => void;
};

type ChaosReport = CrashReport & { faults: Record<string, number>; skipped: string[] };

const FAULTS: readonly Fault[] = [...PROCESS_FAULTS, ...CLIENT_FAULTS];
/** The chance that another fault starts before one has ended. */
const AT_ONCE = 0.4;
const REST_WITHIN_MS = 400;

const GIVEN_BACK_MS = 30_000;

/** Lists the resources that a node did not release within a while. */
async function leftOf(node: GatewayNode, before: Resources): Promise<string[]> {
  const end = performance.now() + GIVEN_BACK_MS;
  for (;;) {
    const grown = grownOf(before, await readResources(node));
    if (grown.length === 0 || performance.now() > end) return grown;
    await pause(500);
  }
}

/** Random combined faults on real processes under load; at the end every promise is checked. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { engine, seed, seconds, folder, say = () => {} } = options;
  const random = createRandom(seed);
  await using server = engine === "postgres" ? await startPostgres({ fsync: true }) : undefined;
  using clock = whyNoClock() ? undefined : createWallClock();
  using disk = whyNoFailingDisk() ? undefined : createFailingDisk();
  const preloads = [disk?.env.LD_PRELOAD, clock?.env.LD_PRELOAD].filter((path) => path !== undefined).join(" ");
  const env = { ...disk?.env, ...clock?.env, ...REPORTING_ENV, ...(preloads && { LD_PRELOAD: preloads }) };
  const start = performance.now();
  const broken: Broken[] = [];
  const accuse = (words: string, ...ids: string[]): void => {
    broken.push(breach("nothing unexpected happens", words, ...ids));
  };
  const faults: Record<string, number> = {};
  const skipped = new Set<string>();
  const underWay = new Set<Promise<void>>();
  const worldOf = (fleet: Fleet): World => ({ fleet, random, server, clock, disk, held, accuse });
  const held: World["held"] = new Set();
  let minting: ReturnType<typeof startMinting> | undefined;

  const begin = (world: World): Promise<void> => {
    const fault = random.pick(FAULTS);
    const why = fault.why?.(world);
    if (why !== undefined) {
      skipped.add(`${fault.name}: ${why}`);
      return Promise.resolve();
    }
    faults[fault.name] = (faults[fault.name] ?? 0) + 1;
    const began = performance.now();
    const at = () => `${((performance.now() - start) / 1_000).toFixed(1)} s`;
    say(`${at()}: ${fault.name}`);
    const done = fault
      .run(world)
      .then(() => say(`${at()}: ${fault.name} is over, after ${Math.round(performance.now() - began)} ms`))
      .catch((error: Error) => accuse(`${fault.name} could not be undone: ${error.message}`, fault.name))
      .finally(() => underWay.delete(done));
    underWay.add(done);
    return done;
  };

  let fresh: Resources[] = [];
  const end = start + seconds * 1_000;
  const report = await runCrash({
    main: options.main,
    folder,
    seed,
    kills: 0,
    gateways: engine === "postgres" ? 3 : 1,
    store: server
      ? { type: "postgres", url: withPassword(server.url()) }
      : { type: "sqlite", path: join(folder, "gateway.db") },
    env,
    wrap: reporting,
    answerMs: 5_000,
    lastBlow: false,
    ...(options.lanes && { lanes: options.lanes }),
    say,
    before: async (fleet) => {
      fresh = await Promise.all(fleet.nodes.map(readResources));
      minting = startMinting(fleet, createRandom(seed + 5));
    },
    goesOn: () => performance.now() < end,
    disturb: async (fleet) => {
      await pause(random.below(REST_WITHIN_MS));
      const done = begin(worldOf(fleet));
      if (!random.chance(AT_ONCE)) await done;
    },
    settle: async (fleet) => {
      await Promise.all([...underWay, minting?.stop()]);
      clock?.jumpTo(0);
      await Promise.all(fleet.nodes.map((node) => node.served()));
    },
    logs: () => ({ secrets: minting?.keys.map(({ secret }) => secret) ?? [], files: server ? [server.logFile] : [] }),
    after: async (fleet) => {
      const { nodes } = fleet;
      broken.push(...(await verifyKeys(fleet, minting?.keys ?? [])));
      for (const [n, node] of nodes.entries())
        for (const words of await leftOf(node, fresh[n] as Resources))
          broken.push(breach("every resource is released", words, node.url));
      return broken;
    },
  });
  return { ...report, faults, skipped: [...skipped] };
}
