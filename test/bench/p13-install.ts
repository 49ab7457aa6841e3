import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProgram } from "./children.ts";
import { type Figure, measure, unmeasured } from "./figures.ts";
import type { BenchOptions } from "./options.ts";

const MINUTES_3 = 180_000;
const FIGURE = "production install";

/** P13: what somebody gets who installs the package, without development and optional dependencies. */
export const measureInstall = async ({ say }: BenchOptions): Promise<Figure[]> => {
  say("P13: packing and installing");
  const folder = mkdtempSync(join(tmpdir(), "gateway-install-"));
  try {
    return await install(folder);
  } catch (error) {
    return [unmeasured("P13", FIGURE, (error as Error).message.split("\n")[0] ?? "npm failed")];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const install = async (folder: string): Promise<Figure[]> => {
  // What is built is fresh: `prepare` would only build it again.
  await runProgram("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { timeoutMs: MINUTES_3 });
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  if (!tarball) throw new Error("npm pack wrote no tarball");
  writeFileSync(join(folder, "package.json"), '{"private":true}');
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await runProgram("npm", ["install", "--omit=dev", "--omit=optional", ...quiet, `./${tarball}`], {
    cwd: folder,
    timeoutMs: MINUTES_3,
  });
  const modules = join(folder, "node_modules");
  const ours = JSON.parse(readFileSync("package.json", "utf8")) as { name: string };
  const whole = existsSync(join(modules, ours.name, "dist/main.js"));
  const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as { packages: object };
  const own = sizeOf(join(modules, ours.name)) / 1e6;
  const figures = [
    measure([sizeOf(modules) / 1e6], {
      gate: "P13",
      figure: `${FIGURE}, size`,
      unit: "MB",
      bound: { atMost: 30 },
      note: `of it ${own.toFixed(1)} MB are the gateway's own`,
    }),
    measure([Object.keys(lock.packages).length], {
      gate: "P13",
      figure: `${FIGURE}, packages`,
      bound: { atMost: 135 },
      note: "itself included",
    }),
  ];
  if (whole) return figures;
  // It would be small for lack of what it is for.
  return figures.map((figure) => ({
    ...figure,
    held: false,
    note: "the package has no dist/main.js in it: it cannot run",
  }));
};

/** Bytes of a folder as files, whatever blocks the disk gives them. */
const sizeOf = (path: string): number => {
  const found = lstatSync(path);
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
};
