import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { isStale } from "#test/harness/build.ts";
import { runProgram } from "./children.ts";

const DIST = "dist/main.js";

// Once a run: sources that change meanwhile would make its figures those of two programs.
const built = new Map<string, Promise<string>>();
function once(name: string, make: () => Promise<string>): Promise<string> {
  const known = built.get(name) ?? make();
  built.set(name, known);
  return known;
}

/** The gateway as its users start it, built anew when it is older than its sources; or the one in folder `build` as it is. The first call decides for the run. */
export function buildGateway(build?: string): Promise<string> {
  return once("the gateway", async () => {
    const file = build === undefined ? DIST : join(build, "main.js");
    if (build === undefined && isStale()) await runProgram("npm", ["run", "build"], { timeoutMs: 120_000 });
    if (!existsSync(file)) throw new Error(`--build ${build}: there is no main.js in it`);
    return file;
  });
}

// Inside node_modules, so that the packages that stay outside the bundles are found from there.
const OUT = "node_modules/.cache/agent-gateway-bench";

const COMMON = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  logLevel: "warning",
} satisfies BuildOptions;

/** Builds one of the bench's own servers as the gateway is built, so that neither pays for a loader. */
export async function buildServer(name: string): Promise<string> {
  const file = await buildProgram("servers", name);
  const outdir = dirname(file);
  // The thread of a store in a file, found beside the chunks of the program that has one.
  const entryPoints = { "sqlite-worker": "src/store/sqlite/worker/worker.ts" };
  await once(`the worker of ${name}`, () => build({ ...COMMON, entryPoints, outdir }).then(() => outdir));
  return file;
}

/** Builds one of the bench's own clients. */
export function buildClient(name: string): Promise<string> {
  return buildProgram("clients", name);
}

function buildProgram(folder: string, name: string): Promise<string> {
  return once(name, async () => {
    const outdir = join(OUT, name);
    const entryPoints = [`test/bench/${folder}/${name}.ts`];
    await build({ ...COMMON, entryPoints, outdir, outExtension: { ".js": ".mjs" }, splitting: true });
    return join(outdir, `${name}.mjs`);
  });
}
