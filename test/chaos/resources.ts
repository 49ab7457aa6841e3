import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { GatewayNode } from "#test/crash/fleet.ts";

export type Resources = {
  heapUsed: number;
  rss: number;
  files: number;
  timers: number;
  active: Record<string, number>;
};

const REPORT = join(import.meta.dirname, "report-resources.mjs");
const FILE = "resources.json";

/** Starts a gateway with resource reports; the file is next to its configuration. */
export function reporting([node = "", ...args]: readonly string[]): readonly string[] {
  return [node, "--import", REPORT, ...args];
}
export const REPORTING_ENV = { RESOURCES_FILE: FILE };

export async function readResources(node: GatewayNode): Promise<Resources> {
  const file = join(dirname(node.logFile), FILE);
  rmSync(file, { force: true });
  node.signal("SIGUSR2");
  while (!existsSync(file)) {
    if (!node.isRunning) throw new Error(`the gateway ended:\n${node.log().slice(-2_000)}`);
    await pause(10);
  }
  return JSON.parse(readFileSync(file, "utf8")) as Resources;
}

const MB = 1e6;
/** Allowances for caches: pages of the store, compiled code, a pool's connections. */
const MORE = { heapUsed: 32 * MB, rss: 160 * MB, files: 16, timers: 40, active: 16 };

/** Lists the resources that grew between two idle moments. */
export function grownOf(before: Resources, after: Resources): string[] {
  const grown: string[] = [];
  const compare = (name: string, from: number, to: number, more: number, unit = 1) => {
    if (to > from + more) grown.push(`${name} went from ${Math.round(from / unit)} to ${Math.round(to / unit)}`);
  };
  compare("the heap (MB)", before.heapUsed, after.heapUsed, MORE.heapUsed, MB);
  compare("memory (MB)", before.rss, after.rss, MORE.rss, MB);
  compare("open files", before.files, after.files, MORE.files);
  compare("timers", before.timers, after.timers, MORE.timers);
  for (const [kind, count] of Object.entries(after.active)) compare(kind, before.active[kind] ?? 0, count, MORE.active);
  return grown;
}
