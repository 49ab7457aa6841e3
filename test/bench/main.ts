import { mkdir, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { dirname } from "node:path";
import { ALLOCATION_GATES } from "./allocations.ts";
import { BOUND_GATES } from "./bounds.ts";
import { buildGateway } from "./builds.ts";
import { type Figure, type Gate, tableOf, unmeasured } from "./figures.ts";
import { FLOOD_GATES } from "./floods.ts";
import { FULL_STORE_GATES } from "./full-stores.ts";
import { HTTP_GATES } from "./http.ts";
import { machine, pinSelf } from "./machine.ts";
import { MEMORY_GATES } from "./memory.ts";
import { MODEL_GATES } from "./models.ts";
import { NODE_GATES } from "./nodes.ts";
import { type BenchOptions, HELP, readOptions } from "./options.ts";
import { REFUSAL_GATES } from "./refusals.ts";
import { SOAK_GATES } from "./soak.ts";
import { SOCKET_GATES } from "./sockets.ts";
import { START_GATES } from "./starting.ts";
import { TOKEN_GATES } from "./tokens.ts";

/** One at a time: a figure is not valid while another is measured. */
const GATES: readonly Gate[] = [
  ...ALLOCATION_GATES,
  ...BOUND_GATES,
  ...HTTP_GATES,
  ...SOCKET_GATES,
  ...MODEL_GATES,
  ...TOKEN_GATES,
  ...MEMORY_GATES,
  ...FULL_STORE_GATES,
  ...START_GATES,
  ...REFUSAL_GATES,
  ...NODE_GATES,
  ...FLOOD_GATES,
  ...SOAK_GATES,
];

async function run(options: BenchOptions): Promise<boolean> {
  const { only, json, short, seconds, rounds, say } = options;
  const known = new Set(GATES.map(({ gate }) => gate));
  const unknown = [...(only ?? [])].filter((gate) => !known.has(gate));
  if (unknown.length > 0) throw new Error(`--only ${unknown.join(",")}: there is ${[...known].join(", ")}`);
  say("building what is stale");
  await buildGateway(options.build);
  pinSelf();
  const began = new Date();
  const figures: Figure[] = [];
  let failed = false;
  for (const { gate, figure, lack, measure } of GATES) {
    if (only && !only.has(gate)) continue;
    const why = lack?.(options);
    try {
      figures.push(...(why === undefined ? await measure(options) : [unmeasured(gate, figure, why)]));
    } catch (error) {
      failed = true;
      figures.push(unmeasured(gate, figure, (error as Error).message));
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
}

function say(words: string) {
  return process.stderr.write(`${words}\n`);
}
try {
  const options = readOptions(process.argv.slice(2), say);
  if (options === "help") process.stdout.write(HELP);
  else process.exitCode = (await run(options)) ? 0 : 1;
} catch (error) {
  say((error as Error).message);
  process.exitCode = 2;
}
// Servers are ended, but a pooled connection may still be closing.
process.exit();
