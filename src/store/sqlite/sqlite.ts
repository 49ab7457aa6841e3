import type { Clock } from "#kit/clock.ts";
import type { Store, StoreNotice, StoreWatcher } from "#store/store.ts";
import { inboundCalls } from "./inbound.ts";
import { Link, type StartThread } from "./link.ts";
import { lockFile } from "./lock.ts";
import { behindLink, exposureOf, makeOwn } from "./own-file.ts";
import { readCalls } from "./reads.ts";
import { turnCalls } from "./turns.ts";

/** The worker as it is built: beside the chunk that this file becomes. From sources it is the one of the last build. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/chunks/sqlite-worker.js" : "./sqlite-worker.js",
  import.meta.url,
);

/**
 * A file, for one process at a time. A thread of its own has the connection; calls that come together share a transaction, and are
 * answered when it is on disk. Rejects, in a sentence, when the file cannot be opened.
 */
export const createSqliteStore = async ({
  clock,
  path: named,
  notice = () => {},
  worker = WORKER,
}: {
  clock: Clock;
  path: string;
  notice?: (notice: StoreNotice) => void;
  /** The thread's program, or who starts one. */
  worker?: URL | StartThread;
}): Promise<Store> => {
  makeOwn(named);
  const path = behindLink(named);
  const lock = lockFile(path);
  const link = new Link(clock, { path, worker, notice, beforeReopening: lock.renew });
  try {
    await link.open();
  } catch (error) {
    lock.release();
    throw error;
  }
  const exposure = exposureOf(path);
  if (exposure !== undefined) notice({ name: "exposed", detail: exposure });
  return {
    kind: "sqlite",
    durable: true,
    epoch: link.epoch,
    watch: (watcher: StoreWatcher) => link.watch(watcher),
    ping: () => link.call("ping", undefined),
    ...turnCalls(link),
    ...readCalls(link),
    ...inboundCalls(link),
    [Symbol.asyncDispose]: async () => {
      await link.close();
      lock.release();
    },
  };
};
