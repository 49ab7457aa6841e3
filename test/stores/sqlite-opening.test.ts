import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NO_POLICY } from "#store/policy.ts";
import { migrations, OLDEST } from "#store/sqlite/schema.ts";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { newestOf } from "#store/sqlite/worker/migrate.ts";
import type { StoreNotice } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { groupOf } from "./groups.ts";
import { newPath, openSqlite, pathOf, sqlite, workerUrl } from "./sqlite-engine.ts";
import { LEASE_MS, LOST, openWorld } from "./world.ts";

const NEWEST = newestOf(migrations);

function open(path: string) {
  return openSqlite(createManualClock(), path);
}

/** Creates a file with other statements, like another program or version. */
function write(path: string, ...statements: string[]): void {
  const db = openDatabase(path);
  for (const statement of statements) db.exec(statement);
  db.close();
}

describe("opening a SQLite store", () => {
  it("F25: refuses a file of a newer gateway", async () => {
    const path = newPath();
    await (await open(path))[Symbol.asyncDispose]();
    write(path, `PRAGMA user_version = ${NEWEST + 1}`);
    await expect(open(path)).rejects.toThrow(
      `The SQLite file ${path} was written by a newer gateway: it has version ${NEWEST + 1}, and this gateway supports up to ${NEWEST}.`,
    );
  });

  it("refuses a file from before the first released version", async () => {
    const path = newPath();
    await (await open(path))[Symbol.asyncDispose]();
    write(path, `PRAGMA user_version = ${OLDEST - 1}`);
    await expect(open(path)).rejects.toThrow(
      `The SQLite file ${path} is from before 0.2.0: it has version 3, and this gateway supports 4 and later. Set store.path to another file.`,
    );
  });

  it("refuses a file of another program, and changes nothing in it", async () => {
    const path = newPath();
    write(path, "CREATE TABLE theirs (a)");
    await expect(open(path)).rejects.toThrow(`The SQLite file ${path} belongs to another program.`);
    const db = openDatabase(path);
    expect(db.query("SELECT name FROM sqlite_schema").all([])).toEqual([["theirs"]]);
    db.close();
  });

  it("refuses a file that is not a database", async () => {
    const path = newPath();
    writeFileSync(path, "{ store: 'sqlite' }\n".repeat(100));
    await expect(open(path)).rejects.toThrow(`The SQLite file ${path} is not a database.`);
  });

  it("F02: refuses a file with a damaged page, whichever page it is", async () => {
    const path = newPath();
    {
      await using world = await openWorld({ name: "sqlite", open: (clock) => openSqlite(clock, path) });
      for (let n = 0; n < 20; n++) await world.start({ session: `chat:${n}`, text: "x".repeat(5_000) });
    }
    const whole = readFileSync(path);
    for (let at = 8192; at < whole.length; at += 8192 * 7) {
      writeFileSync(path, Buffer.concat([whole.subarray(0, at), Buffer.alloc(600, 0xa5), whole.subarray(at + 600)]));
      await expect(open(path)).rejects.toThrow(/^The SQLite file .* is damaged/);
    }
    writeFileSync(path, whole);
    await (await open(path))[Symbol.asyncDispose]();
  });

  it("holds at most 16 MiB of the file's pages in memory, and maps none of it", () => {
    const db = openDatabase(newPath());
    const pragmaOf = (name: string) => db.query(`PRAGMA ${name}`).get<[number]>([])?.[0];
    expect([pragmaOf("cache_size"), pragmaOf("mmap_size")]).toEqual([-16 * 1024, 0]);
    db.close();
  });

  it("refuses a folder that does not exist", async () => {
    const path = join(newPath(), "missing", "store.db");
    await expect(open(path)).rejects.toThrow(/^The SQLite file .* cannot be locked/);
  });

  it("refuses a file that another store has open, until that store is closed", async () => {
    const path = newPath();
    const store = await open(path);
    await expect(open(path)).rejects.toThrow(`is in use by another gateway: it holds ${path}.lock.`);
    await store[Symbol.asyncDispose]();
    await (await open(path))[Symbol.asyncDispose]();
  });

  it("has the same epoch for the same file, and another epoch for another file", async () => {
    await using world = await openWorld(sqlite);
    const { epoch } = world.store;
    expect(epoch).toMatch(/^[\w-]{1,40}$/);
    await world.reopen();
    expect(world.store.epoch).toBe(epoch);
    await using other = await openWorld(sqlite);
    expect(other.store.epoch).not.toBe(epoch);
  });

  it("takes over the running turns of its predecessor with the first sweep: they can be claimed, and old claims are not valid", async () => {
    await using world = await openWorld(sqlite);
    const { turnId } = await world.start();
    const old = await world.claimNext();
    await world.reopen();
    await world.sweep();
    expect(world.store.agentCounts("main")).toMatchObject({ queued: 1, running: 0 });
    expect(await world.end(old, { reply: "late" })).toBe(false);
    expect((await world.claimNext()).turn).toMatchObject({ turnId, attempt: 2 });
    expect((await world.entries()).map(({ name }) => name).slice(2)).toEqual([
      "turn.started",
      "message.created",
      "turn.queued",
      "turn.started",
      "message.created",
    ]);
  });

  it("closes a group after its longest wait if the clock was set back while no process had the file", async () => {
    await using world = await openWorld(sqlite);
    const group = groupOf({ windowMs: 30_000, maxWaitMs: 60_000 });
    const send = () => world.start({ session: "webhook:a", surface: "hooks", group });
    const { turnId } = await send();
    world.clock.jump(-24 * 3_600_000);
    await world.reopen();
    for (let n = 0; n < 3; n++) {
      expect((await send()).turnId).toBe(turnId);
      await world.clock.advance(20_000);
    }
    expect((await world.claimNext()).turn.turnId).toBe(turnId);
  });

  it("fails a turn with the first sweep that was running when three processes ended", async () => {
    await using world = await openWorld(sqlite);
    const { turnId } = await world.start();
    for (let n = 0; n < 3; n++) {
      await world.claimNext();
      await world.reopen();
      await world.sweep({ maxAttempts: 3 });
    }
    expect(await world.store.getTurn(turnId)).toMatchObject({ status: "failed", error: LOST, attempt: 3 });
  });

  it("cancels a turn whose cancellation was requested before its process ended", async () => {
    await using world = await openWorld(sqlite);
    const { turnId } = await world.start();
    await world.claimNext();
    await world.store.cancelTurn(turnId, world.clock.now());
    await world.reopen();
    await world.sweep();
    expect(await world.store.getTurn(turnId)).toMatchObject({ status: "cancelled" });
  });

  it("continues the delay of a requeued turn, by the wall clock", async () => {
    await using world = await openWorld(sqlite);
    await world.start();
    await world.release(await world.claimNext(), LEASE_MS);
    await world.clock.advance(1_000);
    await world.reopen();
    expect(await world.claim()).toEqual({ turns: [], nextDueInMs: LEASE_MS - 1_000 });
    await world.clock.advance(LEASE_MS);
    expect((await world.claim()).turns).toHaveLength(1);
  });

  it("retries a message within an hour after the start, whatever the clock was when it was delayed", async () => {
    await using world = await openWorld(sqlite);
    const { store, clock } = world;
    await store.configure({ ...NO_POLICY, notify: [{ name: "ops", events: ["key.expiring"], agents: undefined }] });
    await store.notifyEvent({ now: 1, eventId: "ntf_1", type: "key.expiring", data: "{}" });
    const others = { free: 1, before: Infinity };
    const claim = () => world.store.claimOutgoing({ node: "node_a", leaseMs: LEASE_MS, free: {}, others });
    const [first] = (await claim()).claimed;
    if (!first) throw new Error("no message can be claimed");
    const step = { at: 1, name: "unused", detail: undefined };
    await store.releaseOutgoing(first.claim, { delayMs: 9e9, state: "retrying", reason: "HTTP 503", step });
    await world.reopen();
    expect(await claim()).toEqual({ claimed: [], nextDueInMs: 3_600_000 });
    await clock.advance(3_600_000);
    expect((await claim()).claimed).toHaveLength(1);
  });

  it("answers the calls made before it is closed, and refuses later ones", async () => {
    const world = await openWorld(sqlite);
    const started = world.start();
    const closed = world.store[Symbol.asyncDispose]();
    expect((await started).status).toBe("queued");
    await closed;
    await expect(world.store.ping()).rejects.toMatchObject({ name: "store-unavailable" });
  });
});

