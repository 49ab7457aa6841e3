import pg from "pg";
import { expect, test } from "vitest";
import { postgresTests } from "./postgres.ts";
import { recyclePostgres } from "./postgres-recycler.ts";

await postgresTests((server) => {
  test("a session of PostgreSQL goes on as a new one after its client took its leave, and ends with one that broke off", async () => {
    await using recycler = await recyclePostgres(server.port);
    const open = async () => {
      const client = new pg.Client(server.url().replace(`:${server.port}/`, `:${recycler.port}/`));
      client.on("error", () => {});
      await client.connect();
      return client;
    };
    const ask = async (client: pg.Client, text: string) => Object.values((await client.query(text)).rows[0] ?? {})[0];
    const pidOf = (client: pg.Client) => ask(client, "select pg_backend_pid()");
    const isThere = async (pid: unknown) =>
      (await server.query(`select 1 from pg_stat_activity where pid = ${pid}`)).length === 1;

    const first = await open();
    const pid = await pidOf(first);
    await first.query(
      "listen news; set enable_seqscan = off; select pg_advisory_lock(4711, 1); create temp table t ()",
    );
    await first.query({ name: "prepared", text: "select 1" });
    await first.end();

    await expect
      .poll(() => server.query(`select state from pg_stat_activity where pid = ${pid} and query like '%reset all'`))
      .toEqual([{ state: "idle" }]);
    const second = await open();
    expect(await pidOf(second)).toBe(pid);
    expect(await ask(second, "show enable_seqscan")).toBe("on");
    for (const left of [
      "pg_listening_channels()",
      "pg_prepared_statements",
      "pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
      "pg_class where relname = 't'",
    ])
      expect([left, await ask(second, `select count(*)::int from ${left}`)]).toEqual([left, 0]);
    expect((await second.query({ name: "prepared", text: "select 2 as two" })).rows).toEqual([{ two: 2 }]);

    await second.query("begin");
    await second.end();
    await expect.poll(() => isThere(pid)).toBe(false);
    const third = await open();
    const next = await pidOf(third);
    (third as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    await expect.poll(() => isThere(next)).toBe(false);
  });
});
