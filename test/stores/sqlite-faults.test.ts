import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import type { Answers, Calls, FromWorker } from "#store/sqlite/messages.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import { packStart } from "#store/sqlite/turn-orders.ts";
import { Batches } from "#store/sqlite/worker/batches.ts";
import { type Database, openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate } from "#store/sqlite/worker/migrate.ts";
import { loadState } from "#store/sqlite/worker/state.ts";
import type { StoreNotice } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { mortalWorker, newPath, sqlite } from "./sqlite-engine.ts";
import { LOST, openWorld, type World } from "./world.ts";

const FULL_MS = 250;

/** The worker's half in this thread, with its database at hand. */
const openBatches = () => {
  const path = newPath();
  const db = openDatabase(path);
  migrate(db, path, 1);
  const posted: FromWorker[] = [];
  const batches = new Batches(db, {
    state: loadState(db, { time: 0, offset: 0 }),
    post: (message) => posted.push(message),
    startThread: () => expect.unreachable("so few batches need no other thread"),
  });
  return { db, batches, answers: () => posted.at(-1) as Answers, posted };
};

const starting = (world: World, time: number, text = "hello"): Calls => [
  "startTurn",
  time,
  packStart(world.order({ text })),
];
const reading = (time: number): Calls => ["getSession", time, "chat:a"];
const refusalsOf = ({ refusals }: Answers) => refusals.map(({ at, refusal }) => [at, refusal.name]);

/** Makes the next commit fail. */
const failCommit = (db: Database, code: string): void => {
  Object.defineProperty(db, "commit", {
    configurable: true,
    value: () => {
      Reflect.deleteProperty(db, "commit");
      throw Object.assign(new Error("disk I/O error"), { code });
    },
  });
};

describe("a SQLite store whose disk is full", () => {
  it("refuses what writes, answers what reads, and writes again when there is room", async () => {
    await using world = await openWorld(sqlite);
    const { db, batches, answers } = openBatches();
    batches.run(starting(world, 1));
    expect(refusalsOf(answers())).toEqual([]);
    const [pages] = db.query("PRAGMA page_count").get<[number]>([]) ?? [0];
    db.exec(`PRAGMA max_page_count = ${pages}`);
    const large = "x".repeat(100_000);
    batches.run([...starting(world, 2, large), ...reading(2), ...starting(world, 2)]);
    expect(refusalsOf(answers())).toEqual([
      [0, "store-full"],
      [2, "store-full"],
    ]);
    expect(answers().values[1]).toMatchObject({ lastSeq: 2 });
    expect(answers().news).toEqual([]);
    batches.run(["ping", 2 + FULL_MS, undefined, ...reading(2 + FULL_MS)]);
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    db.exec("PRAGMA max_page_count = 1000000");
    batches.run([...starting(world, 2 + 2 * FULL_MS - 1), ...reading(2)]);
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    batches.run(["ping", 2 + 2 * FULL_MS, undefined]);
    expect(refusalsOf(answers())).toEqual([]);
    batches.run([...starting(world, 2 + 2 * FULL_MS, large), ...reading(2 + 2 * FULL_MS)]);
    expect(refusalsOf(answers())).toEqual([]);
    expect(answers().values[1]).toMatchObject({ lastSeq: 4, turnsQueued: 2 });
    db.close();
  });

  it("stays so for who asks until what was refused would fit, and takes meanwhile what fits", async () => {
    await using world = await openWorld(sqlite);
    const { db, batches, answers, posted } = openBatches();
    const notices = () => posted.flatMap((one) => (one.kind === "noticed" ? one.notice.name : []));
    const [pages] = db.query("PRAGMA page_count").get<[number]>([]) ?? [0];
    db.exec(`PRAGMA max_page_count = ${pages + 40}`);
    batches.run(starting(world, 1, "x".repeat(500_000)));
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    for (const time of [1 + FULL_MS, 1 + 2 * FULL_MS]) {
      batches.run(["ping", time, undefined, ...starting(world, time)]);
      expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    }
    expect(notices()).toEqual(["unavailable"]);
    db.exec("PRAGMA max_page_count = 1000000");
    batches.run(["ping", 1 + 3 * FULL_MS, undefined]);
    expect(refusalsOf(answers())).toEqual([]);
    expect(notices()).toEqual(["unavailable", "available"]);
    db.close();
  });

  it("goes on with leases meanwhile", async () => {
    await using world = await openWorld(sqlite);
    const { db, batches, answers } = openBatches();
    const claim = { now: 1, node: "node_a", leaseMs: 1_000, replyMessageId: "msg_r" };
    const order = world.order({ claim });
    batches.run(["startTurn", 1, packStart(order)]);
    failCommit(db, "SQLITE_FULL");
    batches.run(starting(world, 2));
    expect(refusalsOf(answers())).toEqual([[0, "store-full"]]);
    const held = { turnId: order.turnId, sessionId: "chat:a", node: "node_a", fence: 1 };
    batches.run(["extendClaims", 3, { claims: [held], leaseMs: 5_000 }]);
    expect(answers().values).toEqual([[]]);
    batches.run(["sweep", 4_000, sweepAt(4_000)]);
    batches.run(["getTurn", 4_001, order.turnId]);
    expect(answers().values[0]).toMatchObject({ status: "running", attempt: 1 });
    db.close();
  });
});

