import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { buildConsole } from "./build-console.ts";
import { buildDocs } from "./build-docs.ts";
import { generateCode } from "./generate/code.ts";
import { writeFiles } from "./generate/output.ts";

const common = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  legalComments: "none",
  logLevel: "warning",
} satisfies BuildOptions;
const DIST = "dist";

// Generated files that are not committed. They are written before the build starts, so that they are not newer than the build.
writeFiles(generateCode("specs"), "generated");
const began = new Date();
/** The folder of a new build before it replaces the previous one. */
const next = join(DIST, `next-${process.pid}`);
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/**
 * The time for which a gateway of the previous build still finds the files that it loads late. A build for others (`--clean`) keeps no older file.
 */
const KEPT_MS = process.argv.includes("--clean") ? 0 : 24 * 3_600_000;

/** The packages of the clients, which `npm run build:clients` creates. */
const CLIENTS = join(DIST, "clients", sep);

/** Replaces the old build with the new one, file by file: a process that starts meanwhile finds complete files of either. */
async function replace(): Promise<void> {
  const built = (await filesIn(next)).map((file) => file.slice(next.length + 1));
  // A chunk is named after its content, so main.js is written last. A built file gets the time at which its sources were read.
  const inOrder = built.sort((one, other) => Number(one === "main.js") - Number(other === "main.js"));
  for (const file of inOrder) {
    await mkdir(dirname(join(DIST, file)), { recursive: true });
    await utimes(join(next, file), began, began);
    await rename(join(next, file), join(DIST, file));
  }
  // Another build may delete the file meanwhile.
  // The time of a built file is rounded, and may be before the start of the build.
  const isBuilt = new Set(built.map((file) => join(DIST, file)));
  for (const old of await filesIn(DIST).catch(() => [])) {
    if (old.startsWith(CLIENTS) || isBuilt.has(old)) continue;
    const { mtimeMs } = await stat(old).catch(() => ({ mtimeMs: Infinity }));
    if (mtimeMs < began.getTime() - KEPT_MS) await rm(old, { force: true });
  }
}

async function make(): Promise<void> {
  // Our own code is one bundle; packages are not bundled, so that `npm audit` and patches find them. Modules that are loaded late (Express, the
  // specs, drivers) become separate chunks.
  await build({
    ...common,
    entryPoints: ["src/main.ts"],
    outdir: next,
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
  });
  // The program of a thread, which must be next to the chunk that starts it. It is built separately, so that the gateway's start reads no further
  // files.
  await build({
    ...common,
    entryPoints: { "sqlite-worker": "src/store/sqlite/worker/worker.ts" },
    outdir: join(next, "chunks"),
  });
  await buildConsole(join(next, "console"));
  await buildDocs(join(next, "docs"));
}

try {
  await make();
  await replace();
} finally {
  await rm(next, { recursive: true, force: true });
}
