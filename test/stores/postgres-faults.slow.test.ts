import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import type { Store, StoreNotice } from "#store/store.ts";
import { type PostgresServer, postgresTests, startPostgres, systemBins } from "#test/harness/postgres.ts";
import { LEASE_MS, refusal, silent, turnOrder } from "./world.ts";

/** Each test starts one or two separate servers. */
const PATIENT = { timeout: 60_000 };
/** The results arrive within a second or two. */
const SOON = { timeout: 30_000 };

await postgresTests(() => {
  const open = async (servers: readonly PostgresServer[]) => {
    const notices: StoreNotice["name"][] = [];
    const url = servers.map((server) => server.url());
    const store = await createPostgresStore({
      clock: systemClock,
      url,
      connections: 4,
      notice: ({ name }) => notices.push(name),
    });
    return { store, notices };
  };

  /** Starts turns one after another in some sessions until it is stopped. Returns the acknowledged ones, and the errors. */
  const load = (store: Store, sessions = 8) => {
    let isOver = false;
    const kept: string[] = [];
    const refused = new Set<string>();
    const run = async (n: number) => {
      while (!isOver) {
        const order = turnOrder(Date.now(), { session: `chat:${n}` });
        const name = await refusal(Promise.resolve(store.startTurn(order)));
        if (name === "not refused") kept.push(order.turnId);
        else {
          refused.add(name);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }
    };
    const runs = Array.from({ length: sessions }, (_, n) => run(n));
    return {
      kept,
      refused,
      end: async () => {
        isOver = true;
        await Promise.all(runs);
      },
    };
  };

  const expectKept = async (store: Store, kept: readonly string[]) => {
    const found = await Promise.all(kept.map((turnId) => store.getTurn(turnId)));
    expect(found.filter((turn) => turn === undefined)).toEqual([]);
    // The entries of each session have no gap.
    for (const sessionId of new Set(found.map((turn) => turn?.sessionId ?? ""))) {
      const entries = await store.readEntries(sessionId, { after: 0, limit: 100_000 });
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, n) => n + 1));
    }
    expect(store.stats().turnsQueued).toBeGreaterThanOrEqual(kept.length);
  };

  // Each mostly waits for its own server, so they run in parallel.
  describe.concurrent("a store whose server fails", () => {
    for (const [how, fault] of [
      ["restarted", (server: PostgresServer) => server.stop("fast")],
      ["killed", (server: PostgresServer) => server.kill()],
    ] as const) {
      it(
        `refuses calls while the server is being ${how} under load, loses nothing, and recovers automatically`,
        PATIENT,
        async ({ expect }) => {
          await using server = await startPostgres();
          const { store, notices } = await open([server]);
          await using _ = store;
          const told = new Set<string>();
          store.watch({
            ...silent,
            entries: (_, entries) => {
              for (const { name, turnId } of entries) if (name === "turn.queued") told.add(turnId);
            },
            wants: () => true,
          });
          const work = load(store);
          await expect.poll(() => work.kept.length, SOON).toBeGreaterThan(20);
          await fault(server);
          await expect.poll(() => work.refused.size, SOON).toBe(1);
          expect(await refusal(store.ping())).toBe("store-unavailable");
          const before = work.kept.length;
          await server.start();
          await expect.poll(() => work.kept.length, SOON).toBeGreaterThan(before + 20);
          await work.end();
          expect([...work.refused]).toEqual(["store-unavailable"]);
          await expectKept(store, work.kept);
          // Entries that wait for an earlier one without an answer are reported once that one is read.
          await expect.poll(() => work.kept.filter((turnId) => !told.has(turnId)), SOON).toEqual([]);
          expect(notices.filter((name) => name !== "unavailable")).toEqual(["migrated", "available"]);
        },
      );
    }

    it("counts its records correctly after the answers of some calls were lost", PATIENT, async ({ expect }) => {
      await using server = await startPostgres();
      const { store } = await open([server]);
      await using _ = store;
      const work = load(store);
      for (let n = 0; n < 3; n++) {
        const before = work.kept.length;
        await expect.poll(() => work.kept.length, SOON).toBeGreaterThan(before + 20);
        await server.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'agent-gateway' and query ~ '(sessions|open_turns)_(insert|update)'",
        );
      }
      await work.end();
      // Each was read, and repeated if it had not been stored.
      expect([...work.refused]).toEqual([]);
      const [row] = await server.query("select count(*)::integer as turns from open_turns");
      expect(row?.turns).toBe(work.kept.length);
      await expect.poll(() => store.stats().turnsQueued, SOON).toBe(row?.turns);
      await expectKept(store, work.kept);
    });

    it.skipIf(systemBins().length === 0)(
      "continues with the promoted standby, and stays with it when the former primary is back and accepts writes",
      PATIENT,
      async ({ expect }) => {
        await using first = await startPostgres({ settings: { log_connections: "on" } });
        await using second = await first.standby();
        const asked = () => readFileSync(first.logFile, "utf8").split("application_name=agent-gateway").length;
        // Acknowledged work is on both.
        await first.query("alter system set synchronous_standby_names = '*'");
        await first.query("select pg_reload_conf()");
        const { store } = await open([first, second]);
        await using _ = store;
        const work = load(store);
        await expect.poll(() => work.kept.length, SOON).toBeGreaterThan(20);
        await first.kill();
        await expect.poll(() => work.refused.size, SOON).toBe(1);
        const before = work.kept.length;
        await second.promote();
        await expect.poll(() => work.kept.length, SOON).toBeGreaterThan(before + 20);
        await work.end();
        await expectKept(store, work.kept);
        const claimed = await store.claimTurns({
          now: Date.now(),
          node: "node_a",
          leaseMs: LEASE_MS,
          free: 8,
          freeOf: () => 8,
          newMessageId: () => newId("msg", Date.now()),
        });
        expect(claimed.turns).toHaveLength(8);

        await first.start();
        await first.query("alter system reset synchronous_standby_names");
        await first.query("select pg_reload_conf()");
        // A new gateway asks both servers; a running one knows which of them is the later.
        const { store: begun } = await open([first, second]);
        expect(await begun.getTurn(work.kept.at(-1) as string)).toBeDefined();
        await begun[Symbol.asyncDispose]();
        const askedBefore = asked();
        await second.stop("fast");
        await expect.poll(asked, SOON).toBeGreaterThan(askedBefore + 2);
        expect(await refusal(store.ping())).toBe("store-unavailable");
        await second.start();
        await expect.poll(() => refusal(store.ping()), SOON).toBe("not refused");
        expect(await first.query("select 1 from pg_stat_activity where application_name = 'agent-gateway'")).toEqual(
          [],
        );
      },
    );
  });

  it("refuses to open if no server accepts writes, and names the servers that it tried", async () => {
    const url = ["postgres://ada:secret@127.0.0.1:1/one", "postgres://127.0.0.1:2/two"];
    const refused = createPostgresStore({ clock: systemClock, url });
    await expect(refused).rejects.toMatchObject({ name: "store-unavailable" });
    await expect(refused).rejects.toThrow(/127\.0\.0\.1:1\/one: .*127\.0\.0\.1:2\/two: /);
    await expect(refused).rejects.not.toThrow(/secret/);
  });
});
