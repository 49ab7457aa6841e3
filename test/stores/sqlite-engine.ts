import { EventEmitter } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { buildSync } from "esbuild";
import { onTestFinished } from "vitest";
import type { Clock } from "#kit/clock.ts";
import type { StartThread } from "#store/sqlite/link.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import { serve } from "#store/sqlite/worker/serve.ts";
import type { Store } from "#store/store.ts";
import type { Engine } from "./world.ts";

const root = new URL("../../", import.meta.url).pathname;
const built = join(root, "node_modules/.cache/sqlite-worker", `worker-${process.pid}.js`);
export const workerUrl = pathToFileURL(built);
buildSync({
  entryPoints: [join(root, "src/store/sqlite/worker/worker.ts")],
  outfile: built,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20.19",
  packages: "external",
  logLevel: "warning",
});
process.once("exit", () => rmSync(built, { force: true }));

/** The store's thread, without a thread, as to start one takes longer than most tests: a process that its driver ends is this one. */
export const inThisThread: StartThread = (order) => {
  const thread = Object.assign(new EventEmitter(), { terminate: async () => 0 });
  order.port.once("close", () => thread.emit("exit", 0));
  serve(order, (path) => new Worker(workerUrl, { workerData: { checkpoints: path }, stderr: false }));
  return thread as unknown as Worker;
};

/** Memory, where the system has some for files: what the suite says of a store does not hang on a disk's pace. */
const temporary = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

const paths = new WeakMap<Store, string>();

/** A path for a store, in a folder of its own that goes with the test. */
export const newPath = (): string => {
  const folder = mkdtempSync(join(temporary, "gateway-sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "store.db");
};

/** Opens a store with the worker as its sources are now; in a thread of its own unless told. */
export const openSqlite = async (clock: Clock, path: string, worker: URL | StartThread = workerUrl): Promise<Store> => {
  const store = await createSqliteStore({ clock, path, worker });
  paths.set(store, path);
  return store;
};

export const sqlite: Engine = {
  name: "sqlite",
  open: (clock) => openSqlite(clock, newPath(), inThisThread),
  reopen: async (store, clock) => {
    const path = pathOf(store);
    await store[Symbol.asyncDispose]();
    return await openSqlite(clock, path, inThisThread);
  },
};

/** Where a store has its file; `world.ts` hands out stores that inherit from the engine's. */
export const pathOf = (store: Store): string => {
  const path = paths.get(store) ?? paths.get(Object.getPrototypeOf(store) as Store);
  if (path === undefined) throw new Error("no store of this engine");
  return path;
};

/** The worker, but for that it ends with the first call after a file `<path>.end` is there. */
export const mortalWorker = (): URL => {
  const url = pathToFileURL(join(dirname(newPath()), "mortal.mjs"));
  writeFileSync(
    url,
    `import { workerData } from "node:worker_threads";
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
};