describe("F02: the log of a SQLite store that was not closed", () => {
  /** The files after a process was killed, with `change` applied to the log. */
  const leftBehind = async (change: (log: Buffer) => Buffer): Promise<string> => {
    await using world = await openWorld(sqlite);
    for (let n = 0; n < 20; n++) await world.start({ text: `message ${n}` });
    const path = newPath();
    const from = pathOf(world.store);
    copyFileSync(from, path);
    writeFileSync(`${path}-wal`, change(readFileSync(`${from}-wal`)));
    return path;
  };
  const reopen = async (path: string) => {
    const notices: StoreNotice[] = [];
    const clock = createManualClock();
    const notice = (one: StoreNotice) => notices.push(one);
    await using store = await createSqliteStore({ clock, path, notice, worker: workerUrl });
    return { notices, session: await store.getSession("chat:a") };
  };
  const FRAME = 24 + 8192;

  it("is read completely and without a warning if it is intact", async () => {
    const { notices, session } = await reopen(await leftBehind((log) => log));
    expect(session?.lastSeq).toBe(40);
    expect(notices).toEqual([]);
  });

  it.each([
    ["rubbish", (log: Buffer) => Buffer.concat([log, Buffer.alloc(2_500, "rubbish")]), 40],
    ["a last transaction that is not whole", (log: Buffer) => log.subarray(0, log.length - FRAME / 2), 38],
    ["a last transaction with a changed page", (log: Buffer) => flip(log, log.length - 100), 38],
  ])("loses an end that was not acknowledged, and reports the loss: %s", async (_, change, lastSeq) => {
    const { notices, session } = await reopen(await leftBehind(change));
    expect(session?.lastSeq).toBe(lastSeq);
    expect(notices).toMatchObject([{ name: "repaired", detail: expect.stringMatching(/was incomplete: \d+ bytes/) }]);
  });

  it("is refused if it is damaged before its end", async () => {
    const path = await leftBehind((log) => flip(log, 32 + FRAME * 6 + 2_000));
    await expect(reopen(path)).rejects.toThrow(
      `The SQLite file ${path} is damaged: its write-ahead log is broken in the middle.`,
    );
  });
});

function flip(log: Buffer, at: number): Buffer {
  const changed = Buffer.from(log);
  changed.writeUInt8((changed.readUInt8(at) + 1) & 255, at);
  return changed;
}
