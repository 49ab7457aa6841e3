import type { Lease, Records } from "./records.ts";

/** A lease on something, from now on. */
export const leaseFor = (records: Records, node: string, leaseMs: number): Lease => ({
  node,
  endsAt: records.moment.time + leaseMs,
});

/** A claim holds as long as its node has the lease and nobody claimed the same since, also past the lease's end until somebody sees that. */
export const holds = (
  claim: { node: string; fence: number },
  lease: Lease | undefined,
  fence: number,
): lease is Lease => lease !== undefined && lease.node === claim.node && fence === claim.fence;
