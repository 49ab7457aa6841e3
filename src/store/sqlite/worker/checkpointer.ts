import { parentPort } from "node:worker_threads";
import { openDriver } from "../driver.ts";
import { syncFile } from "./database.ts";

const BUSY_MS = 1_000;

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