const sweepAt = (now: number) => ({
  ...{ now, maxAttempts: 3, lost: { name: "turn-failed", detail: undefined } },
  ...{ sessionsBefore: 0, webhookSessionsBefore: 0, usageBefore: 0, gatewayBefore: 0, keysBefore: 0, eventsBefore: 0 },
});

describe("a SQLite store whose disk fails", () => {
  for (const code of ["SQLITE_IOERR_FSYNC", "SQLITE_CORRUPT"]) {
    it(`answers nothing of a batch whose commit failed with ${code}, and commits nothing on that connection again`, async () => {
      await using world = await openWorld(sqlite);
      const { db, batches, posted } = openBatches();
      failCommit(db, code);
      batches.run([...starting(world, 1), ...reading(1)]);
      expect(posted).toEqual([{ kind: "lost", detail: "disk I/O error" }]);
      expect(batches.isLost).toBe(true);
    });
  }

  it("answers with store-unavailable while it is opened anew, goes on by itself, and holds on to its claims", async () => {
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
    await expect(store.sweep({ ...sweepAt(clock.now()), lost: LOST })).rejects.toMatchObject({
      name: "store-unavailable",
      extra: { retryAfterMs: expect.any(Number) },
    });
    await expect(store.ping()).rejects.toMatchObject({ name: "store-unavailable" });
    world.told.length = 0;
    const told = world.hears(({ kind }) => kind === "work");
    await clock.advance(100);
    await told;
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

describe("a call that fails beside others", () => {
  it("is refused alone, and the others are kept", async () => {
    await using world = await openWorld(sqlite);
    const { db, batches, answers } = openBatches();
    batches.run([...starting(world, 1), "endTurn", 1, undefined, ...starting(world, 1)]);
    const place = (seq: number, bytes: number) => [expect.any(Number), bytes, seq, false];
    expect(answers().values).toEqual([place(2, 5), undefined, place(4, 10)]);
    expect(refusalsOf(answers())).toEqual([[1, "internal"]]);
    // The first of the session alone can be claimed.
    expect(answers().news).toEqual([{ kind: "work", at: 0 }]);
    batches.run(reading(2));
    expect(answers().values[0]).toMatchObject({ lastSeq: 4, turnsQueued: 2 });
    db.close();
  });
});

describe("the driver", () => {
  const run = (statement: string) => {
    const driver = createRequire(import.meta.url).resolve("libsql");
    const program = `const db = new (require(${JSON.stringify(driver)}))(":memory:"); ${statement}; console.log("alive")`;
    return spawnSync(process.execPath, ["-e", program], { encoding: "utf8" });
  };

  it("ends the whole process for a Buffer that is the only parameter, and not where it is in an array", () => {
    expect(run(`db.prepare("SELECT ?").get(Buffer.from("x"))`).signal).toBe("SIGABRT");
    expect(run(`db.prepare("SELECT ?").get([Buffer.from("x")])`).stdout).toBe("alive\n");
  });

  it("ends the whole process for a boolean", () => {
    expect(run(`db.prepare("SELECT ?").get([true])`).signal).toBe("SIGABRT");
  });

  it("cuts text at its first NUL and spoils half characters, which is why neither reaches it", () => {
    const { stdout } = run(`console.log(JSON.stringify(db.prepare("SELECT ?, ?").raw().get(["a\\0b", "\\ud83d"])))`);
    expect(JSON.parse(stdout.split("\n")[0] as string)).toEqual(["a", "\ufffd"]);
  });
});
