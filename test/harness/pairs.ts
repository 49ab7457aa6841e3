// Counts the outcomes of the contract that a test run has seen: an operation or method with a status, or with an error name.
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { methods } from "#generated/methods.ts";
import { type Route, routes } from "#generated/routes.ts";
import { root } from "./process.ts";

const FOLDER = "CONTRACT_PAIRS";
const PROJECTS = "CONTRACT_PAIRS_PROJECTS";
/** Outcomes that no request can cause, with the reason. A complete run fails for any other that it has not seen. */
export const UNREACHABLE: Readonly<Record<string, string>> = {
  "system.info internal": "it reads nothing that could fail",
};
const seen = new Set<string>();
let unwritten: string[] = [];

/** A validated reply had this outcome. */
export function notePair(operation: string, outcome: string): void {
  const pair = `${operation} ${outcome}`;
  if (seen.has(pair)) return;
  seen.add(pair);
  unwritten.push(pair);
}

/** Adds the outcomes of this process to the account of the run. */
export function writePairs(): void {
  const folder = process.env[FOLDER];
  if (folder === undefined || unwritten.length === 0) return;
  appendFileSync(join(folder, `${process.pid}-${threadId}`), `${unwritten.join("\n")}\n`);
  unwritten = [];
}

/** All outcomes of the contract: the successful statuses, and the names of the errors. */
function documentedPairs(): string[] {
  return [
    ...(routes as readonly Route[]).flatMap(({ operation, replies, errors }) => {
      const statuses = new Set(Object.values(replies).map(({ status }) => status));
      return [...[...statuses].filter((status) => status < 400).map(String), ...errors].map(
        (to) => `${operation} ${to}`,
      );
    }),
    ...Object.entries(methods).flatMap(([method, { errors }]) =>
      ["result", ...errors].map((outcome) => `${method} ${outcome}`),
    ),
  ];
}

/** The outcomes of the contract that a run has not seen. */
function unseenBy(found: ReadonlySet<string>): { documented: number; unseen: string[] } {
  const documented = documentedPairs();
  return { documented: documented.length, unseen: documented.filter((pair) => !found.has(pair)) };
}

/** The files of `npm test`. A run of other files proves nothing about the contract. */
function isWholeRun(): boolean {
  return (
    JSON.parse(readFileSync(join(root, "package.json"), "utf8")).scripts.test ===
    ["vitest", ...process.argv.slice(2)].join(" ")
  );
}

/** Opens the account of a run. Each of its projects does so; the last one to end closes it. */
export function setup(): () => void {
  process.env[FOLDER] ??= mkdtempSync(join(tmpdir(), "contract-pairs-"));
  const folder = process.env[FOLDER];
  const projects = (change: number): number => {
    const count = Number(process.env[PROJECTS] ?? 0) + change;
    process.env[PROJECTS] = String(count);
    return count;
  };
  projects(1);
  return () => {
    if (projects(-1) === 0) close(folder);
  };
}

function close(folder: string): void {
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  rmSync(folder, { recursive: true });
  if (!isWholeRun()) return;
  const { documented, unseen } = unseenBy(new Set(files.flatMap((text) => text.trim().split("\n"))));
  console.log(`\n ${documented - unseen.length} of ${documented} outcomes of the contract were seen. Not in this run:`);
  for (const pair of unseen) console.log(`   ${pair}: ${UNREACHABLE[pair] ?? "no test provokes it"}`);
  if (unseen.every((pair) => pair in UNREACHABLE)) return;
  console.error(" A test has to provoke each documented outcome, or test/harness/pairs.ts has to say why none can.");
  process.exitCode = 1;
}
