import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

// Run by `npm ci`. With the development packages it builds; without them it keeps what was built before.
if (existsSync("node_modules/esbuild") && existsSync("node_modules/tsx")) {
  const { status } = spawnSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], { stdio: "inherit" });
  process.exit(status ?? 1);
}
if (!existsSync("dist/main.js")) {
  console.error(
    "dist/ is not built, and the packages that build it are not installed. Run: npm ci && npm ci --omit=dev",
  );
  process.exit(1);
}
