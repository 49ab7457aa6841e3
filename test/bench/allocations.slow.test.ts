import { expect, test } from "vitest";
import { allocatedBy, JOBS } from "./allocations.ts";

/** Samples differ between runs and versions of Node. A change that allocates a fifth more is a decision. */
const MOST = 1.2;

test.each(["rpc", "wake", "chat"] as const)(
  "a message of %s allocates at most as much as before",
  { timeout: 400_000 },
  async (job) => {
    expect(await allocatedBy(job, 3_000)).toBeLessThan(JOBS[job].atMost * MOST);
  },
);
