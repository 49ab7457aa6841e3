import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { drop, Servers } from "#store/postgres/connect.ts";
import { migrate } from "#store/postgres/migrate.ts";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { upgrade } from "#store/postgres/upgrade.ts";
import { emptyFolder, runCli, startCli } from "#test/cli/cli.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { connect } from "../two-stores.ts";
import { openWorld } from "../world.ts";
import { fixture } from "./released.ts";

const VERSION = Math.max(...MIGRATIONS.map(({ version }) => version));
const OLD = 6;
/** A step after which gateways of earlier versions do not work. */
function cut(sql: string) {
  return [...MIGRATIONS, { version: VERSION + 1, oldest: VERSION + 1, sql }];
}
const STEP = "alter table sessions rename to conversations; do $$ begin raise notice 'sessions 3 of 5'; end $$;";
const TURNS = "select turn_id from turns union all select id from open_turns order by turn_id";
const ONE_STEP = { from: VERSION, to: VERSION + 1 };

function ignore(): void {}

/** The folder of a configuration with this store. */
function folderOf(store: object): string {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "gateway.json5"), JSON.stringify({ agents: { main: { backend: "echo" } }, store }));
  return cwd;
}

describe("agent-gateway migrate", () => {
  it("refuses other stores than PostgreSQL, with a reason", async () => {
    const cases = [
      [
        folderOf({ type: "sqlite", path: "./gateway.db" }),
        "The store is sqlite: the gateway upgrades the file when it starts.",
      ],
      [folderOf({ type: "memory" }), "The store is memory: it does not need an upgrade."],
      [emptyFolder(), "This folder has no gateway.json5 that names the store. Use --config to name the file."],
    ] as const;
    for (const [cwd, err] of cases)
      expect(await runCli(["migrate"], { cwd })).toMatchObject({ code: 1, out: "", err: expect.stringContaining(err) });
  });
});

