import { spawn } from "node:child_process";

// All checks of CI. Those that find mistakes fastest run first. A failing step names the command that fixes it.
const steps = [
  { name: "generate", run: "npm run --silent generate:check", fix: "npm run generate" },
  { name: "format and lint", run: "npm run --silent lint", fix: "npm run format" },
  { name: "types", run: "npm run --silent types", fix: "fix the reported problems, then: npm run types" },
  { name: "specs", run: "npm run --silent lint:specs", fix: "fix specs/, then: npm run lint:specs" },
  { name: "score", run: "npm run --silent score", fix: "improve the named parts of specs/, then: npm run score" },
  {
    name: "contract",
    run: "npm run --silent contract:diff",
    fix: "undo the breaking changes, then: npm run contract:diff",
  },
  { name: "docs", run: "npm run --silent docs", fix: "fix the reported problems, then: npm run docs" },
  // Once, before two test runs find that it is missing.
  { name: "build", run: "npm run --silent build", fix: "fix the reported problems, then: npm run build" },
  { name: "workflows", run: "npm run --silent workflows", fix: "fix the failed steps, then: npm run workflows" },
  { name: "tests", run: "npm run --silent test -- --maxWorkers 2", fix: "fix the reported problems, then: npm test" },
  {
    name: "slow tests",
    run: "npm run --silent test:slow -- --maxWorkers 2",
    fix: "fix the reported problems, then: npm run test:slow",
  },
];

/** Both kinds of tests run at the same time, because the slow ones mostly wait. Their output is printed when they end, after that of the others. */
const AT_ONCE = ["tests", "slow tests"];

type Step = (typeof steps)[number];
const failed: string[] = [];
const rows: string[] = [];

/** Returns the output of a step that is shown later. */
async function run({ name, run, fix }: Step): Promise<string> {
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
  // The names of failed tests are repeated at the end, because a truncated log still has its end.
  if (status !== 0) failed.push(`${name}: ${fix}`, ...names.split("\n").filter(Boolean));
  return isShownLater ? output : "";
}

for (const step of steps.filter(({ name }) => !AT_ONCE.includes(name))) await run(step);
const later = await Promise.all(steps.filter(({ name }) => AT_ONCE.includes(name)).map(run));
for (const output of later) process.stdout.write(output);
console.log(`\n${rows.join("\n")}`);
if (failed.length > 0) {
  console.log(`\nTo fix:\n  ${failed.join("\n  ")}`);
  process.exitCode = 1;
}
