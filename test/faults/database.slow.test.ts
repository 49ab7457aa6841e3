import { expect, test } from "vitest";
import { type PostgresServer, postgresTests, startPostgres, systemBins } from "#test/harness/postgres.ts";
import { type Client, clientOf, startNodes, until } from "./nodes.ts";
import { createSender, expectKept, recovered } from "./sender.ts";

function storeAt(...urls: string[]) {
  return { type: "postgres", url: urls };
}

await postgresTests(() => {
  test.each(["fast", "immediate"] as const)(
    "F04: the database restarts (%s): work is refused, nothing hangs, nothing is lost or done twice",
    async (mode) => {
      await using server = await startPostgres();
      await using fleet = await startNodes({ store: storeAt(server.url()) });
      const client = clientOf(fleet.first);
      const sender = createSender(client);
      for (let n = 0; n < 10; n++) await Promise.all([sender.wake(), sender.turn()]);
      await server.stop(mode);
      for (let round = 0; round < 3; round++) {
        const replies = await Promise.all(
          Array.from({ length: 40 }, (_, n) => (n % 2 ? sender.wake() : sender.turn())),
        );
        for (const { status, error, headers } of replies) {
          expect([status, error]).toEqual([503, "store-unavailable"]);
          expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
        }
      }
      expect(await client.ready()).toBe(503);
      expect((await fetch(`${fleet.first.url}/healthz`)).status).toBe(200);
      await server.start();
      await recovered(client, sender.wake);
      await expectKept(client, sender.acknowledged);
      expect(fleet.first.starts).toBe(1);
    },
    60_000,
  );

  test.skipIf(systemBins().length === 0)(
    `F05: the database fails over to its standby, and no acknowledged work is lost${systemBins().length === 0 ? " (needs Debian's postgresql: pg_basebackup)" : ""}`,
    async () => {
      await using primary = await startPostgres({ fsync: true });
      await using standby = await primary.standby();
      await follows(primary);
      await using fleet = await startNodes({ count: 2, store: storeAt(primary.url(), standby.url()) });
      const clients = fleet.nodes.map(clientOf) as [Client, Client];
      const sender = createSender(clients[0]);
      for (let n = 0; n < 20; n++) await Promise.all([sender.wake(), sender.turn(clients[1]), sender.turn()]);
      await primary.kill();
      expect((await sender.wake()).status).toBe(503);
      await standby.promote();
      for (const client of clients) await recovered(client, () => sender.wake(client));
      await expectKept(clients[1], sender.acknowledged);
      expect(fleet.nodes.map(({ starts }) => starts)).toEqual([1, 1]);
    },
    60_000,
  );
});

/** From now on a commit waits for the standby, which is required to lose nothing. */
async function follows(primary: PostgresServer): Promise<void> {
  await primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await primary.query("SELECT pg_reload_conf()");
  await until(
    async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")).length > 0,
  );
}
