import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { isStale } from "#test/harness/build.ts";
import { runProgram } from "./children.ts";

const DIST = "dist/main.js";

// Once per run: if the sources changed meanwhile, the figures would be those of two programs.
const built = new Map<string, Promise<string>>();
function once(name: string, make: () => Promise<string>): Promise<string> {
  const known = built.get(name) ?? make();
  built.set(name, known);
  return known;
}

/**
 * The gateway as its users start it, rebuilt if it is older than its sources; or an existing build in the folder `build`. The first call decides for
 * the run.
 */
export function buildGateway(build?: string): Promise<string> {
  return once("the gateway", async () => {
    const file = build === undefined ? DIST : join(build, "main.js");
    if (build === undefined && isStale()) await runProgram("npm", ["run", "build"], { timeoutMs: 120_000 });
    if (!existsSync(file)) throw new Error(`--build ${build}: there is no main.js in it`);
    return file;
  });
}

// Inside node_modules, so that packages outside the bundles are found.
const OUT = "node_modules/.cache/agent-gateway-bench";

const COMMON = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  logLevel: "warning",
} satisfies BuildOptions;

/** Builds a server of the bench in the same way as the gateway, so that neither has the cost of a loader. */
export async function buildServer(name: string): Promise<string> {
  const file = await buildProgram("servers", name);
  const outdir = dirname(file);
  // The thread of a file store, next to the chunks of its program.
  const entryPoints = { "sqlite-worker": "src/store/sqlite/worker/worker.ts" };
  await once(`the worker of ${name}`, () => build({ ...COMMON, entryPoints, outdir }).then(() => outdir));
  return file;
}

/** Builds a client of the bench. */
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
