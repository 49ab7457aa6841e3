import { spawnSync } from "node:child_process";
import { QUIET } from "./redocly.ts";

// Prints the figures of `redocly score` for openapi.yaml, in percent. Fails if one of its two totals is below its floor, and names the parts that fell.

const FLOORS: Record<string, number> = { agentReadiness: 82, discoverability: 95 };
/** The parts of the totals when the floors were set. Raise both when the figures rise. */
const PARTS: Record<string, number> = {
  parameterSimplicity: 89,
  schemaSimplicity: 28,
  documentationQuality: 95,
  constraintClarity: 79,
  exampleCoverage: 100,
  errorClarity: 100,
  dependencyClarity: 78,
  identifierClarity: 100,
  polymorphismClarity: 42,
};

const { stdout, stderr, status } = spawnSync(
  "node_modules/.bin/redocly",
  ["score", "specs/openapi.yaml", "--format", "json"],
  {
    encoding: "utf8",
    maxBuffer: 1 << 26,
    env: QUIET,
  },
);
if (status !== 0) throw new Error(stderr);
const { agentReadiness, discoverability, subscores } = JSON.parse(stdout);
const totals: Record<string, number> = { agentReadiness, discoverability };
const parts = Object.fromEntries(Object.entries<number>(subscores).map(([name, part]) => [name, part * 100]));

/** The figures below their floors, as sentences. */
function fallen(figures: Record<string, number>, floors: Record<string, number>): string[] {
  return Object.entries(floors).flatMap(([name, floor]) => {
    const figure = figures[name] ?? 0;
    return figure < floor ? [`${name} fell to ${figure.toFixed(1)}, below ${floor}`] : [];
  });
}

for (const [name, figure] of Object.entries({ ...totals, ...parts }))
  console.log(`${figure.toFixed(1).padStart(6)}  ${name}`);
const low = fallen(totals, FLOORS);
if (low.length > 0) {
  console.error([...low, ...fallen(parts, PARTS)].join("\n"));
  process.exitCode = 1;
}
