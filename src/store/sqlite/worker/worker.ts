import { Worker, workerData } from "node:worker_threads";
import type { WorkerOrder } from "../messages.ts";
import { serveCheckpoints } from "./checkpoints.ts";
import { serve } from "./serve.ts";

/** The same program, told to do less. */
const startCheckpointer = (path: string): Worker =>
  new Worker(new URL(import.meta.url), { workerData: { checkpoints: path }, stderr: false });

const order = workerData as WorkerOrder | { checkpoints: string };
if ("checkpoints" in order) serveCheckpoints(order.checkpoints);
else serve(order, startCheckpointer);
