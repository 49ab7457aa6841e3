import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildGateway } from "#test/bench/builds.ts";
import { showBroken } from "./breaches.ts";
import { PROOFS, prove, whyNot } from "./proofs.ts";
import { reportOf } from "./run.ts";

const HELP = `npm run test:crash -- [options]

Clients send wakes, turns, messages and mapped hooks at full speed and write down every 2xx. The gateway is killed with -9 at random
moments and started again. In the end what it says over its API is held to what it had said.

  --only A,B    only these:
${PROOFS.map(({ name, words, kills }) => `                  ${name.padEnd(18)}${words}, ${kills} times`).join("\n")}
  --kills N     how often, for each of them
  --seed N      repeats the choices of another run (the moments are never quite the same)
  --lanes N     how many clients there are (default 24)
  --build DIR   the built gateway of this folder as it is (default dist, built when it is stale)
  --help        print this

Ends with 1 when a promise was broken, with 2 when it could not begin.
`;

const readOptions = () => {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: { only: text, kills: text, seed: text, lanes: text, build: text, help: { type: "boolean" } },
  });
  const whole = (name: "kills" | "seed" | "lanes"): number | undefined => {
    const number = values[name] === undefined ? undefined : Number(values[name]);
    if (number !== undefined && !(Number.isInteger(number) && number >= 1))
      throw new Error(`--${name}: a whole number`);
    return number;
  };
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !PROOFS.some((proof) => proof.name === name));
  if (unknown) throw new Error(`--only ${unknown}: there is ${PROOFS.map(({ name }) => name).join(", ")}`);
  return {
    help: values.help === true,
    proofs: PROOFS.filter(({ name }) => only?.includes(name) ?? true),
    seed: whole("seed") ?? Math.floor(Math.random() * 1e6) + 1,
    kills: whole("kills"),
    lanes: whole("lanes"),
    build: values.build,
  };
};

const run = async (): Promise<number> => {
  const { help, proofs, seed, kills, lanes, build } = readOptions();
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  const main = resolve(await buildGateway(build));
  const folder = mkdtempSync(join(tmpdir(), "gateway-crash-"));
  console.log(`seed ${seed}; what was acknowledged, the logs and the stores are in ${folder}`);
  let isKept = true;
  for (const proof of proofs) {
    const why = whyNot(proof);
    if (why) {
      console.log(`${proof.name}: skipped, ${why}`);
      continue;
    }
    console.log(`${proof.name}: ${proof.words}`);
    const say = (words: string) =>
      process.stderr.write(`${process.stderr.isTTY ? "\r\x1b[K" : ""}  ${words}${process.stderr.isTTY ? "" : "\n"}`);
    const wish = {
      main,
      folder: join(folder, proof.name),
      seed,
      say,
      ...(kills && { kills }),
      ...(lanes && { lanes }),
    };
    const report = await prove(proof, wish);
    process.stderr.write("\n");
    console.log(reportOf(report));
    console.log(report.broken.length === 0 ? "  every promise was kept" : showBroken(report.broken));
    if (report.broken.length > 0) isKept = false;
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
