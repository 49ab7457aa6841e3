import { EventEmitter } from "node:events";
import type { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { Checkpoints } from "#store/sqlite/worker/checkpoints.ts";
import type { Database } from "#store/sqlite/worker/database.ts";

/** A database that counts what is brought here, and a thread that says what it is told to. */
const played = () => {
  const said: unknown[] = [];
  let brought = 0;
  let started = 0;
  const lost: unknown[] = [];
  const threads: EventEmitter[] = [];
  const start = () => {
    started++;
    const thread = Object.assign(new EventEmitter(), {
      postMessage: (word: unknown) => said.push(word),
      ref: () => {},
      unref: () => {},
    });
    threads.push(thread);
    return thread as unknown as Worker;
  };
  const db = { checkpoint: () => brought++, file: 7 } as unknown as Database;
  const checkpoints = new Checkpoints(db, start, (error) => lost.push(error));
  const commit = (batches: number) => {
    for (let n = 0; n < batches; n++) checkpoints.committed();
  };
  const last = () => threads.at(-1) as EventEmitter;
  return { commit, said, lost, last, brought: () => brought, started: () => started };
};

it("has another thread bring the log, one pass at a time, and only the rest of it here", () => {
  const { commit, said, last, brought, started } = played();
  commit(127);
  expect(said).toEqual([]);
  commit(1_000);
  expect([said, brought()]).toEqual([[7], 0]);
  last().emit("message", undefined);
  expect(brought()).toBe(1);
  commit(1);
  expect([said, started()]).toEqual([[7, 7], 1]);
});

it("goes on with a longer log when a pass finds no room, and gives the connection up when the disk fails", () => {
  const { commit, lost, said, last, brought } = played();
  commit(128);
  last().emit("message", { message: "database or disk is full", code: "SQLITE_FULL" });
  expect([lost, brought()]).toEqual([[], 0]);
  commit(128);
  expect(said).toHaveLength(2);
  last().emit("message", { message: "disk I/O error", code: "SQLITE_IOERR_FSYNC" });
  expect(lost).toMatchObject([{ message: "disk I/O error" }]);
});

it("starts another thread when one has died", () => {
  const { commit, last, started } = played();
  commit(128);
  last().emit("error", new Error("out of memory"));
  commit(128);
  expect(started()).toBe(2);
});
