import type { StorePolicy } from "#store/policy.ts";
import { isReading, rules } from "#store/rules/rules.ts";
import type { Lane } from "#store/store.ts";
import type { FreeOf } from "../messages.ts";
import type { SqliteRecords } from "./records.ts";

type Method = (records: SqliteRecords, ...args: unknown[]) => unknown;

/** True for methods that need room on the disk. Extended leases are in memory. */
export function writes(name: string): boolean {
  return !isReading(name) && name !== "extendClaims" && name in rules;
}

type Claiming = { free: number; freeOf: ReadonlyMap<string, FreeOf>; messageIds: string[] };

function freeIn(freeOf: Claiming["freeOf"]): (agent: string, lane: Lane) => number {
  return (agent, lane) => freeOf.get(agent)?.[lane === "compact" ? "compact" : "other"] ?? 0;
}

/** A function does not reach this thread: in its place come the answers that it would give. */
const claimTurns: Method = (records, request) => {
  const { freeOf, messageIds, ...others } = request as Parameters<typeof rules.claimTurns>[1] & Claiming;
  const newMessageId = () => messageIds.shift() as string;
  const free = Math.min(others.free, messageIds.length);
  return rules.claimTurns(records, { ...others, free, freeOf: freeIn(freeOf), newMessageId });
};

/** The methods of the store as the worker runs them, and the other calls of the main side. */
export const methods: Readonly<Record<string, Method>> = {
  ...(rules as unknown as Record<string, Method>),
  claimTurns,
  ping: () => undefined,
  configure: (records, policy) => records.setBookmarks({ policy: policy as StorePolicy }),
};
