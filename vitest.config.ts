import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/harness/longest-first.ts";

/** They put a module of ours in another's place, weigh the memory of their own process, or look at what a process has but once. */
const alone = [
  "test/channels/slack.test.ts",
  "test/channels/webhook.test.ts",
  "test/stores/memory-tables.test.ts",
  "test/stores/record-segments.test.ts",
  "test/traps/express.test.ts",
  "test/traps/replies.test.ts",
  "test/wire/hooks/internal.test.ts",
  "test/wire/ops-internal.test.ts",
  "test/wire/oversized.test.ts",
  "test/wire/rest-internal.test.ts",
  "test/wire/ws/slow.test.ts",
];

/** They hold a thread's own work to a time, by test/harness/loop.ts, or have tries and seconds to spare: a core each, and nothing else. */
const measured = [
  "test/backends/command-processes.test.ts",
  "test/backends/programs-cancel.test.ts",
  "test/core/heartbeat-load.test.ts",
  "test/core/runner-slices.test.ts",
  "test/observe/blocked-reader.test.ts",
  "test/process/blocked-output.test.ts",
  "test/process/stop.test.ts",
  "test/stores/ageing.test.ts",
  "test/stores/memory-bounds.test.ts",
  "test/stores/retention.test.ts",
  "test/stores/sqlite-checkpoints.test.ts",
  "test/stores/sqlite-loop.test.ts",
  "test/wire/rpc/hostile.test.ts",
];

/** They hold to a time what others do meanwhile, or what comes near to its bound, or weigh a process: nothing else runs. */
const timed = [
  "test/process/start-up.test.ts",
  "test/process/stop-under-load.test.ts",
  "test/wire/hostile-json.test.ts",
  "test/wire/slow-requests.test.ts",
  "test/wire/ws/idle.test.ts",
];

export default defineConfig({
  // `await using` is newer than Node 20.
  oxc: { target: "node20" },
  test: {
    globalSetup: ["test/harness/build.ts"],
    setupFiles: ["test/harness/setup.ts"],
    // What is waited for may take its time on a machine with other work.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } },
    sequence: { sequencer: LongestFirst },
    // Most of a test's time is waiting: three at once keep two cores at work.
    maxWorkers: 3,
    projects: [
      // Most of the time went into loading and compiling the same modules anew for each file.
      {
        extends: true,
        test: {
          name: "shared",
          include: ["test/**/*.test.ts"],
          exclude: [...alone, ...measured, ...timed],
          isolate: false,
        },
      },
      { extends: true, test: { name: "alone", include: alone } },
      // After all others, two files at a time, and then one.
      {
        extends: true,
        test: {
          name: "measured",
          include: measured,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: { name: "timed", include: timed, maxWorkers: 1, sequence: { groupOrder: 2 }, testTimeout: 60_000 },
      },
    ],
  },
});
