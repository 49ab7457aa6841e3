import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Figure, type Gate, measure } from "./figures.ts";
import type { BenchOptions } from "./options.ts";

type Report = {
  numTotalTests: number;
  testResults: { assertionResults: { status: string; fullName: string }[] }[];
};

/** The tests of `bounds/`, which limit the time or the memory of single pieces of work. */
async function measureBounds({ say }: BenchOptions): Promise<Figure[]> {
  say("BOUNDS: npx vitest run --project bounds");
  const folder = mkdtempSync(join(tmpdir(), "gateway-bounds-"));
  try {
    const file = join(folder, "report.json");
    const report = ["--reporter", "json", "--outputFile", file];
    spawnSync("npx", ["vitest", "run", "--project", "bounds", ...report], { stdio: ["ignore", "ignore", "inherit"] });
    const { numTotalTests, testResults } = JSON.parse(readFileSync(file, "utf8")) as Report;
    const failed = testResults.flatMap(({ assertionResults }) =>
      assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName),
    );
    const note = failed.length > 0 ? failed.join("; ") : `${numTotalTests} held`;
    return [measure([failed.length], { gate: "BOUNDS", figure: "exceeded bounds", bound: { atMost: 0 }, note })];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const BOUND_GATES: readonly Gate[] = [{ gate: "BOUNDS", figure: "bounds", measure: measureBounds }];
