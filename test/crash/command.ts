import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildGateway } from "#test/bench/builds.ts";
import { showBroken } from "./breaches.ts";
import { type CrashOptions, type CrashReport, reportOf } from "./run.ts";

export type ProofOptions = Pick<CrashOptions, "main" | "folder" | "seed"> &
  Partial<Pick<CrashOptions, "kills" | "lanes" | "say">> & { minutes?: number };
export type Proof = {
  name: string;
  words: string;
  /** The reason why it cannot run here; undefined if it can. */
  whyNot?(): string | undefined;
  run(options: ProofOptions): Promise<CrashReport & { more?: readonly string[] }>;
};

function helpOf(script: string, about: string, proofs: readonly Proof[]): string {
  return `npm run ${script} -- [options]

${about}

  --only A,B    only these:
${proofs.map(({ name, words }) => `                  ${name.padEnd(18)}${words}\n`).join("")}  --kills N     how often it is killed
  --minutes M   how long the faults go on (default 1)
  --seed N      repeats the choices of another run (the moments are never quite the same)
  --lanes N     how many clients there are
  --build DIR   the built gateway of this folder as it is (default dist, built when it is stale)
  --help        print this

Ends with 1 when a promise was broken, with 2 when it could not begin.
`;
}

function readOptions(proofs: readonly Proof[]) {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      only: text,
      kills: text,
      minutes: text,
      seed: text,
      lanes: text,
      build: text,
      help: { type: "boolean" },
    },
  });
  const numberOf = (name: "kills" | "minutes" | "seed" | "lanes") => {
    const number = values[name] === undefined ? undefined : Number(values[name]);
    if (number !== undefined && !(number > 0)) throw new Error(`--${name}: a number above 0`);
    return number === undefined ? {} : { [name]: number };
  };
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !proofs.some((proof) => proof.name === name));
  if (unknown) throw new Error(`--only ${unknown}: there is ${proofs.map(({ name }) => name).join(", ")}`);
  return {
    help: values.help === true,
    build: values.build,
    seed: Math.floor(Math.random() * 1e6) + 1,
    ...numberOf("seed"),
    ...numberOf("kills"),
    ...numberOf("minutes"),
    ...numberOf("lanes"),
    chosen: proofs.filter(({ name }) => only?.includes(name) ?? true),
  };
}

function say(words: string) {
  return process.stderr.write(process.stderr.isTTY ? `\r\x1b[K  ${words}` : `  ${words}\n`);
}

async function giveAll(script: string, about: string, proofs: readonly Proof[]): Promise<number> {
  const { help, build, chosen, ...options } = readOptions(proofs);
  if (help) {
    process.stdout.write(helpOf(script, about, proofs));
    return 0;
  }
  const main = resolve(await buildGateway(build));
  const folder = mkdtempSync(join(tmpdir(), "gateway-crash-"));
  console.log(`seed ${options.seed}; what was acknowledged, the logs and the stores are in ${folder}`);
  let isKept = true;
  for (const { name, words, whyNot, run } of chosen) {
    const why = whyNot?.();
    console.log(`${name}: ${why ? `skipped, ${why}` : words}`);
    if (why) continue;
    const report = await run({ ...options, main, folder: join(folder, name), say });
    process.stderr.write("\n");
    for (const line of [...(report.more ?? []), reportOf(report)]) console.log(line);
    console.log(report.broken.length === 0 ? "  every promise was kept" : showBroken(report.broken));
    if (report.broken.length > 0) isKept = false;
  }
  return isKept ? 0 : 1;
}

/** Runs the proofs of the command line, prints the results, and ends the process. */
export async function runProofs(script: string, about: string, proofs: readonly Proof[]): Promise<never> {
  try {
    process.exitCode = await giveAll(script, about, proofs);
  } catch (error) {
    console.error(error);
    process.exitCode = 2;
  }
  process.exit();
}
