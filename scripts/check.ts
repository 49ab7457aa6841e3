import { spawn } from "node:child_process";

// Everything that CI does, in the order in which a mistake is found soonest. A failing step names the command that mends it.
const steps = [
  { name: "generate", run: "npm run --silent generate:check", mend: "npm run generate" },
  { name: "format and lint", run: "npm run --silent lint", mend: "npm run format" },
  { name: "types", run: "npm run --silent types", mend: "mend what it says, then: npm run types" },
  { name: "specs", run: "npm run --silent lint:specs", mend: "mend specs/, then: npm run lint:specs" },
  {
    name: "contract",
    run: "npm run --silent contract:diff",
    mend: "bring back what breaks, then: npm run contract:diff",
  },
  { name: "docs", run: "npm run --silent docs", mend: "mend what it says, then: npm run docs" },
  // Once, before two runs of tests find that it is missing.
  { name: "build", run: "npm run --silent build", mend: "mend what it says, then: npm run build" },
  { name: "tests", run: "npm run --silent test", mend: "mend what it says, then: npm test" },
  { name: "slow tests", run: "npm run --silent test:slow", mend: "mend what it says, then: npm run test:slow" },
];

/** Both kinds of tests run at once: the slow ones mostly wait. Their output is printed when they end, below that of the others. */
const AT_ONCE = ["tests", "slow tests"];

type Step = (typeof steps)[number];
/** Unexplained: the step failed by something else than single tests. */
type Outcome = { output: string; failures: string[]; isUnexplained: boolean };
const failed: string[] = [];
const rows: string[] = [];

async function run({ name, run, mend }: Step): Promise<Outcome> {
  console.log(`\n▸ ${name}: ${run}`);
  const began = performance.now();
  const isShownLater = AT_ONCE.indexOf(name) > 0;
  const child = spawn(run, { shell: true, stdio: AT_ONCE.includes(name) ? ["inherit", "pipe", "pipe"] : "inherit" });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (bytes: Buffer) => {
      chunks.push(bytes);
      if (!isShownLater) process.stdout.write(bytes);
    });
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  rows.push(`  ${status === 0 ? "ok    " : "FAILED"}  ${seconds.padStart(6)} s  ${name}`);
  const output = Buffer.concat(chunks).toString();
  const [, names = ""] = /\n Failed\n((?: {3}.*\n)+)/.exec(output) ?? [];
  const failures = names.split("\n").filter(Boolean);
  // The names of failed tests are repeated at the end, because a log that is cut short still has its end.
  if (status !== 0) failed.push(`${name}: ${mend}`, ...failures);
  const isUnexplained = status !== 0 && (failures.length === 0 || OTHER_FAULTS.test(output));
  return { output: isShownLater ? output : "", failures, isUnexplained };
}

/** Errors outside of tests, and outcomes of the contract that no test provoked. */
const OTHER_FAULTS = /Unhandled|A test has to provoke/;
/** More failures than these do not come from a busy machine. */
const MOST_AGAIN = 5;

/**
 * Two kinds of tests at once keep the machine busy for minutes. The files of a few failed tests run again by themselves. A failed property does
 * not: its counterexample is a fault on any machine.
 */
async function runAgain(failures: readonly string[]): Promise<void> {
  const files = new Set(failures.map((line) => /^ +(test\/\S+\.ts) > /.exec(line)?.[1]));
  if (files.size === 0 || failures.length > MOST_AGAIN || files.has(undefined)) return;
  if (failures.some((line) => line.includes(": Property failed"))) return;
  const name = "the failed files by themselves";
  await run({ name, run: `npx vitest run --maxWorkers 1 ${[...files].join(" ")}`, mend: "mend what it says" });
  if (failed.some((line) => line.startsWith(name))) return;
  failed.length = 0;
  rows.push("", "  Failed on a busy machine, and passed by themselves:", ...failures);
}

for (const step of steps.filter(({ name }) => !AT_ONCE.includes(name))) await run(step);
const isReady = failed.length === 0;
const tests = await Promise.all(steps.filter(({ name }) => AT_ONCE.includes(name)).map(run));
for (const { output } of tests) process.stdout.write(output);
if (isReady && !tests.some(({ isUnexplained }) => isUnexplained))
  await runAgain(tests.flatMap(({ failures }) => failures));
console.log(`\n${rows.join("\n")}`);
if (failed.length > 0) {
  console.log(`\nTo mend:\n  ${failed.join("\n  ")}`);
  process.exitCode = 1;
}
