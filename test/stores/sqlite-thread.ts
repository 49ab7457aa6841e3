import { parentPort, Worker } from "node:worker_threads";
import type { WorkerOrder } from "#store/sqlite/messages.ts";
import { serve } from "#store/sqlite/worker/serve.ts";

/** Beside this file, as it is built, is the store's own program. */
const startCheckpointer = (path: string) =>
  new Worker(new URL("worker.js", import.meta.url), { workerData: { checkpoints: path }, stderr: false });

// The program of a thread that serves one store after another, and says when one was closed.
parentPort?.on("message", (order: WorkerOrder) => {
  order.port.once("close", () => parentPort?.postMessage("closed"));
  serve(order, startCheckpointer);
});
