/**
 * Turns and outgoing messages are leased: claimed, extended, released and ended. Claimed work has a lease, delayed work a `dueAt`; other work can be claimed,
 * unless earlier work of its queue blocks it.
 */
import type { Lane } from "#store/store.ts";
import type { Lease, Leased, OpenTurn, Records } from "./records.ts";

export function laneOf({ task, waited }: OpenTurn): Lane {
  return task?.kind === "compact" ? "compact" : waited ? "waited" : "other";
}

/** A lease that starts now. */
export function leaseFor(records: Records, node: string, leaseMs: number): Lease {
  return {
    node,
    endsAt: records.moment.time + leaseMs,
  };
}

/** The fields of work without a lease, which can be claimed now or after `delayMs`. */
export function withoutLease({ moment }: Records, delayMs = 0): { dueAt: number | undefined; lease: undefined } {
  return { dueAt: delayMs > 0 ? moment.time + delayMs : undefined, lease: undefined };
}

/** The end of a budget's window may make thousands of turns due. */
const DUE_AT_ONCE = 256;

/** Makes the work ready whose delay has ended, some at a time. Returns the time until the next delay ends: not positive if there is more. */
export function makeDueReady<R extends object>(
  records: Records,
  table: Leased<R> & { put(record: R): void },
  ready: (record: R) => R,
): number | undefined {
  for (const record of table.dueBy(records.moment.time, DUE_AT_ONCE)) table.put(ready(record));
  return timeUntilDue(records, table);
}

/** The time until the next delay ends. */
export function timeUntilDue<R>({ moment: { time } }: Records, table: Leased<R>): number | undefined {
  const nextDueAt = table.nextDueAt();
  return nextDueAt === undefined ? undefined : nextDueAt - time;
}

/** The first in order of the results of `find` for the groups with a free place. */
export function firstOf<R>(
  freeOfGroups: ReadonlyMap<string, number>,
  find: (group: string) => R | undefined,
  orderOf: (record: R) => number,
): R | undefined {
  let first: R | undefined;
  for (const [group, free] of freeOfGroups) {
    const record = free > 0 ? find(group) : undefined;
    if (record && (!first || orderOf(record) < orderOf(first))) first = record;
  }
  return first;
}

/** A claim is valid while its node has the lease and there is no later claim. It stays valid after the lease's end until the end is processed. */
export function holds(claim: { node: string; fence: number }, lease: Lease | undefined, fence: number): lease is Lease {
  return lease !== undefined && lease.node === claim.node && fence === claim.fence;
}
