import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildGateway } from "#test/bench/builds.ts";
import { showBroken } from "#test/crash/breaches.ts";
import { reportOf } from "#test/crash/run.ts";
import { runChaos } from "./run.ts";

const HELP = `npm run test:chaos -- [options]

Random faults, put together, on real gateways under load: killed, paused, told to stop; clocks that jump; disks and databases that fail;
clients that are slow, hostile, or gone. In the end it looks whether every promise was kept.

  --seed N      the same faults in the same order (the moments are never quite the same)
  --minutes M   how long, for each engine (default 1)
  --store NAME  sqlite or postgres (default both)
  --lanes N     how many clients there are (default 12)
  --build DIR   the built gateway of this folder as it is (default dist, built when it is stale)
  --help        print this

Ends with 1 when a promise was broken, with 2 when it could not begin.
`;

const ENGINES = ["sqlite", "postgres"] as const;
const LANES = 12;

const readOptions = () => {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: { seed: text, minutes: text, store: text, lanes: text, build: text, help: { type: "boolean" } },
  });
  const number = (name: "seed" | "minutes" | "lanes"): number | undefined => {
    const value = values[name] === undefined ? undefined : Number(values[name]);
    if (value !== undefined && !(value > 0)) throw new Error(`--${name}: a number above 0`);
    return value;
  };
  const engines = ENGINES.filter((name) => values.store === undefined || values.store === name);
  if (engines.length === 0) throw new Error(`--store ${values.store}: there is ${ENGINES.join(", ")}`);
  return {
    help: values.help === true,
    engines,
    seed: number("seed") ?? Math.floor(Math.random() * 1e6) + 1,
    seconds: (number("minutes") ?? 1) * 60,
    lanes: number("lanes") ?? LANES,
    build: values.build,
  };
};

const run = async (): Promise<number> => {
  const { help, engines, build, ...wish } = readOptions();
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  const main = resolve(await buildGateway(build));
  const folder = mkdtempSync(join(tmpdir(), "gateway-chaos-"));
  console.log(`seed ${wish.seed}; the logs and the stores are in ${folder}`);
  let isKept = true;
  for (const engine of engines) {
    console.log(`${engine}: ${wish.seconds} s`);
    const say = (words: string) => console.error(`  ${words}`);
    const report = await runChaos({ ...wish, main, folder: join(folder, engine), engine, say });
    const { faults, skipped, broken } = report;
    const done = Object.entries(faults).map(([name, count]) => `${name} ${count}`);
    console.log(`  faults: ${done.join(", ")}`);
    for (const words of skipped) console.log(`  skipped ${words}`);
    console.log(reportOf(report));
    console.log(broken.length === 0 ? "  every promise was kept" : showBroken(broken));
    if (broken.length > 0) isKept = false;
  }
  return isKept ? 0 : 1;
};

try {
  process.exitCode = await run();
} catch (error) {
  console.error(error);
  process.exitCode = 2;
}
process.exit();
