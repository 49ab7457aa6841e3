import { readdirSync, readFileSync } from "node:fs";

/** Kept free for files, the store's and the backends' connections. */
const RESERVE = 24;

/**
 * The number of connections that each listener can take before the system has no descriptor left for anything else; undefined
 * where the system does not say.
 */
export const connectionsThatFit = (listeners: number): number | undefined => {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    if (limit === undefined) return undefined;
    const free = Number(limit) - readdirSync("/proc/self/fd").length - RESERVE;
    return Math.max(1, Math.floor(free / listeners));
  } catch {
    return undefined;
  }
};
