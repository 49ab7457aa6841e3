import { expect, test } from "vitest";
import { createFirewall, whyNoFirewall } from "#test/harness/firewall.ts";
import { type PostgresServer, postgresTests, startPostgres, systemBins } from "#test/harness/postgres.ts";
import type { Reply } from "#test/harness/rest.ts";
import { type Client, clientOf, startNodes, timed, until } from "./nodes.ts";
import { createWire } from "./wire.ts";

/** A refusal may not take longer. */
const REFUSED_MS = 1_000;
const LEEWAY_MS = 500;

const storeAt = (...urls: string[]) => ({ type: "postgres", url: urls });

/** Sends wakes and turns, and writes down what was acknowledged. */
const createSender = (client: Client) => {
  const acknowledged: { events: string[]; turns: string[] } = { events: [], turns: [] };
  let sent = 0;
  const note = (list: string[], { status, json }: Reply, name: string) =>
    status === 200 && list.push(String(json[name]));
  return {
    acknowledged,
    async wake(to = client): Promise<Reply> {
      const reply = await to.wake({ text: `<event-${++sent}>` });
      note(acknowledged.events, reply, "eventId");
      return reply;
    },
    async turn(to = client): Promise<Reply> {
      const reply = await to.agent({ message: `turn ${++sent}`, agent: "slow" });
      note(acknowledged.turns, reply, "turnId");
      return reply;
    },
  };
};

/** All that was acknowledged is done, and no event was in two turns. */
const expectKept = async (client: Client, { events, turns }: ReturnType<typeof createSender>["acknowledged"]) => {
  for (const id of turns) await until(async () => (await client.turn(id)).status === "completed");
  for (const id of events) await until(async () => (await client.event(id)).status === "handled");
  const { result } = await client.rpc.call("session.get", { sessionId: "agent:quick:main", limit: 500 });
  const told = result.messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => text.match(/<event-\d+>/g) ?? []);
  expect(new Set(told).size).toBe(told.length);
  expect(told.length).toBeGreaterThanOrEqual(events.length);
};

/** The network itself, in the place of a way beside it. */
const firewallOf = (port: number) => {
  const { cut, mend } = createFirewall(port);
  return { port, cut, mend, [Symbol.asyncDispose]: async () => mend() };
};

const recovered = (client: Client, send: () => Promise<Reply>) =>
  until(async () => (await client.ready()) === 200 && (await send()).status === 200);

await postgresTests(() => {
  test.each(["fast", "immediate"] as const)(
    "F04: the database restarts (%s): refused within a second, nothing hangs, nothing is lost or done twice",
    async (mode) => {
      await using server = await startPostgres();
      await using fleet = await startNodes({ store: storeAt(server.url()) });
      const client = clientOf(fleet.first);
      const sender = createSender(client);
      for (let n = 0; n < 10; n++) await Promise.all([sender.wake(), sender.turn()]);
      await server.stop(mode);
      for (let round = 0; round < 3; round++) {
        const replies = await Promise.all(
          Array.from({ length: 40 }, (_, n) => timed(n % 2 ? sender.wake() : sender.turn())),
        );
        for (const [{ status, error, headers }, ms] of replies) {
          expect([status, error]).toEqual([503, "store-unavailable"]);
          expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
          expect(ms).toBeLessThan(REFUSED_MS + LEEWAY_MS);
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

  const whyNot = whyNoFirewall();
  const how = whyNot === undefined ? "nft drops its packets" : `a proxy falls silent, as ${whyNot}`;
  test(`F05: the network to the database is cut without a word (${how}): refused in time, and fenced until it is back`, async () => {
    await using server = await startPostgres();
    await using wire = whyNot === undefined ? firewallOf(server.port) : await createWire(server.port);
    await using fleet = await startNodes({
      store: storeAt(server.url().replace(`:${server.port}/`, `:${wire.port}/`)),
    });
    const client = clientOf(fleet.first);
    const sender = createSender(client);
    for (let n = 0; n < 10; n++) await Promise.all([sender.wake(), sender.turn()]);
    wire.cut();
    const [first, firstMs] = await timed(sender.wake());
    expect(first.status).toBe(503);
    // Silence is told from slowness only by waiting; once it is known, nobody waits any more.
    expect(firstMs).toBeLessThan(10_000);
    const later = await Promise.all(Array.from({ length: 20 }, () => timed(sender.wake())));
    for (const [{ status }, ms] of later) expect([status, ms < REFUSED_MS + LEEWAY_MS]).toEqual([503, true]);
    wire.mend();
    await recovered(client, sender.wake);
    await expectKept(client, sender.acknowledged);
  }, 60_000);

  test.skipIf(systemBins().length === 0)(
    `F05: the database fails over to its standby, and nothing that was acknowledged is lost${systemBins().length === 0 ? " (needs Debian's postgresql: pg_basebackup)" : ""}`,
    async () => {
      await using primary = await startPostgres({ fsync: true });
      await using standby = await primary.standby();
      await follows(primary);
      await using fleet = await startNodes({ count: 2, store: storeAt(primary.url(), standby.url()) });
      const clients = fleet.nodes.map(clientOf) as [Client, Client];
      const sender = createSender(clients[0]);
      for (let n = 0; n < 20; n++) await Promise.all([sender.wake(), sender.turn(clients[1]), sender.turn()]);
      await primary.kill();
      const [refused, ms] = await timed(sender.wake());
      expect([refused.status, ms < REFUSED_MS + LEEWAY_MS]).toEqual([503, true]);
      await standby.promote();
      for (const client of clients) await recovered(client, () => sender.wake(client));
      await expectKept(clients[1], sender.acknowledged);
      expect(fleet.nodes.map(({ starts }) => starts)).toEqual([1, 1]);
    },
    60_000,
  );
});

/** From now on a commit waits for the standby, as it has to where none may be lost. */
const follows = async (primary: PostgresServer): Promise<void> => {
  await primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await primary.query("SELECT pg_reload_conf()");
  await until(
    async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")).length > 0,
  );
};
