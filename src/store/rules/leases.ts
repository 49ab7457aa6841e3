import type { Lease, Records } from "./records.ts";

/** A lease on something, from now on. */
export function leaseFor(records: Records, node: string, leaseMs: number): Lease {
  return {
    node,
    endsAt: records.moment.time + leaseMs,
  };
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

/** A claim holds as long as its node has the lease and nobody claimed the same since, also past the lease's end until somebody sees that. */
export function holds(claim: { node: string; fence: number }, lease: Lease | undefined, fence: number): lease is Lease {
  return lease !== undefined && lease.node === claim.node && fence === claim.fence;
}
