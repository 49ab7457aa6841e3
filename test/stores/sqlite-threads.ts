import { EventEmitter } from "node:events";
import { Worker } from "node:worker_threads";
import type { StartThread } from "#store/sqlite/link.ts";
import type { WorkerOrder } from "#store/sqlite/messages.ts";

/** Stands in for a store's thread: it ends with the store, or when it is terminated. */
class Thread extends EventEmitter {
  readonly #worker: Worker;

  constructor(worker: Worker, order: WorkerOrder, closed: () => void) {
    super();
    this.#worker = worker.removeAllListeners();
    worker.on("error", (error) => this.emit("error", error));
    worker.on("exit", (code) => this.emit("exit", code));
    worker.on("message", () => {
      worker.removeAllListeners();
      closed();
      this.emit("exit", 0);
    });
    worker.postMessage(order, [order.port]);
  }

  terminate(): Promise<number> {
    return this.#worker.terminate();
  }
}

/** Starts threads that run `program`, or has one go on whose store was closed: to start one takes longer than most tests. */
export const recycledThreads = (program: URL): StartThread => {
  const idle: Worker[] = [];
  return (order) => {
    const worker = idle.pop() ?? new Worker(program, { stderr: false });
    worker.ref();
    const thread = new Thread(worker, order, () => {
      worker.unref();
      idle.push(worker);
    });
    return thread as unknown as Worker;
  };
};
