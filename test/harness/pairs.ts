// Counts which outcomes of the contract a run of the tests has seen: an operation or method with a status, or with an error by its name.
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import { methods } from "#generated/methods.ts";
import { type Route, routes } from "#generated/routes.ts";

const FOLDER = "CONTRACT_PAIRS";
const seen = new Set<string>();
let unwritten: string[] = [];

/** A reply that was held to the contract had this outcome. */
export const notePair = (operation: string, outcome: string): void => {
  const pair = `${operation} ${outcome}`;
  if (seen.has(pair)) return;
  seen.add(pair);
  unwritten.push(pair);
};

/** Adds what this process has seen to the account of the whole run. */
export const writePairs = (): void => {
  const folder = process.env[FOLDER];
  if (folder === undefined || unwritten.length === 0) return;
  appendFileSync(join(folder, `${process.pid}-${threadId}`), `${unwritten.join("\n")}\n`);
  unwritten = [];
};

/** Every outcome that the contract has: the statuses that are no error, and the names of the errors. */
const documentedPairs = (): string[] => [
  ...(routes as readonly Route[]).flatMap(({ operation, replies, errors }) => {
    const statuses = new Set(Object.values(replies).map(({ status }) => status));
    return [...[...statuses].filter((status) => status < 400).map(String), ...errors].map((to) => `${operation} ${to}`);
  }),
  ...Object.entries(methods).flatMap(([method, { errors }]) =>
    ["result", ...errors].map((outcome) => `${method} ${outcome}`),
  ),
];

/** The outcomes that a run has not seen, a line for each with its operations. */
export const reportOf = (found: ReadonlySet<string>): { seen: number; documented: number; missing: string[] } => {
  const documented = documentedPairs();
  const missing = new Map<string, string[]>();
  for (const pair of documented.filter((one) => !found.has(one))) {
    const [operation = "", outcome = ""] = pair.split(" ");
    missing.set(outcome, [...(missing.get(outcome) ?? []), operation]);
  }
  const lines = [...missing].sort().map(([outcome, operations]) => `${outcome}: ${operations.join(", ")}`);
  return { seen: documented.filter((one) => found.has(one)).length, documented: documented.length, missing: lines };
};

/** Opens the account of a run. */
export const setup = (): (() => void) => {
  const folder = mkdtempSync(join(tmpdir(), "contract-pairs-"));
  process.env[FOLDER] = folder;
  return () => {
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
    rmSync(folder, { recursive: true });
    const { seen, documented, missing } = reportOf(new Set(files.flatMap((text) => text.trim().split("\n"))));
    // A run of a few files says nothing about the contract.
    if (seen < documented / 2) return;
    console.log(`\n ${seen} of ${documented} outcomes of the contract were seen. Not in this run:`);
    for (const line of missing) console.log(`   ${line}`);
  };
};
