import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Answers, Call, FromWorker } from "#store/sqlite/messages.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import { Batches } from "#store/sqlite/worker/batches.ts";
import { type Database, openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate } from "#store/sqlite/worker/migrate.ts";
import { SqliteRecords } from "#store/sqlite/worker/records.ts";
import type { StoreNotice } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { mortalWorker, newPath, sqlite } from "./sqlite-engine.ts";
import { LOST, openWorld, sweepOrder, type World } from "./world.ts";

const REFUSED_MS = 250;

/** The worker's part in this thread, with access to its database. */
function openBatches() {
  const path = newPath();
  const db = openDatabase(path);
  migrate(db, path, 1);
  db.sync = (synced) => synced();
  const posted: FromWorker[] = [];
  const batches = new Batches(db, {
    records: new SqliteRecords(db),
    offset: 0,
    post: (message) => posted.push(message),
  });
  const run = (calls: Call[]) => batches.run({ calls, isOutOfOrder: false });
  return { db, batches, run, answers: () => posted.at(-1) as Answers, posted };
}

let calls = 0;
function call(name: string, time: number, ...args: unknown[]): Call {
  return { id: ++calls, name, now: time, time, args };
}
function starting(world: World, time: number, text = "hello"): Call {
  return call("startTurn", time, world.order({ text }));
}
function reading(time: number): Call {
  return call("getSession", time, "chat:a");
}
function refusalsOf({ answers }: Answers) {
  return answers.flatMap(({ refusal }, at) => (refusal ? [[at, refusal.name]] : []));
}
function valuesOf({ answers }: Answers) {
  return answers.map(({ value }) => value);
}

/** Makes the next commit or the next checkpoint fail. */
function failNext(db: Database, method: "commitUnsynced" | "checkpoint", code: string): void {
  Object.defineProperty(db, method, {
    configurable: true,
    value: () => {
      Reflect.deleteProperty(db, method);
      throw Object.assign(new Error("disk I/O error"), { code });
    },
  });
}

describe("a SQLite store whose disk is full", () => {
  it("refuses writes, answers reads, and accepts writes again when there is room", async () => {
    await using world = await openWorld(sqlite);
    const { db, run, answers } = openBatches();
    run([starting(world, 1)]);
    expect(refusalsOf(answers())).toEqual([]);
    const [pages] = db.query("PRAGMA page_count").get<[number]>([]) ?? [0];
    db.exec(`PRAGMA max_page_count = ${pages}`);
    const large = "x".repeat(100_000);
    run([starting(world, 2, large), reading(2), starting(world, 2)]);
    expect(refusalsOf(answers())).toEqual([
      [0, "store-full"],
      [2, "store-full"],
    ]);
    expect(valuesOf(answers())[1]).toMatchObject({ lastSeq: 2 });
    expect(answers().answers.flatMap(({ news = [] }) => news)).toEqual([]);
    run([starting(world, 2 + REFUSED_MS - 1), reading(2 + REFUSED_MS - 1)]);
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    run([call("ping", 2 + REFUSED_MS), reading(2 + REFUSED_MS)]);
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    db.exec("PRAGMA max_page_count = 1000000");
    run([call("ping", 2 + 2 * REFUSED_MS)]);
    expect(refusalsOf(answers())).toEqual([]);
    run([starting(world, 2 + 2 * REFUSED_MS, large), reading(2 + 2 * REFUSED_MS)]);
    expect(refusalsOf(answers())).toEqual([]);
    expect(valuesOf(answers())[1]).toMatchObject({ lastSeq: 4, turnsQueued: 2 });
    db.close();
  });

  it("reports that it is full until there is room for the refused amount, and accepts smaller writes meanwhile", async () => {
    await using world = await openWorld(sqlite);
    const { db, run, answers, posted } = openBatches();
    const notices = () => posted.flatMap((one) => (one.kind === "noticed" ? one.notice.name : []));
    const [pages] = db.query("PRAGMA page_count").get<[number]>([]) ?? [0];
    db.exec(`PRAGMA max_page_count = ${pages + 40}`);
    run([starting(world, 1, "x".repeat(500_000))]);
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    for (const time of [1 + REFUSED_MS, 1 + 2 * REFUSED_MS]) {
      run([call("ping", time), starting(world, time)]);
      expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    }
    expect(notices()).toEqual(["unavailable"]);
    db.exec("PRAGMA max_page_count = 1000000");
    run([call("ping", 1 + 3 * REFUSED_MS)]);
    expect(refusalsOf(answers())).toEqual([]);
    expect(notices()).toEqual(["unavailable", "available"]);
    db.close();
  });

  it("still extends leases", async () => {
    await using world = await openWorld(sqlite);
    const { db, run, answers } = openBatches();
    const claim = { now: 1, node: "node_a", leaseMs: 1_000, replyMessageId: "msg_r" };
    const order = world.order({ claim });
    run([call("startTurn", 1, order)]);
    failNext(db, "commitUnsynced", "SQLITE_FULL");
    run([starting(world, 2)]);
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    const held = { turnId: order.turnId, sessionId: "chat:a", node: "node_a", fence: 1 };
    run([call("extendClaims", 3, [held], 5_000)]);
    expect(valuesOf(answers())).toEqual([[]]);
    run([call("sweep", 4_000, sweepOrder(4_000))]);
    run([call("getTurn", 4_001, order.turnId)]);
    expect(valuesOf(answers())[0]).toMatchObject({ status: "running", attempt: 1 });
    db.close();
  });
});

