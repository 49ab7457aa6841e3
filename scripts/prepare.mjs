import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";

// `npm start` uses `exec`, so that no shell runs between npm and the gateway: a signal to npm would end dash, for example, and leave the gateway
// running. The shell of Windows has no `exec`, so this creates a command of that name where npm looks for commands.
if (process.platform === "win32") {
  mkdirSync("node_modules/.bin", { recursive: true });
  writeFileSync("node_modules/.bin/exec.cmd", "@%*\r\n");
}

// npm runs this file after an installation. In a clone with the development packages it builds; otherwise it keeps an existing build.
if (["scripts/build.ts", "node_modules/esbuild", "node_modules/tsx"].every((path) => existsSync(path))) {
  const { status } = spawnSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], { stdio: "inherit" });
  process.exit(status ?? 1);
}
if (!existsSync("dist/main.js")) {
  console.error(
    "dist/ is not built, and the packages that build it are not installed. Run: npm ci && npm ci --omit=dev",
  );
  process.exit(1);
}
