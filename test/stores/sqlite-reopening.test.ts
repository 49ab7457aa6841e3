import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createSqliteStore } from "#store/sqlite/sqlite.ts";
import type { StoreNotice } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { mortalWorker, newPath, openSqlite } from "./sqlite-engine.ts";
import { openWorld } from "./world.ts";

/** A store whose thread has ended; `change` is applied to its files before they are opened again. */
async function openLost(change: (path: string) => void | Promise<void>) {
  const clock = createManualClock();
  const path = newPath();
  const notices: string[] = [];
  const notice = ({ name }: StoreNotice) => notices.push(name);
  const store = await createSqliteStore({ clock, path, notice, worker: mortalWorker() });
  const world = await openWorld({ name: "sqlite", open: async () => store });
  const kept = await world.start();
  writeFileSync(`${path}.end`, "");
  await expect(store.ping()).rejects.toMatchObject({ name: "store-unavailable" });
  await change(path);
  return { clock, path, notices, store, kept, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}
type Lost = Awaited<ReturnType<typeof openLost>>;

function opensAgain({ clock, notices }: Lost) {
  return expect
    .poll(async () => {
      await clock.advance(1_000);
      return notices;
    })
    .toContain("available");
}

function staysAway({ clock, store }: Lost, why: RegExp) {
  return expect
    .poll(async () => {
      await clock.advance(1_000);
      return await store.ping().catch(({ message }: Error) => message);
    })
    .toMatch(why);
}

describe("a SQLite store whose file was moved before it is reopened", () => {
  const away = (path: string) => {
    for (const end of ["", "-wal", "-shm"]) if (existsSync(path + end)) renameSync(path + end, `${path}.away${end}`);
  };
  const back = (path: string) => {
    for (const end of ["", "-wal", "-shm"]) {
      rmSync(path + end, { force: true });
      if (existsSync(`${path}.away${end}`)) renameSync(`${path}.away${end}`, path + end);
    }
  };

  it("waits for the file, creates none, and continues with all acknowledged records", async () => {
    await using lost = await openLost(away);
    await staysAway(lost, /The SQLite file .* does not exist\./);
    expect(existsSync(lost.path)).toBe(false);
    back(lost.path);
    await opensAgain(lost);
    expect(await lost.store.getTurn(lost.kept.turnId)).toMatchObject({ status: "queued" });
  });

  it("does not open another store in its place", async () => {
    await using lost = await openLost(async (path) => {
      away(path);
      const other = newPath();
      await (await openSqlite(createManualClock(), other))[Symbol.asyncDispose]();
      renameSync(other, path);
    });
    await staysAway(lost, /The SQLite file .* is not the file that was open before\./);
    back(lost.path);
    await opensAgain(lost);
    expect(await lost.store.getTurn(lost.kept.turnId)).toMatchObject({ status: "queued" });
  });

  it("takes its lock again if another file took the place of the lock file", async () => {
    await using lost = await openLost((path) => renameSync(`${path}.lock`, `${path}.lock.away`));
    await opensAgain(lost);
    const second = openSqlite(createManualClock(), lost.path);
    await expect(second).rejects.toThrow("is in use by another gateway");
  });
});