await postgresTests((server) => {
  const query = async (url: string, text: string) => await server.run(url, text);
  const versionOf = async (url: string) =>
    (await query(url, "select max(version) as version from gateway_migrations"))[0]?.version;
  const open = (url: string) => createPostgresStore({ clock: createManualClock(), url: [url], connections: 2 });
  /** A separate database, because all schemas of a database share the lock for upgrades. */
  const filled = async (): Promise<string> => {
    const url = await server.createDatabase();
    await using world = await openWorld({ name: "postgres", open: () => open(url) });
    for (let n = 0; n < 5; n++) await world.start({ session: `chat:${n}`, key: `key ${n}` });
    return url;
  };
  /** A database as version 0.2.0 left it. */
  const released = async (): Promise<string> => {
    const url = await server.createDatabase();
    await query(url, fixture("postgres.sql").toString());
    return url;
  };
  const isTrue = (url: string, condition: string) =>
    expect.poll(() => query(url, `select ${condition} as so`)).toEqual([{ so: true }]);
  const isWaiting = (url: string, kind: string) =>
    isTrue(
      url,
      `exists (select 1 from pg_locks where not granted and locktype = '${kind}' and database = (select oid from pg_database where datname = current_database()))`,
    );

  describe("a schema that only `agent-gateway migrate` can upgrade", () => {
    it("is refused by a gateway, upgraded by the command, and then accepted by the gateway", async () => {
      const url = await filled();
      await using client = await connect(url);
      await expect(migrate(client, 1, cut(STEP))).rejects.toThrow(
        /^The schema of the database has version \d+ \(release \S+\), and this gateway needs version \d+\. Stop all gateways, make a backup, and run: agent-gateway migrate$/,
      );
      expect(await versionOf(url)).toBe(VERSION);
      const lines: string[] = [];
      const report = (line: string) => lines.push(line);
      expect(await upgrade(client, report, cut(STEP))).toEqual(ONE_STEP);
      expect(lines).toEqual([`Upgrading the schema from version ${VERSION} to ${VERSION + 1}.`, "sessions 3 of 5"]);
      expect(await upgrade(client, report, cut(STEP))).toEqual({ from: VERSION + 1, to: VERSION + 1 });
      expect(lines).toHaveLength(2);
      expect((await migrate(client, 1, cut(STEP))).steps).toBe(0);
      const later = { version: VERSION + 2, oldest: VERSION + 1, sql: "create table labels (label text)" };
      expect((await migrate(client, 1, [...cut(STEP), later])).steps).toBe(1);
      const newer = `Its schema has version ${VERSION + 2}, which needs a newer gateway (this one supports up to ${VERSION}).`;
      await expect(migrate(client, 1)).rejects.toThrow(newer);
      await expect(upgrade(client, report)).rejects.toThrow(newer);
    });

    it("is upgraded once by two commands at the same time", async () => {
      const url = await filled();
      const servers = new Servers([url]);
      const commands = [await servers.find(), await servers.find()];
      const both = await Promise.all(
        commands.map((client) => upgrade(client, ignore, cut(STEP)).finally(() => client.end())),
      );
      expect(both.map(({ from }) => from).sort()).toEqual([VERSION, VERSION + 1]);
    });

    it("is unchanged if the connection breaks during a step, and another run upgrades it", async () => {
      const url = await filled();
      const first = await new Servers([url]).find();
      const broken = expect(upgrade(first, ignore, cut(`${STEP} select pg_sleep(600)`))).rejects.toThrow();
      const steps = "from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
      await isTrue(url, `exists (select 1 ${steps})`);
      drop(first);
      await broken;
      // Before PostgreSQL 14, the server does not check for the client while it works.
      if (Number((await query(url, "show server_version_num"))[0]?.server_version_num) < 140_000)
        await query(url, `select pg_terminate_backend(pid) ${steps}`);
      await using second = await connect(url);
      expect(await upgrade(second, ignore, cut(STEP))).toEqual(ONE_STEP);
    });

    it("is upgraded by a step that takes longer than the database allows a statement", async () => {
      const url = await filled();
      const { pathname } = new URL(url);
      await query(url, `alter database ${pathname.slice(1)} set statement_timeout = 200`);
      await using client = await connect(url);
      expect(await upgrade(client, ignore, cut(`${STEP} select pg_sleep(0.5)`))).toEqual(ONE_STEP);
    });

    it("is unchanged if a step fails, and the error reports that", async () => {
      const url = await filled();
      await using client = await connect(url);
      await expect(upgrade(client, ignore, cut(`${STEP} drop table lost`))).rejects.toThrow(
        `The database's schema could not be upgraded from version ${VERSION} to ${VERSION + 1} (table "lost" does not exist). It still has version ${VERSION}.`,
      );
      await using world = await openWorld({ name: "postgres", open: () => open(url) });
      expect(world.store.stats()).toMatchObject({ sessions: 5, turnsQueued: 5 });
    });

    it("is not upgraded while gateways use it", async () => {
      const url = await filled();
      {
        await using one = await open(url);
        await using two = await open(url);
        await using client = await connect(url);
        await expect(upgrade(client, ignore, cut(STEP))).rejects.toThrow(
          /^2 gateways use the database \(node_\w+, node_\w+\)\. Stop all gateways, wait 10 s if one was killed, and run the command again\.$/,
        );
        expect([one.durable, two.durable]).toEqual([true, true]);
      }
      await using client = await connect(url);
      expect(await upgrade(client, ignore, cut(STEP))).toEqual(ONE_STEP);
    });

    it("is upgraded after a gateway was killed, but not while a suspended one is connected", async () => {
      const url = await filled();
      await query(url, "insert into nodes (node, seen) values ('01M7YN0V7PC4D9S2XH6TQ8ZB3K', 0)");
      const suspended = await new Servers([url]).find();
      await using client = await connect(url);
      await expect(upgrade(client, ignore, cut(STEP))).rejects.toThrow(
        /^A gateway that does not answer may still be connected \(process (\d+) .*select pg_terminate_backend\(pid\) .* where pid in \(\1\)/,
      );
      await suspended.end();
      await isTrue(
        url,
        "not exists (select 1 from pg_stat_activity where application_name = 'agent-gateway' and datname = current_database())",
      );
      expect(await upgrade(client, ignore, cut(STEP))).toEqual(ONE_STEP);
    });

    it("is not upgraded while a transaction of a gateway has the lock for writes", async () => {
      const url = await filled();
      await using writer = await connect(url);
      await writer.query(
        "begin; select pg_advisory_xact_lock(7, oid::integer) from pg_namespace where nspname = current_schema()",
      );
      await using client = await connect(url);
      await expect(upgrade(client, ignore, cut(STEP), 50)).rejects.toThrow(
        "A gateway holds the lock for writes of the database. Stop all gateways, and run the command again.",
      );
    });
  });

  describe("agent-gateway migrate on PostgreSQL", () => {
    it("upgrades a database of version 0.2.0, reports progress, and has nothing to do the second time", async () => {
      const url = await released();
      const cwd = folderOf({ type: "postgres", url });
      const { code, out, err } = await runCli(["migrate"], { cwd });
      expect([code, out]).toEqual([0, `The schema has version ${VERSION}. Start the gateways.\n`]);
      expect(err).toMatch(new RegExp(`^Upgrading the schema from version ${OLD} to \\d+\\.\\n`));
      const again = {
        code: 0,
        out: `Nothing to do: the schema has version ${VERSION}. Start the gateways.\n`,
        err: "",
      };
      expect(await runCli(["migrate"], { cwd })).toEqual(again);
      const named = await runCli(["migrate", "--config", join(cwd, "gateway.json5")]);
      expect(named).toEqual(again);
    });

    it.for([
      ["the lock for upgrades", "select pg_advisory_lock(4712, 5)", "advisory"],
      [
        "the lock for writes",
        "select pg_advisory_lock(7, oid::integer) from pg_namespace where nspname = current_schema()",
        "advisory",
      ],
      ["a table", "begin; lock table turns", "relation"],
    ] as const)("can be killed while it waits for %s, and repeated", async ([, block, kind]) => {
      const url = await released();
      const cwd = folderOf({ type: "postgres", url });
      await using holder = await connect(url);
      await holder.query(block);
      const { child, ended } = startCli(["migrate"], { cwd });
      await isWaiting(url, kind);
      child.kill("SIGKILL");
      await ended;
      await holder.end();
      expect(await versionOf(url)).toBe(OLD);
      expect(await runCli(["migrate"], { cwd })).toMatchObject({ code: 0 });
      expect(await versionOf(url)).toBe(VERSION);
    });

    it("can be interrupted at any time and run again", async () => {
      const url = await released();
      const cwd = folderOf({ type: "postgres", url });
      const before = await query(url, "select turn_id from turns order by turn_id");
      for (let ms = 100; (await versionOf(url)) !== VERSION; ms += 50) {
        const { child, ended } = startCli(["migrate"], { cwd });
        await pause(ms);
        child.kill(ms % 100 ? "SIGKILL" : "SIGINT");
        await ended;
        await isTrue(
          url,
          "not exists (select 1 from pg_stat_activity where application_name like 'agent-gateway%' and datname = current_database())",
        );
      }
      expect(await runCli(["migrate"], { cwd })).toMatchObject({
        code: 0,
        out: expect.stringContaining("Nothing to do"),
      });
      expect(await query(url, TURNS)).toEqual(before);
    });

    it("refuses databases that it cannot upgrade, with an error message", async () => {
      const url = await released();
      const damaged = async (sql: string) => {
        const one = await released();
        await query(one, sql);
        return one;
      };
      const cases = [
        [
          url.replace("postgres@", "stranger@"),
          /^The store cannot be upgraded: The database does not answer \(.*role "stranger" does not exist\)\.\n/,
        ],
        [
          url.replace(/:\d+\//, ":1/"),
          /^The store cannot be upgraded: The database does not answer \(127\.0\.0\.1:1\/.*ECONNREFUSED/,
        ],
        [
          await damaged("drop table turns cascade"),
          /^Upgrading (?:.*\n)+The store cannot be upgraded: The database's schema could not be upgraded from version 6 to 8 \(.*"old_turns" does not exist\)\. It still has version 6\.\n/,
        ],
        [
          await damaged("drop table nodes"),
          /^The store cannot be upgraded: The database cannot be upgraded: relation "nodes" does not exist\n/,
        ],
        [
          await damaged("update gateway_migrations set version = version - 1"),
          /^The store cannot be upgraded: Its schema is from before 0\.2\.0: it has version 5/,
        ],
        [
          await damaged("insert into gateway_migrations (version, oldest) values (99, 99)"),
          /^The store cannot be upgraded: Its schema has version 99, which needs a newer gateway/,
        ],
      ] as const;
      for (const [at, err] of cases)
        expect(await runCli(["migrate"], { cwd: folderOf({ type: "postgres", url: at }) })).toEqual({
          code: 1,
          out: "",
          err: expect.stringMatching(err),
        });
    });

    it("has nothing to do in an empty database, where the first gateway creates the tables", async () => {
      const url = await server.createDatabase();
      const { code, out } = await runCli(["migrate"], { cwd: folderOf({ type: "postgres", url }) });
      expect([code, out]).toEqual([0, "Nothing to do: the database is empty. The first gateway creates its tables.\n"]);
      await using store = await open(url);
      expect(store.stats()).toMatchObject({ sessions: 0 });
    });
  });
});
