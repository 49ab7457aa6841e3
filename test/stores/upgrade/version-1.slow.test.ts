import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { migrate as migratePostgres } from "#store/postgres/migrate.ts";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { migrations } from "#store/sqlite/migrations/all.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { newestOf } from "#store/sqlite/worker/migrate.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { postgresTests, type TestPostgres } from "#test/harness/postgres.ts";
import { newPath, openSqlite } from "../sqlite-engine.ts";
import { connect } from "../two-stores.ts";
import { type Engine, openWorld, used, usedMore } from "../world.ts";
import { makeOldFile } from "./old-sqlite.ts";

const read = (name: string): string => readFileSync(join(import.meta.dirname, "version-1", name), "utf8");

/** A file of version 1: a turn that ended, one that was given back behind it, and one that waits in a session of its own. */
const sqliteOfVersion1 = (): string => {
  const path = newPath();
  makeOldFile(path, 1, "version-1/sqlite.sql").close();
  return path;
};

/** The same in a database, to which gateways of version 4 came since: their functions take the calls of version 1, too. */
const postgresOfVersion1 = async (server: TestPostgres): Promise<string> => {
  const url = await server.createSchema();
  await using client = await connect(url);
  await migratePostgres(client, 1, MIGRATIONS.slice(0, 1));
  await client.query(read("postgres.sql"));
  await migratePostgres(client, 1, MIGRATIONS.slice(0, 4));
  await client.query(readFileSync(join(import.meta.dirname, "version-4/functions.sql"), "utf8"));
  return url;
};

const goesOn = async (engine: Engine): Promise<void> => {
  await using world = await openWorld(engine);
  for (let n = 0; n < 100; n++) world.newId("other");
  const { store } = world;
  const first = await store.getTurn("turn_000001");
  expect(first).toMatchObject({ status: "completed", model: "fast", reply: "hi" });
  expect(first?.usage).toEqual({ input: 3, output: 2 });
  expect((await store.getSession("chat:a"))?.usage).toEqual({ input: 8, output: 2 });
  expect((await store.readEntries("chat:a", { after: 5, limit: 1 }))[0]).toEqual({
    ...{ seq: 6, at: world.clock.now(), turnId: "turn_000001", name: "turn.completed", reply: "hi" },
    usage: { input: 3, output: 2 },
  });
  const counted = async () =>
    (await store.sumUsage({ from: 0, to: Infinity, by: "model" })).find(({ key }) => key === "fast")?.counts;
  expect(await counted()).toMatchObject({ attempts: 2, input: 8, output: 2, cached: 0, reasoning: 0, cost: 0 });

  const { turns } = await world.claim();
  const [back] = turns.filter(({ turn }) => turn.sessionId === "chat:a");
  expect(turns).toHaveLength(2);
  if (!back) throw new Error("The turn that was given back cannot be claimed.");
  expect(back.turn).toMatchObject({ attempt: 2, usage: { input: 5, output: 0 } });
  expect(await world.end(back, { reply: "again", usage: usedMore(100, 7, 4_200, "fast"), model: "fast" })).toBe(true);
  const more = { cached: 100, reasoning: 7, cost: 4_200 };
  expect(await store.getTurn(back.turn.turnId)).toMatchObject({
    ...{ model: "fast", reply: "again", usage: { input: 106, output: 8, more } },
  });
  expect((await store.getSession("chat:a"))?.usage).toEqual({ input: 109, output: 10, more });
  expect(await counted()).toMatchObject({ attempts: 3, input: 109, output: 10, ...more });
  await world.start({ session: "chat:a" });
  await world.end(await world.claimNext(), { usage: used(1, 1) });
  expect((await store.getSession("chat:a"))?.usage).toEqual({ input: 110, output: 11, more });
};

describe("a SQLite file of version 1", () => {
  it("is brought up to date with what is in it, and goes on", async () => {
    const path = sqliteOfVersion1();
    await goesOn({ name: "sqlite", open: (clock) => openSqlite(clock, path) });
    const db = openDatabase(path);
    expect(db.query("PRAGMA user_version").get([])).toEqual([newestOf(migrations)]);
    db.close();
  });
});

type Recorded = { text: string; values: unknown[]; rows: unknown[] };

/** As gateways read numbers. */
const types = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/** An answer that another version may give in place of `was`: the same, and more. Times of the database's clock may differ, and so may numbers of the order in which turns became ready. */
const asBefore = (was: unknown): unknown => {
  if (typeof was !== "object" || was === null) return was;
  if (!Array.isArray(was)) {
    const fields = Object.entries(was).map(([name, value]) => [
      name,
      name === "failingAt" || name === "ready_order" ? expect.any(Number) : asBefore(value),
    ]);
    return expect.objectContaining(Object.fromEntries(fields));
  }
  return {
    asymmetricMatch: (is: unknown) => {
      if (!Array.isArray(is)) return false;
      expect(is.slice(0, was.length)).toEqual(was.map(asBefore));
      return true;
    },
  };
};

await postgresTests((server) => {
  const openAt = (url: string): Engine => ({
    name: "postgres",
    open: (clock) => createPostgresStore({ clock, url: [url], connections: 2 }),
  });

  describe("a PostgreSQL database of version 1", () => {
    it("is brought up to date with what is in it, and goes on", async () => {
      await goesOn(openAt(await postgresOfVersion1(server)));
    });

    it("answers the calls of its gateways as before, once a newer one has brought it up to date", async () => {
      const url = await postgresOfVersion1(server);
      await using store = await openAt(url).open(createManualClock());
      await using client = await connect(url);
      const lines = read("calls.jsonl").trimEnd().split("\n");
      const calls = lines.map((line) => JSON.parse(line) as Recorded);
      expect(calls.length).toBeGreaterThan(10);
      for (const { text, values, rows } of calls) {
        const answer = (await client.query({ text, values, types })).rows;
        expect(answer, `${text} ${JSON.stringify(values)}`).toEqual(rows.map(asBefore));
      }
      expect(await store.getTurn("turn_000005")).toMatchObject({ reply: "old says", usage: { input: 12, output: 7 } });
    });

    it("takes turns of both versions in one session, each of which counts what it knows", async () => {
      const url = await postgresOfVersion1(server);
      await using world = await openWorld(openAt(url));
      for (let n = 0; n < 100; n++) world.newId("other");
      const back = (await world.claim()).turns.find(({ turn }) => turn.sessionId === "chat:a");
      if (!back) throw new Error("The turn that was given back cannot be claimed.");
      await world.release(back, 0, usedMore(10, 1, 50, "fast"));
      const again = await world.claimNext();
      // A gateway of version 1 ends it: it tells tokens in and out alone.
      await using client = await connect(url);
      const { turnId, sessionId, node, fence } = again.claim;
      const claim = { n: 0, turn: turnId, session: sessionId, node, fence, now: world.clock.now() };
      const used = { model: "fast", input: 7, output: 7, latency: 10 };
      const end = [{ ...claim, status: "completed", reply: "old says", bytes: 8, used }];
      const { rows } = await client.query("select end_turns($1, $2, $3, $4) as answer", [
        ...[JSON.stringify(end), false, "old/0", 1000],
      ]);
      expect(rows[0].answer.results).toEqual([true]);
      const more = { cached: 10, reasoning: 1, cost: 50 };
      expect(await world.store.getTurn(turnId)).toMatchObject({ usage: { input: 23, output: 9, more } });
      const sums = await world.store.sumUsage({ from: 0, to: Infinity, by: "model" });
      expect(sums.find(({ key }) => key === "fast")?.counts).toMatchObject({ attempts: 4, input: 26, ...more });
    });
  });
});
