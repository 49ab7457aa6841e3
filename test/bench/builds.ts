import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { runProgram } from "./children.ts";

const DIST = "dist/main.js";
const SOURCES = ["src", "generated", "scripts/build.ts", "scripts/build-console.ts", "package.json"];

const newestOf = (path: string): number => {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newestOf(join(path, name))));
};

/** A file is older than what it was built from: a figure of it would be of another program. */
const isStale = (): boolean => !existsSync(DIST) || statSync(DIST).mtimeMs < Math.max(...SOURCES.map(newestOf));

// Once a run: sources that change meanwhile would make its figures those of two programs.
const built = new Map<string, Promise<string>>();
const once = (name: string, make: () => Promise<string>): Promise<string> => {
  const known = built.get(name) ?? make();
  built.set(name, known);
  return known;
};

/**
 * The gateway as its users start it, built anew when it is older than its sources; or the one in folder `build` as it is. Who asks first
 * decides for the run.
 */
export const buildGateway = (build?: string): Promise<string> =>
  once("the gateway", async () => {
    if (build !== undefined) return await findMain(build);
    if (isStale()) await runProgram("npm", ["run", "build"], { timeoutMs: 120_000 });
    return DIST;
  });

const findMain = async (build: string): Promise<string> => {
  const file = join(build, "main.js");
  if (!existsSync(file)) throw new Error(`--build ${build}: there is no main.js in it`);
  return file;
};

// Inside node_modules, so that the packages that stay outside the bundles are found from there.
const OUT = "node_modules/.cache/agent-gateway-bench";

/** A file of the gateway, and which one is built in its place. */
export type Instead = Readonly<Record<string, string>>;

/** Builds one of the bench's own servers as the gateway is built, so that neither pays for a loader. */
export const buildServer = async (name: string, instead?: Instead): Promise<string> => {
  const file = await buildProgram("servers", name, instead);
  await once(`the worker of ${name}`, () => buildWorker(dirname(file)));
  return file;
};

/** The thread of a store in a file, found beside the chunks of the program that has one. */
const buildWorker = async (outdir: string): Promise<string> => {
  const entryPoints = { "sqlite-worker": "src/store/sqlite/worker/worker.ts" };
  await build({ ...COMMON, entryPoints, outdir });
  return outdir;
};

const COMMON = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  logLevel: "warning",
} satisfies BuildOptions;

/** Builds one of the bench's own clients. */
export const buildClient = (name: string): Promise<string> => buildProgram("clients", name);

const buildProgram = (folder: string, name: string, instead: Instead = {}): Promise<string> =>
  once(name, async () => {
    await build({
      ...COMMON,
      entryPoints: [`test/bench/${folder}/${name}.ts`],
      outdir: join(OUT, name),
      outExtension: { ".js": ".mjs" },
      splitting: true,
      plugins: [replacing(instead)],
    });
    return join(OUT, name, `${name}.mjs`);
  });

/** Fails the build when a file that is to be replaced is not in it: it would measure what it says that it leaves out. */
const replacing = (instead: Instead): Plugin => ({
  name: "instead",
  setup: ({ onLoad, onEnd }) => {
    const left = new Set(Object.keys(instead));
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const name = relative(process.cwd(), path);
      const other = instead[name];
      if (other === undefined) return undefined;
      left.delete(name);
      return { contents: readFileSync(other, "utf8"), loader: "ts", resolveDir: dirname(resolve(other)) };
    });
    onEnd(() => ({ errors: [...left].map((name) => ({ text: `${name} is not in this program any more` })) }));
  },
});
