import { join, resolve } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { GatewayProcess, main, type ProcessOptions, root } from "#test/harness/process.ts";

// Inside node_modules, so that packages outside the bundles are found.
const OUT = join(root, `node_modules/.cache/agent-gateway-next-${process.pid}`);

/** The lists of migrations, and their replacements in the next version. */
const INSTEAD: Readonly<Record<string, string>> = {
  [join(root, "src/store/sqlite/schema.ts")]: join(import.meta.dirname, "next-sqlite.ts"),
  [join(root, "src/store/postgres/migrations/migrations.ts")]: join(import.meta.dirname, "next-postgres.ts"),
};

const nextVersion: Plugin = {
  name: "next-version",
  setup: ({ onResolve }) => {
    onResolve({ filter: /(?:migrations|schema)\.ts$/ }, ({ path, resolveDir, importer }) => {
      const other = path.startsWith(".") ? INSTEAD[resolve(resolveDir, path)] : undefined;
      return other && importer !== other ? { path: other } : undefined;
    });
  },
};

let built: Promise<string> | undefined;

/** The gateway of a future version: this one, with one more migration for each store. */
function buildNext(): Promise<string> {
  built ??= (async () => {
    const how = {
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20.19",
      packages: "external",
      logLevel: "warning",
      absWorkingDir: root,
      plugins: [nextVersion],
    } satisfies BuildOptions;
    await build({
      ...how,
      entryPoints: ["src/main.ts"],
      outdir: OUT,
      splitting: true,
      chunkNames: "chunks/[name]-[hash]",
    });
    await build({
      ...how,
      entryPoints: { "sqlite-worker": "src/store/sqlite/worker/worker.ts" },
      outdir: join(OUT, "chunks"),
    });
    return join(OUT, "main.js");
  })();
  return built;
}

/** Starts a process of that version; it may be refused. */
export async function startNext(options: Omit<ProcessOptions, "command">): Promise<GatewayProcess> {
  const next = await buildNext();
  return new GatewayProcess({ ...options, command: (usual) => usual.map((word) => (word === main ? next : word)) });
}
