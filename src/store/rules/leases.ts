/**
 * Work is leased: turns and announcements, each by four verbs. Claimed work has a lease, delayed work a `dueAt`; work with neither can be claimed,
 * unless something is before it.
 */
import type { Lane } from "#store/store.ts";
import type { Lease, Leased, OpenTurn, Records } from "./records.ts";

export function laneOf({ task, waited }: OpenTurn): Lane {
  return task?.kind === "compact" ? "compact" : waited ? "waited" : "other";
}

/** A lease from now on. */
export function leaseFor(records: Records, node: string, leaseMs: number): Lease {
  return {
    node,
    endsAt: records.moment.time + leaseMs,
  };
}

/** Without a lease: the work can be claimed now, or in `delayMs`. */
export function freed({ moment }: Records, delayMs = 0): { dueAt: number | undefined; lease: undefined } {
  return { dueAt: delayMs > 0 ? moment.time + delayMs : undefined, lease: undefined };
}

/** Makes the work ready whose delay is over. Answers the time until the next is over. */
export function makeDueReady<R extends object>(
  { moment: { time } }: Records,
  table: Leased<R> & { put(record: R): void },
  ready: (record: R) => R,
): number | undefined {
  for (const record of table.dueBy(time)) table.put(ready(record));
  const nextDueAt = table.nextDueAt();
  return nextDueAt === undefined ? undefined : nextDueAt - time;
}

/** The first in order of all that `find` tells of the groups that have a place free. */
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

/** A claim holds as long as its node has the lease and no other claimed the same since, also past the lease's end until somebody sees that. */
export function holds(claim: { node: string; fence: number }, lease: Lease | undefined, fence: number): lease is Lease {
  return lease !== undefined && lease.node === claim.node && fence === claim.fence;
}
