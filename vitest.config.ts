import { defineConfig } from "vitest/config";

export default defineConfig({
  // `await using` is newer than Node 20.
  oxc: { target: "node20" },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/build.ts"],
    setupFiles: ["test/harness/setup.ts"],
    // Most of a test's time is waiting: two at once are done in little more than half the time.
    maxWorkers: 2,
    testTimeout: 15_000,
    hookTimeout: 15_000,
  },
});
