import { parentPort } from "node:worker_threads";
import type { WorkerOrder } from "#store/sqlite/messages.ts";
import { serve } from "#store/sqlite/worker/serve.ts";

// The program of a thread that serves one store after another, and says when one was closed.
parentPort?.on("message", (order: WorkerOrder) => {
  order.port.once("close", () => parentPort?.postMessage("closed"));
  serve(order);
});
