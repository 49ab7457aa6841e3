import { EventEmitter } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Worker } from "node:worker_threads";
import { buildSync } from "esbuild";
import { onTestFinished } from "vitest";
import type { Clock } from "#kit/clock.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import { serve } from "#store/sqlite/worker/serve.ts";
import type { StartThread } from "#store/sqlite/worker-link.ts";
import type { Store } from "#store/store.ts";
import type { Engine } from "./world.ts";

const root = new URL("../../", import.meta.url).pathname;
const built = join(root, "node_modules/.cache/sqlite-worker");
export const workerUrl = pathToFileURL(join(built, "worker.js"));
const { outputFiles } = buildSync({
  entryPoints: { worker: join(root, "src/store/sqlite/worker/worker.ts") },
  outdir: built,
  write: false,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  logLevel: "warning",
});
mkdirSync(built, { recursive: true });
// Replaced atomically: other processes of the run load their stores from there at the same time.
for (const { path, contents } of outputFiles) {
  writeFileSync(`${path}.${process.pid}`, contents);
  renameSync(`${path}.${process.pid}`, path);
}

/** In memory, if the system has a file system for that: the suite's results do not depend on the speed of a disk. */
const temporary = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

const paths = new WeakMap<Store, string>();

/** A path for a store, in a separate folder that is deleted after the test. */
export function newPath(): string {
  const folder = mkdtempSync(join(temporary, "gateway-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "store.db");
}

/** The store's thread without a thread: starting one takes longer than most tests, and its driver could end this process. */
export const inThisThread: StartThread = (order) => {
  const thread = Object.assign(new EventEmitter(), { terminate: async () => 0 });
  order.port.once("close", () => thread.emit("exit", 0));
  serve(order);
  return thread as unknown as Worker;
};

/** Opens a store with the worker of the current sources, by default in a thread. */
export async function openSqlite(clock: Clock, path: string, worker: URL | StartThread = workerUrl): Promise<Store> {
  const store = await createSqliteStore({ clock, path, worker });
  paths.set(store, path);
  return store;
}

export const sqlite: Engine = {
  name: "sqlite",
  open: (clock) => openSqlite(clock, newPath(), inThisThread),
  reopen: async (store, clock) => {
    const path = pathOf(store);
    await store[Symbol.asyncDispose]();
    return await openSqlite(clock, path, inThisThread);
  },
};

/** The path of a store's file. */
export function pathOf(store: Store): string {
  const path = paths.get(store);
  if (path === undefined) throw new Error("no store of this engine");
  return path;
}

/** The worker, which ends with the first call after a file `<path>.end` exists. */
export function mortalWorker(): URL {
  const url = pathToFileURL(join(dirname(newPath()), "mortal.mjs"));
  writeFileSync(
    url,
    `import { workerData } from "node:worker_threads";
    import { EventEmitter } from "node:events";
import { existsSync, rmSync } from "node:fs";
    const end = workerData.path + ".end";
    workerData.port.on("message", () => {
      if (!existsSync(end)) return;
      rmSync(end);
      process.exit(1);
    });
    await import(${JSON.stringify(workerUrl.href)});`,
  );
  return url;
}
