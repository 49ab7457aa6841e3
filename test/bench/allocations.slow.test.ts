import { expect, test } from "vitest";
import { allocatedBy, JOBS } from "./allocations.ts";

/** Samples differ from run to run, and Node's versions do. A change that costs a fifth is a decision. */
const MOST = 1.2;

test.each(["rpc", "wake", "chat"] as const)(
  "a message of %s allocates at most as much as before",
  { timeout: 400_000 },
  async (job) => {
    expect(await allocatedBy(job, 3_000)).toBeLessThan(JOBS[job].atMost * MOST);
  },
);
