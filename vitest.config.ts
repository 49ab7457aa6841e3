import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/harness/longest-first.ts";

/** They replace a module of ours, or look at what a process has only once, such as the functions that ran. */
const alone = [
  "test/channels/slack.test.ts",
  "test/channels/webhook.test.ts",
  "test/walks.test.ts",
  "test/traps/express.test.ts",
  "test/traps/replies.test.ts",
  "test/wire/call/internal.test.ts",
];
/** Databases, crashes, several gateways, upgrades, pages in a browser, Python, and whatever starts many processes or takes long: `npm run test:slow`. */
const slow = ["test/**/*.slow.test.ts", "test/browser/*.test.ts"];
/** They assert a time or an amount of memory, so they want a quiet machine: a part of `npm run bench`. */
const bounds = "test/bench/bounds/*.test.ts";

export default defineConfig({
  // `await using` is newer than Node 20.
  oxc: { target: "node20" },
  test: {
    globalSetup: ["test/harness/build.ts", "test/harness/pairs.ts"],
    setupFiles: ["test/harness/setup.ts"],
    reporters: ["./test/harness/reporter.ts"],
    silent: "passed-only",
    slowTestThreshold: Number.POSITIVE_INFINITY,
    // Other work on the machine may make every wait longer.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    sequence: { sequencer: LongestFirst },
    // Most of a test's time is waiting: three at once keep two cores at work.
    maxWorkers: 3,
    projects: [
      {
        extends: true,
        // One process for many files: to load and compile the same modules for each takes longer than its tests.
        test: { name: "shared", include: ["test/**/*.test.ts"], exclude: [...alone, ...slow, bounds], isolate: false },
      },
      { extends: true, test: { name: "alone", include: alone } },
      { extends: true, test: { name: "slow", include: slow, isolate: false, testTimeout: 180_000 } },
      { extends: true, test: { name: "bounds", include: [bounds], maxWorkers: 1, testTimeout: 300_000 } },
    ],
  },
});
