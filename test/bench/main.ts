import { mkdir, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { dirname } from "node:path";
import { measureBounds } from "./bounds.ts";
import { buildGateway } from "./builds.ts";
import { type Figure, unmeasured } from "./figures.ts";
import { machine, pinSelf } from "./machine.ts";
import { type BenchOptions, HELP, readOptions } from "./options.ts";
import { measureRpc } from "./p1.ts";
import { measureWakes } from "./p2.ts";
import { measureKeptWakes } from "./p3.ts";
import { measureChat } from "./p4.ts";
import { measureSockets } from "./p5.ts";
import { measureHttp2 } from "./p6.ts";
import { measureAdded } from "./p7.ts";
import { measureProxied } from "./p8.ts";
import { measureTokens } from "./p9.ts";
import { measureIdleSockets } from "./p10-sockets.ts";
import { measureStoreWeight } from "./p10-store.ts";
import { measureIdleStreams } from "./p10-streams.ts";
import { measureLoop, measureLoopOnSqlite } from "./p11.ts";
import { measureManyOnSqlite, measureManySessions } from "./p12.ts";
import { measureInstall } from "./p13-install.ts";
import { measureStart } from "./p13-start.ts";
import { measureRefusals } from "./p14.ts";
import { measureHookRefusals } from "./p14-hooks.ts";
import { measureStranger } from "./p14-stranger.ts";
import { measureBeat } from "./p15.ts";
import { measureSoak, measureSoakOnSqlite } from "./p16.ts";
import { measureNodeTurns, measureNodeWakes } from "./p17.ts";
import { measureFloods } from "./p18.ts";
import { measureRecorder } from "./recorder.ts";
import { measureStores } from "./stores.ts";
import { tableOf } from "./table.ts";

type Bench = (options: BenchOptions) => Promise<Figure[]>;

/** In this order, and each by itself: a figure taken beside another is none. */
const GATES: readonly [gate: string, bench: Bench][] = [
  ["BOUNDS", measureBounds],
  ["P1", measureRpc],
  ["P2", measureWakes],
  ["P3", measureKeptWakes],
  ["P4", measureChat],
  ["P5", measureSockets],
  ["P6", measureHttp2],
  ["P7", measureAdded],
  ["P8", measureProxied],
  ["P9", measureTokens],
  ["P10", measureStoreWeight],
  ["P10", measureIdleStreams],
  ["P10", measureIdleSockets],
  ["P11", measureLoop],
  ["P11-SQLITE", measureLoopOnSqlite],
  ["P12", measureManySessions],
  ["P12-SQLITE", measureManyOnSqlite],
  ["P13", measureStart],
  ["P13", measureInstall],
  ["P14", measureRefusals],
  ["P14", measureHookRefusals],
  ["P14", measureStranger],
  ["P15", measureBeat],
  ["RECORDER", measureRecorder],
  ["P17", measureNodeWakes],
  ["P17", measureNodeTurns],
  ["P18", measureFloods],
  ["STORES", measureStores],
  ["P16", measureSoak],
  ["P16-SQLITE", measureSoakOnSqlite],
];

const run = async (options: BenchOptions): Promise<boolean> => {
  const { only, json, short, seconds, rounds, say } = options;
  const unknown = [...(only ?? [])].filter((gate) => !GATES.some(([known]) => known === gate));
  if (unknown.length > 0)
    throw new Error(`--only ${unknown.join(",")}: there is ${[...new Set(GATES.map(([gate]) => gate))].join(", ")}`);
  say("building what is stale");
  await buildGateway(options.build);
  pinSelf();
  const began = new Date();
  const figures: Figure[] = [];
  let failed = false;
  for (const [gate, bench] of GATES) {
    if (only && !only.has(gate)) continue;
    try {
      figures.push(...(await bench(options)));
    } catch (error) {
      failed = true;
      figures.push(unmeasured(gate, bench.name, (error as Error).message));
    }
  }
  const report = { at: began.toISOString(), machine, load: loadavg(), seconds, rounds, short, figures };
  await mkdir(dirname(json), { recursive: true });
  await writeFile(json, `${JSON.stringify(report, null, 2)}\n`);
  const took = Math.round((Date.now() - began.getTime()) / 1_000);
  process.stdout.write(`\n${tableOf(figures)}\n`);
  process.stdout.write(
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; ${rounds} rounds of ${seconds} s; ${took} s; ${json}\n`,
  );
  if (short) process.stdout.write("A short run: a look, not to be quoted.\n");
  return !failed && figures.every(({ held }) => held !== false);
};

const say = (words: string) => process.stderr.write(`${words}\n`);
try {
  const options = readOptions(process.argv.slice(2), say);
  if (options === "help") process.stdout.write(HELP);
  else process.exitCode = (await run(options)) ? 0 : 1;
} catch (error) {
  say((error as Error).message);
  process.exitCode = 2;
}
// Servers are ended, but a pooled connection to one may still be closing.
process.exit();
