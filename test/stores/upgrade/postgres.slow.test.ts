import { describe, expect, it } from "vitest";
import { migrate } from "#store/postgres/migrate.ts";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { startProcess } from "#test/harness/process.ts";
import { connect } from "../two-stores.ts";
import { openWorld } from "../world.ts";
import { startNext } from "./next-gateway.ts";
import { MIGRATIONS as NEXT } from "./next-postgres.ts";
import { answerOf, callAll, chat, serving } from "./talk.ts";

const VERSION = Math.max(...MIGRATIONS.map(({ version }) => version));
/** Three processes, two of which compile their contract while the third works. */
const PATIENT = { timeout: 60_000 };
/** PostgreSQL's errors for a statement that does not match the schema. */
const MISMATCH = /cached plan|does not exist|row type|result type|ambiguous|unexpected.error/;

await postgresTests((server) => {
  const versionsOf = (url: string) => server.run(url, "select version from gateway_migrations order by version");
  const tablesOf = (url: string) =>
    server.run(url, "select tablename from pg_tables where schemaname = current_schema()");
  /** A schema with every kind of record, written by this version. */
  const filled = async (): Promise<string> => {
    const url = await server.createSchema();
    const open = () => createPostgresStore({ clock: createManualClock(), url: [url], connections: 2 });
    await using world = await openWorld({ name: "postgres", open });
    for (let n = 0; n < 5; n++) await world.start({ session: `chat:${n}`, key: `key ${n}` });
    await world.end(await world.claimNext());
    return url;
  };

  describe("a database that a newer version opens", () => {
    it(
      "is upgraded once by two that start at the same time, while the older one continues all kinds of calls",
      PATIENT,
      async () => {
        const url = await server.createSchema();
        const config = serving({ type: "postgres", url });
        await using old = await startProcess({ config });
        const turnIds: string[] = [];
        let isOver = false;
        const talk = async (lane: number) => {
          for (let n = 0; !isOver; n++) turnIds.push(await callAll(old.url, `lane ${lane}`, n));
        };
        const talks = Promise.all([talk(1), talk(2)]);
        talks.catch(() => {});
        await using one = await startNext({ config });
        await using two = await startNext({ config });
        await Promise.all([one, two].map((gateway) => gateway.until(() => gateway.url !== "")));
        const migrated = [one, two].flatMap(({ records }) => records.filter(({ event }) => event === "store.migrated"));
        expect(migrated).toMatchObject([{ detail: "The database's schema was upgraded in one step." }]);
        // Alternating on one session, wherever they run.
        for (const [n, { url }] of [one, old, two, old].entries()) turnIds.push(await chat(url, "shared", `${n}`));
        for (let n = 0; n < 3; n++)
          turnIds.push(await callAll(old.url, "after", n), await callAll(one.url, "after", n));
        isOver = true;
        await talks;
        expect(turnIds.length).toBeGreaterThan(12);
        const answers = await Promise.all(turnIds.map((turnId) => answerOf(two.url, turnId)));
        for (const answer of answers) expect(answer).toMatchObject({ status: "completed" });
        expect((await versionsOf(url)).at(-1)).toEqual({ version: VERSION + 1 });
        const errors = [old, one, two].flatMap(({ records }) => records.filter(({ level }) => level === "error"));
        const wrong = errors.filter((error) => MISMATCH.test(JSON.stringify(error)));
        expect(wrong).toEqual([]);
      },
    );

    it("accepts the older version again", async () => {
      const url = await filled();
      await using client = await connect(url);
      expect((await migrate(client, 1, NEXT)).steps).toBe(1);
      const { epoch } = await migrate(client, 1);
      expect((await migrate(client, 1, NEXT)).epoch).toBe(epoch);
      expect((await versionsOf(url)).at(-1)).toEqual({ version: VERSION + 1 });
      const open = () => createPostgresStore({ clock: createManualClock(), url: [url], connections: 2 });
      await using world = await openWorld({ name: "postgres", open });
      expect(await world.store.getSession("chat:1")).toMatchObject({ messageCount: 1, turnsQueued: 1 });
      for (let n = 0; n < 4; n++) await world.end(await world.claimNext());
      expect(world.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
    });

    it("works with the older version's connections, whatever statements they prepared", async () => {
      const url = await filled();
      const clock = createManualClock();
      await using store = await createPostgresStore({ clock, url: [url], connections: 1 });
      const read = () =>
        Promise.all([
          store.listKeys(),
          store.getEvent("evt_1"),
          store.listEvents({ limit: 5 }),
          store.listDeliveries({ limit: 5 }),
          store.listSessions({ limit: 5 }),
          store.readMessages("chat:1", { limit: 5 }),
          store.readQueuedEvents({ agent: "main", after: 0, through: 9, limit: 5, bytes: 5 }),
        ]);
      const before = await read();
      await using client = await connect(url);
      await migrate(client, 1, NEXT);
      expect(await read()).toEqual(before);
    });

    it("refuses no call of the older version, however many connections have prepared plans", async () => {
      const url = await filled();
      await using store = await createPostgresStore({ clock: createManualClock(), url: [url], connections: 8 });
      await using client = await connect(url);
      await client.query("begin; lock table sessions");
      const reads: Promise<unknown>[] = [];
      for (let n = 0; n < 7; n++) {
        reads.push(store.listSessions({ limit: 5 }));
        const waiting = "select 1 from pg_locks where not granted and mode = 'AccessShareLock'";
        await expect.poll(async () => (await server.run(url, waiting)).length).toBe(n + 1);
      }
      await client.query("commit");
      const [before] = await Promise.all(reads);
      await migrate(client, 1, NEXT);
      expect(await store.listSessions({ limit: 5 })).toEqual(before);
    });

    it("does not change if a step fails in the middle, and the error says so", async () => {
      const url = await filled();
      await using client = await connect(url);
      const first = { version: VERSION + 1, oldest: 1, sql: "create table labels (label text primary key)" };
      const broken = {
        version: VERSION + 2,
        oldest: 1,
        sql: "create table more (a text); alter table sessions add agent text",
      };
      await expect(migrate(client, 1, [...MIGRATIONS, first, broken])).rejects.toThrow(
        `The database's schema could not be upgraded from version ${VERSION + 1} to ${VERSION + 2} (column "agent" of relation "sessions" already exists). It still has version ${VERSION + 1}.`,
      );
      expect((await versionsOf(url)).map(({ version }) => version)).toEqual([VERSION, VERSION + 1]);
      expect(await tablesOf(url)).toContainEqual({ tablename: "labels" });
      expect(await tablesOf(url)).not.toContainEqual({ tablename: "more" });
      // The older version continues, and so does a repaired one.
      expect((await migrate(client, 1)).steps).toBe(0);
      const mended = { ...broken, sql: "create table more (a text)" };
      expect((await migrate(client, 1, [...MIGRATIONS, first, mended])).steps).toBe(1);
    });

    it("is refused with an error that names the holder of the lock, if the lock is held too long", async () => {
      const url = await server.createSchema();
      await using holder = await connect(url);
      await using client = await connect(url);
      const [{ pid }] = (await holder.query("select pg_backend_pid() as pid, pg_advisory_lock(4712, 5)")).rows;
      const refused = expect(migrate(client, 1, undefined, 50)).rejects;
      await refused.toThrow(new RegExp(`for 0.05 s.*[Pp]rocess ${pid} .*select pg_terminate_backend\\(${pid}\\)`));
      await holder.query("select pg_advisory_unlock(4712, 5)");
      // The connection is unchanged.
      expect((await client.query("show lock_timeout")).rows).toEqual([{ lock_timeout: "0" }]);
      expect((await migrate(client, 1)).steps).toBe(1);
    });

    it("waits for a gateway that locks a table, and lets the gateway's calls run first", async () => {
      const url = await filled();
      await using holder = await connect(url);
      await using client = await connect(url);
      await holder.query("begin");
      await holder.query("select count(*) from usage");
      const migrated = migrate(client, 1, NEXT);
      await expect
        .poll(() => server.run(url, "select 1 from pg_locks where not granted and mode = 'AccessExclusiveLock'"))
        .not.toEqual([]);
      // It released the tables before this one in order to retry: otherwise both would wait for each other.
      await holder.query("select count(*) from agents");
      await holder.query("commit");
      expect((await migrated).steps).toBe(1);
    });
  });
});