describe("a SQLite store whose disk fails", () => {
  for (const code of ["SQLITE_IOERR_FSYNC", "SQLITE_CORRUPT"]) {
    it(`acknowledges no call of a batch whose commit failed with ${code}, and commits nothing on that connection again`, async () => {
      await using world = await openWorld(sqlite);
      const { db, batches, run, posted } = openBatches();
      failNext(db, "commitUnsynced", code);
      run([starting(world, 1), reading(1)]);
      expect(posted).toEqual([{ kind: "lost", detail: "disk I/O error" }]);
      expect(batches.isLost).toBe(true);
    });
  }

  it("continues with a longer log if a checkpoint finds no room, and drops the connection if the disk fails", async () => {
    await using world = await openWorld(sqlite);
    const { db, run, answers, posted } = openBatches();
    const runUntilCheckpoint = (code: string): void => {
      failNext(db, "checkpoint", code);
      while (Object.hasOwn(db, "checkpoint")) run([starting(world, 1)]);
    };
    runUntilCheckpoint("SQLITE_FULL");
    run([starting(world, 1)]);
    expect(refusalsOf(answers())).toEqual([]);
    runUntilCheckpoint("SQLITE_IOERR_FSYNC");
    expect(posted.at(-1)).toEqual({ kind: "lost", detail: "disk I/O error" });
    expect(posted.at(-2)).toMatchObject({ answers: [{ value: expect.anything() }] });
  });

  it("answers with store-unavailable while its file is reopened, recovers automatically, and still has its claims", async () => {
    const clock = createManualClock();
    const path = newPath();
    const worker = mortalWorker();
    const notices: string[] = [];
    const notice = ({ name }: StoreNotice) => notices.push(name);
    await using store = await createSqliteStore({ clock, path, notice, worker });
    await using world = await openWorld({ name: "sqlite", open: async () => store });
    const kept = await world.start();
    const claimed = await world.claimNext();
    writeFileSync(`${path}.end`, "");
    await expect(store.sweep({ ...sweepOrder(clock.now()), lost: LOST })).rejects.toMatchObject({
      name: "store-unavailable",
      extra: { retryAfterMs: expect.any(Number) },
    });
    await expect(store.ping()).rejects.toMatchObject({ name: "store-unavailable" });
    world.told.length = 0;
    const told = world.hears(({ kind }) => kind === "turn");
    await clock.advance(100);
    await told;
    await world.hears(({ kind }) => kind === "deliveriesLost");
    expect(notices).toEqual(["unavailable", "available"]);
    expect(await store.getTurn(kept.turnId)).toMatchObject({ status: "running", attempt: 1 });
    expect(
      await store.endTurn(claimed.claim, {
        now: 1,
        status: "completed",
        reply: "hi",
        error: undefined,
        usage: undefined,
      }),
    ).toBe(true);
  });
});

describe("a call that fails next to others in a batch", () => {
  it("is the only one that is refused; the others are stored", async () => {
    await using world = await openWorld(sqlite);
    const { db, run, answers } = openBatches();
    run([starting(world, 1), call("endTurn", 1), starting(world, 1)]);
    const started = (seq: number) => expect.objectContaining({ turn: expect.objectContaining({ seq }) });
    expect(valuesOf(answers())).toEqual([started(2), undefined, started(4)]);
    expect(refusalsOf(answers())).toEqual([[1, "internal"]]);
    // Only the first turn of the session can be claimed.
    const work = answers().answers.map(({ news = [] }) => news.some(({ kind }) => kind === "work"));
    expect(work).toEqual([true, false, false]);
    run([reading(2)]);
    expect(valuesOf(answers())[0]).toMatchObject({ lastSeq: 4, turnsQueued: 2 });
    db.close();
  });
});
