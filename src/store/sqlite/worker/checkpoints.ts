import type { Worker } from "node:worker_threads";
import type { Database } from "./database.ts";
import { kindOf } from "./failures.ts";

/** Starts the thread that `serveCheckpoints` runs in. */
export type StartCheckpointer = () => Worker;

/** Seldom enough that a page that changes with each batch is brought once for many, and before the log is so long that SQLite brings it itself. */
const BATCHES = 128;

/**
 * Keeps the log short. To bring it into the file takes tens of milliseconds, most of them the disk's: another thread does it, and
 * commits go on. These write little meanwhile, which is brought here, between two batches: the log begins anew only when nothing
 * is left in it.
 */
export class Checkpoints {
  readonly #db: Database;
  readonly #startThread: StartCheckpointer;
  readonly #lose: (error: unknown) => void;
  #thread: Worker | undefined;
  #since = 0;
  #isUnderWay = false;

  constructor(db: Database, startThread: StartCheckpointer, lose: (error: unknown) => void) {
    this.#db = db;
    this.#startThread = startThread;
    this.#lose = lose;
  }

  /** A batch is on disk. */
  committed(): void {
    if (++this.#since < BATCHES || this.#isUnderWay) return;
    this.#since = 0;
    this.#isUnderWay = true;
    this.#thread ??= this.#start();
    this.#thread.postMessage(this.#db.file);
  }

  /** Resolves when the other thread has its file closed. */
  async close(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    if (!thread) return;
    thread.removeAllListeners();
    thread.ref();
    const ended = new Promise((resolve) => thread.once("exit", resolve).once("error", resolve));
    thread.postMessage("close");
    await ended;
  }

  #start(): Worker {
    const thread = this.#startThread();
    thread.unref();
    thread.on("message", (failure: { message: string; code: unknown } | undefined) => {
      this.#isUnderWay = false;
      if (failure) this.#failed(Object.assign(new Error(failure.message), { code: failure.code }));
      else this.#bringRest();
    });
    thread.on("error", (error) => {
      this.#thread = undefined;
      this.#isUnderWay = false;
      this.#failed(error);
    });
    return thread;
  }

  #bringRest(): void {
    try {
      this.#db.checkpoint();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The log grows meanwhile, and is read. */
  #failed(error: unknown): void {
    if (kindOf(error) === "lost") this.#lose(error);
  }
}
