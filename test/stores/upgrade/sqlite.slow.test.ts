import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { migrations } from "#store/sqlite/schema.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { migrate, newestOf } from "#store/sqlite/worker/migrate.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { runProcess, startProcess } from "#test/harness/process.ts";
import { newPath, openSqlite } from "../sqlite-engine.ts";
import { openWorld } from "../world.ts";
import { startNext } from "./next-gateway.ts";
import { step } from "./next-sqlite.ts";
import { answerOf, chat, serving } from "./talk.ts";

const VERSION = newestOf(migrations);

/** Reads the version and the contents of a file. */
function contentOf(path: string) {
  const db = openDatabase(path);
  const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all<[string]>([]);
  const rows = tables.map(([name]) => [name, db.query(`SELECT * FROM ${name}`).all([])]);
  const [version] = db.query("PRAGMA user_version").get<[number]>([]) ?? [0];
  db.close();
  return { version, rows };
}

/** A file with every kind of record, written by this version. */
async function filled(): Promise<string> {
  const path = newPath();
  await using world = await openWorld({ name: "sqlite", open: (clock) => openSqlite(clock, path) });
  for (let n = 0; n < 5; n++) await world.start({ session: `chat:${n}`, key: `key ${n}` });
  await world.end(await world.claimNext());
  return path;
}

describe("a SQLite file that a newer version opens", () => {
  it("is upgraded by one of two that open it at once, and the older version then refuses it", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "gateway-upgrade-"));
    onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
    const config = serving({ type: "sqlite", path: "./gateway.db" });
    const said: string[] = [];
    {
      await using old = await startProcess({ cwd, config });
      for (let n = 0; n < 3; n++) said.push(await chat(old.url, "kept", `before ${n}`));
      old.kill("SIGKILL");
      await old.exited;
    }
    const both = await Promise.all([startNext({ cwd }), startNext({ cwd })]);
    const ends = await Promise.race(both.map(async (one, n) => ({ n, ...(await one.exited) })));
    const [refused, next] = ends.n === 0 ? both : [both[1], both[0]];
    expect(ends.code).toBe(1);
    expect(refused.err.join("\n")).toMatch(/^The store cannot be opened: .* is in use by another gateway/);
    const { detail } = await next.logged("store.migrated");
    expect(detail).toMatch(new RegExp(`gateway\\.db was upgraded from version ${VERSION} to ${VERSION + 1}\\.$`));
    await next.until(() => next.url !== "");
    said.push(await chat(next.url, "kept", "after"));
    for (const turnId of said) expect(await answerOf(next.url, turnId)).toMatchObject({ status: "completed" });
    next.kill("SIGTERM");
    await next.exited;

    const older = await runProcess({ cwd });
    expect(older.code).toBe(1);
    expect(older.err).toContain(
      `was written by a newer gateway: it has version ${VERSION + 1}, and this gateway supports up to ${VERSION}.`,
    );
  });

  it("does not change if a step fails in the middle, and the error names the step", async () => {
    const path = await filled();
    const before = contentOf(path);
    const db = openDatabase(path);
    const broken = `${step}INSERT INTO labels VALUES ('none');`;
    expect(() => migrate(db, path, 1, [...migrations, broken])).toThrow(
      `The SQLite file ${path} could not be upgraded from version ${VERSION} to ${VERSION + 1} (UNIQUE constraint failed: labels.label). It still has version ${VERSION}.`,
    );
    db.close();
    expect(contentOf(path)).toEqual(before);
    await using store = await openSqlite(createManualClock(), path);
    expect(store.stats()).toMatchObject({ sessions: 5, turnsQueued: 4 });
  });

  it("has the steps before a failed one, and continues from there", async () => {
    const path = await filled();
    const db = openDatabase(path);
    expect(() => migrate(db, path, 1, [...migrations, step, "SELECT nothing"])).toThrow(
      `from version ${VERSION + 1} to ${VERSION + 2}`,
    );
    expect(contentOf(path).version).toBe(VERSION + 1);
    expect(migrate(db, path, 1, [...migrations, step, "CREATE TABLE last (a)"])).toBe(VERSION + 1);
    expect(db.query("SELECT count(*), min(label) FROM sessions").get([])).toEqual([5, "none"]);
    db.close();
    expect(contentOf(path).version).toBe(VERSION + 2);
  });
});
