import { spawnSync } from "node:child_process";

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
  { name: "tests", run: "npm run --silent test", mend: "mend what it says, then: npm test" },
  { name: "slow tests", run: "npm run --silent test:slow", mend: "mend what it says, then: npm run test:slow" },
];

const failed = [];
const rows = [];
for (const { name, run, mend } of steps) {
  console.log(`\n▸ ${name}: ${run}`);
  const began = performance.now();
  const { status } = spawnSync(run, { shell: true, stdio: "inherit" });
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  rows.push(`  ${status === 0 ? "ok    " : "FAILED"}  ${seconds.padStart(6)} s  ${name}`);
  if (status !== 0) failed.push(`${name}: ${mend}`);
}
console.log(`\n${rows.join("\n")}`);
if (failed.length > 0) {
  console.log(`\nTo mend:\n  ${failed.join("\n  ")}`);
  process.exit(1);
}
