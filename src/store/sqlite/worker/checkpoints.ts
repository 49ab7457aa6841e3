import { parentPort, type Worker } from "node:worker_threads";
import { openDriver } from "../file.ts";
import { type Database, syncFile } from "./database.ts";
import { kindOf } from "./failures.ts";

/** Starts the thread that `serveCheckpoints` runs in. */
export type StartCheckpointer = () => Worker;

/** Seldom enough that a page that changes with each batch is brought once for many, and before the log is so long that SQLite brings it itself. */
const BATCHES = 128;
const BUSY_MS = 1_000;

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

/**
 * The program of a thread beside the store's own. For each message it brings the content of the log into the file, while commits
 * go on, and answers nothing, or the error. This content is on disk before the log may be written over.
 */
export const serveCheckpoints = (path: string): void => {
  const driver = openDriver(path);
  driver.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  driver.exec("PRAGMA synchronous = NORMAL");
  const checkpoint = driver.prepare("PRAGMA wal_checkpoint(PASSIVE)").raw();
  parentPort?.on("message", (file: number | "close") => {
    if (file === "close") {
      driver.close();
      parentPort?.close();
      return;
    }
    let failure: Error | undefined;
    try {
      checkpoint.get([]);
      // The driver syncs only a complete checkpoint, and the store's thread would then have to wait for that.
      syncFile(() => file);
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
    }
    // The code tells the kind of an error, and does not survive the way by itself.
    parentPort?.postMessage(failure && { message: failure.message, code: Reflect.get(failure, "code") });
  });
};
