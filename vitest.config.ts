import { defineConfig } from "vitest/config";

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

/** They hold something to a time. What blocks the loop is measured by test/harness/loop.ts, on any machine; the rest wants a core. */
const timed = [
  "test/core/heartbeat-load.test.ts",
  "test/core/runner-slices.test.ts",
  "test/observe/blocked-reader.test.ts",
  "test/process/blocked-output.test.ts",
  "test/process/start-up.test.ts",
  "test/process/stop.test.ts",
  "test/process/stop-under-load.test.ts",
  "test/stores/ageing.test.ts",
  "test/stores/memory-bounds.test.ts",
  "test/stores/retention.test.ts",
  "test/wire/hostile-json.test.ts",
  "test/wire/rpc/hostile.test.ts",
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
    // Most of a test's time is waiting: two at once are done in little more than half the time.
    maxWorkers: 2,
    projects: [
      // Most of the time went into loading and compiling the same modules anew for each file.
      {
        extends: true,
        test: { name: "shared", include: ["test/**/*.test.ts"], exclude: [...alone, ...timed], isolate: false },
      },
      { extends: true, test: { name: "alone", include: alone } },
      // After all others, one file at a time.
      {
        extends: true,
        test: { name: "timed", include: timed, maxWorkers: 1, sequence: { groupOrder: 1 }, testTimeout: 60_000 },
      },
    ],
  },
});
