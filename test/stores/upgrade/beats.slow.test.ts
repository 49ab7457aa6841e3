import { describe, expect, it } from "vitest";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { upgradeDatabase } from "#store/postgres/upgrade.ts";
import { openDatabase } from "#store/sqlite/worker/database.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { claimBeat, news, planBeat, queueEvent, startBeat, waiting } from "../inbound.ts";
import { newPath, openSqlite } from "../sqlite-engine.ts";
import { connect } from "../two-stores.ts";
import { openWorld, type World } from "../world.ts";

const BATCH = { batch: { limit: 2 } };

/** A beat that runs and is wanted again, one that was held without a turn, and one that is planned. */
async function fill(world: World): Promise<void> {
  for (let n = 0; n < 3; n++) await queueEvent(world, { text: "\0 ü \ud800" });
  await planBeat(world, 0);
  await world.release(await claimBeat(world, BATCH));
  await queueEvent(world, { beatNow: true });
  await queueEvent(world, { agent: "held", beatNow: true });
  await planBeat(world, 5_000, false, "later");
}

async function expectOn(world: World): Promise<void> {
  const { due, nextDueInMs = 0 } = await world.store.dueBeats(["main", "held", "later"]);
  expect(due).toEqual(["held"]);
  expect(nextDueInMs).toBeGreaterThan(0);
  expect(await world.store.readBeat("main")).toMatchObject({ running: true });
  const first = await world.claimNext();
  expect(first.message.text).toMatch(/^2 system events/);
  await world.end(first, { status: "failed" });
  await world.end(await claimBeat(world, BATCH));
  expect(await startBeat(world, BATCH)).toMatchObject({ outcome: "ended", events: 4, turns: 2, returned: 2 });
  expect((await news(world)).at(-1)).toMatchObject({ name: "heartbeat.ran", events: 4 });
  expect(await waiting(world)).toHaveLength(2);
  expect((await world.store.dueBeats(["main"])).due).toEqual(["main"]);
  await world.end(await claimBeat(world, { agent: "held" }));
}

describe("beats of a SQLite file of version 4", () => {
  it("go on", async () => {
    const path = newPath();
    const engine = { name: "sqlite", open: (clock: World["clock"]) => openSqlite(clock, path) };
    {
      await using world = await openWorld(engine);
      await fill(world);
    }
    const db = openDatabase(path);
    db.begin();
    db.exec(`
      UPDATE live SET body = json_remove(json_set(body, '$.open.events', json_remove(json_extract(body, '$.open.task'), '$.kind')), '$.open.task')
      WHERE kind = 'turn' AND json_extract(body, '$.open.task') IS NOT NULL;
      UPDATE live SET body = json_remove(json_set(body, '$.fence', 1, '$.lease', json('{"node":"node_a","endsAt":1}')), '$.run')
      WHERE kind = 'beat' AND id IN ('main', 'held');
      UPDATE live SET body = json_remove(body, '$.dueAt') WHERE kind = 'beat' AND id = 'held';
      PRAGMA user_version = 4;
    `);
    db.commit();
    db.close();
    await using world = await openWorld(engine);
    await expectOn(world);
  });
});

await postgresTests((server) => {
  describe("beats of a PostgreSQL schema of version 7", () => {
    it("go on", async () => {
      const url = await server.createSchema();
      const open = (clock: World["clock"]) => createPostgresStore({ clock, url: [url], connections: 2 });
      const engine = { name: "postgres", open };
      {
        await using world = await openWorld(engine);
        await fill(world);
      }
      {
        await using other = await connect(url);
        await other.query(`
          alter table beats add column is_running boolean not null default false, add column node text,
            add column fence bigint not null default 0, add column lease_ends double precision;
          update beats set is_running = true, node = 'node_a', lease_ends = 1, due = null where agent in ('main', 'held');
          alter table beats drop column run;
          alter table counters rename to counts;
          delete from gateway_migrations where version > 7;
        `);
      }
      await upgradeDatabase([url], () => {});
      await using world = await openWorld(engine);
      await expectOn(world);
    });
  });
});
