import { EventEmitter } from "node:events";
import { MessageChannel, type Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import type { Answers, Call, CallOrder, FromWorker } from "#store/sqlite/messages.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import { Batches } from "#store/sqlite/worker/batches.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate } from "#store/sqlite/worker/migrate.ts";
import { SqliteRecords } from "#store/sqlite/worker/records.ts";
import { serve } from "#store/sqlite/worker/serve.ts";
import type { StartThread } from "#store/sqlite/worker-link.ts";
import { newPath } from "./sqlite-engine.ts";
import { openWorld, turnOrder } from "./world.ts";

/** The worker's part of the store in the test's thread. The test ends each sync. */
function openSyncing() {
  const path = newPath();
  const db = openDatabase(path);
  migrate(db, path, 1);
  const posted: FromWorker[] = [];
  const syncs: ((error?: unknown) => void)[] = [];
  db.sync = (synced) => syncs.push(synced);
  const batches = new Batches(db, { records: new SqliteRecords(db), offset: 0, post: (one) => posted.push(one) });
  const run = (call: Call, isOutOfOrder = false) => batches.run({ calls: [call], isOutOfOrder });
  return { batches, run, posted, endSync: (error?: unknown) => syncs.shift()?.(error), syncs };
}

let calls = 0;
function call(name: string, ...args: unknown[]): Call {
  return { id: ++calls, name, now: 1, time: 1, args };
}
function starting(): Call {
  return call("startTurn", turnOrder(1));
}
function reading(): Call {
  return call("getSession", "chat:a");
}
function answersOf(message: FromWorker | undefined): unknown[] {
  return (message as Answers).answers.map(({ value }) => value);
}
const STARTED = expect.objectContaining({ replayed: false });

/** The store's worker, run in the test's thread. It records the calls of each message, and delivers answers only while `isOpen`. */
function watchedThread() {
  const sent: string[][] = [];
  const held: FromWorker[] = [];
  let isOpen = true;
  let deliver = (_: FromWorker): void => {};
  const start: StartThread = ({ port, ...order }) => {
    const { port1, port2 } = new MessageChannel();
    const worker = Object.assign(new EventEmitter(), { terminate: async () => 0 });
    deliver = (message) => port.postMessage(message);
    port.on("message", (message: CallOrder | "close") => {
      if (message !== "close") sent.push(message.calls.map(({ name }) => name));
      port1.postMessage(message);
    });
    port1.on("message", (message: FromWorker) => {
      const seen = message.kind === "answers" ? { ...message, isSlow: thread.isSlow } : message;
      if (isOpen) deliver(seen);
      else held.push(seen);
    });
    port1.once("close", () => {
      port.close();
      worker.emit("exit", 0);
    });
    serve({ ...order, port: port2 });
    return worker as unknown as Worker;
  };
  const thread = {
    start,
    sent,
    /** True if the thread reports a slow disk. */
    isSlow: false,
    hold: () => {
      isOpen = false;
    },
    release: () => {
      isOpen = true;
      for (const message of held.splice(0)) deliver(message);
    },
  };
  return thread;
}

describe("a SQLite store that syncs its disk", () => {
  it("runs read-only calls during a sync, and answers them after it", () => {
    const { run, posted, endSync, syncs } = openSyncing();
    run(starting());
    run(reading(), true);
    expect(posted).toEqual([]);
    endSync();
    expect(posted).toMatchObject([{ kind: "answers", isFree: true }]);
    expect(answersOf(posted[0])).toEqual([STARTED, expect.objectContaining({ sessionId: "chat:a", lastSeq: 2 })]);
    run(reading(), true);
    expect(posted[1]).toMatchObject({ isFree: false, answers: [{ value: { lastSeq: 2 } }] });
    expect(syncs).toEqual([]);
  });

  it("answers writes that arrive during a sync only after the next sync", () => {
    const { run, posted, endSync } = openSyncing();
    run(starting());
    run(starting());
    endSync();
    expect(posted).toEqual([]);
    endSync();
    expect(answersOf(posted[0])).toEqual([STARTED, STARTED]);
  });

  it("stops running and answering calls after a failed sync", () => {
    const { batches, run, posted, endSync } = openSyncing();
    run(starting());
    run(reading(), true);
    endSync(new Error("disk I/O error"));
    expect(posted).toEqual([{ kind: "lost", detail: "disk I/O error" }]);
    expect(batches.isLost).toBe(true);
  });

  it("answers all calls before it closes its file", () => {
    const { batches, run, posted, endSync } = openSyncing();
    let isClosed = false;
    run(starting());
    batches.close(() => {
      isClosed = true;
    });
    expect(isClosed).toBe(false);
    endSync();
    expect(answersOf(posted[0])).toEqual([STARTED]);
    expect(isClosed).toBe(true);
  });

  it("receives read-only calls immediately if the disk is slow, before waiting writes", async () => {
    const thread = watchedThread();
    await using world = await openWorld({
      name: "sqlite",
      open: (clock) => createSqliteStore({ clock, path: newPath(), worker: thread.start }),
    });
    const { store } = world;
    for (const isSlow of [false, true]) {
      thread.isSlow = isSlow;
      await world.start({ session: "chat:other" });
      thread.sent.length = 0;
      thread.hold();
      const calls = [world.start()];
      await expect.poll(() => thread.sent).toEqual([["startTurn"]]);
      calls.push(world.start());
      const read = store.getSession("chat:a");
      if (isSlow) await expect.poll(() => thread.sent.slice(1)).toEqual([["getSession"]]);
      else await world.clock.settle();
      expect(thread.sent).toHaveLength(isSlow ? 2 : 1);
      thread.release();
      await Promise.all(calls);
      expect(thread.sent.at(-1)).toEqual(isSlow ? ["startTurn"] : ["startTurn", "getSession"]);
      expect((await read)?.lastSeq).toBe(isSlow ? 6 : 4);
    }
  });

  it("sends waiting writes before it closes", async () => {
    const thread = watchedThread();
    const world = await openWorld({
      name: "sqlite",
      open: (clock) => createSqliteStore({ clock, path: newPath(), worker: thread.start }),
    });
    thread.hold();
    const first = world.start();
    await expect.poll(() => thread.sent).toHaveLength(1);
    const second = world.start();
    const closed = world[Symbol.asyncDispose]();
    thread.release();
    await closed;
    expect([(await first).seq, (await second).seq]).toEqual([2, 4]);
  });
});
