import { defineConfig } from "vitest/config";

export default defineConfig({
  // `await using` is newer than Node 20.
  oxc: { target: "node20" },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/build.ts"],
    setupFiles: ["test/harness/setup.ts"],
    testTimeout: 15_000,
    hookTimeout: 15_000,
  },
});
