import { copyFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { openDriver } from "#store/sqlite/file.ts";
import { DAMAGE } from "#store/sqlite/text.ts";
import type { Store } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { hookOf, record, STEPS } from "./deliveries.ts";
import { queueEvent } from "./inbound.ts";
import { inThisThread, newPath, openSqlite } from "./sqlite-engine.ts";
import { LEASE_MS, openWorld, used } from "./world.ts";

const NUL = "a\0b";

/** A file with a row in each table. */
async function filled(): Promise<{ path: string; turnId: string; eventId: string }> {
  const path = newPath();
  await using world = await openWorld({ name: "sqlite", open: (clock) => openSqlite(clock, path, inThisThread) });
  const { store } = world;
  const announce = { channel: "ops", hops: 0 };
  const { turnId } = await world.start({ key: "k", announce, delivery: hookOf("dlv_turn") });
  await world.end(await world.claimNext(), { usage: used(1, 1) });
  await world.start({ session: `chat:${NUL}`, agent: NUL });
  const { eventId } = await queueEvent(world);
  await queueEvent(world, { eventId: "evt_000000" });
  await record(world, hookOf("dlv_hook"));
  await record(world, hookOf("dlv_gone"));
  await store.addDeliveryStep("dlv_hook", STEPS[0] as (typeof STEPS)[number]);
  await store.planBeat("main", { now: 1, delayMs: 1, soonest: false });
  const key = { keyId: "key_1", name: "one", prefix: "gw_", hash: "00", scopes: ["chat"] as const, createdAt: 1 };
  await store.createKey({ ...key, lastUsedAt: undefined });
  await store[Symbol.asyncDispose]();
  change(
    path,
    `INSERT INTO summaries VALUES (1, '{"ordinal":1,"summary":{"text":"short","outside":false},"through":1,"except":[]}')`,
  );
  return { path, turnId, eventId };
}

/** A change to the file itself by another program: the file is copied without its log. */
function change(path: string, sql: string): void {
  const driver = openDriver(path);
  driver.exec(sql);
  driver.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  driver.close();
}

/** Every column that may have text, and the number of its rows with text. */
function textColumns(path: string): { table: string; column: string }[] {
  const driver = openDriver(path);
  const sql = `SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`;
  const columns = driver.prepare(sql).raw().all([]) as [string, string, string][];
  const found = columns.flatMap(([table, column, type]) => {
    if (type !== "TEXT" && type !== "") return [];
    const count = driver.prepare(`SELECT count(*) FROM ${table} WHERE typeof(${column}) = 'text'`).raw();
    const [rows] = count.get([]) as [number];
    return rows > 0 ? [{ table, column }] : [];
  });
  driver.close();
  return found;
}

/** All answers of the store. */
function reads(store: Store, { turnId, eventId }: { turnId: string; eventId: string }): (() => Promise<unknown>)[] {
  const all = { from: 0, to: Number.MAX_SAFE_INTEGER };
  const more = { node: "node_b", leaseMs: LEASE_MS };
  return [
    () => store.getTurn(turnId),
    () => store.getSession("chat:a"),
    () => store.listSessions({ limit: 10 }),
    () => store.readEntries("chat:a", { after: 0, limit: 100 }),
    () => store.readMessages("chat:a", { limit: 100 }),
    () => store.readSummary("chat:a"),
    () => store.readUsage(all),
    () => store.sumUsage({ ...all, by: "agent" }),
    () => store.readGatewayEntries({ after: 0, limit: 100 }),
    () => store.listKeys(),
    () => store.readBeat("main"),
    () => store.getEvent(eventId),
    () => store.listEvents({ limit: 100 }),
    () => store.readQueuedEvents({ agent: "main", after: 0, through: 1e9, limit: 100, bytes: 1e6 }),
    () => store.findReplay({ key: "k", hash: "hash" }, 1),
    () => store.claimOutgoing({ ...more, free: {}, others: { free: 10, before: 1e15 } }),
    () => store.getDelivery("dlv_hook"),
    () => store.listDeliveries({ limit: 100 }),
  ];
}

describe("a SQLite file with a damaged text", () => {
  // CAST(… AS TEXT) leaves the bytes unchanged.
  const damages = {
    "no UTF-8": (column: string) => `CAST(x'b0' || CAST(${column} AS BLOB) AS TEXT)`,
    "no JSON": (column: string) => `'#' || ${column}`,
  };
  for (const [what, damaged] of Object.entries(damages)) {
    it(`is refused with an error message, or refuses only the calls that read the text: ${what}`, async () => {
      const { path, ...ids } = await filled();
      const columns = textColumns(path);
      expect(columns.length).toBeGreaterThan(15);
      const shown = new Set<string>();
      for (const { table, column } of columns) {
        const copy = newPath();
        copyFileSync(path, copy);
        change(copy, `UPDATE ${table} SET ${column} = ${damaged(column)} WHERE typeof(${column}) = 'text'`);
        const name = `${table}.${column}`;
        const store = await openSqlite(createManualClock(), copy, inThisThread).catch((error: Error) => {
          expect(error.message, name).toMatch(
            /^The SQLite file .* is damaged \(a record differs .*\)\. Restore a backup/,
          );
          shown.add(name);
        });
        if (!store) continue;
        let answered = 0;
        for (const read of reads(store, ids)) {
          const [answer] = await Promise.allSettled([read()]);
          if (answer.status === "fulfilled") {
            answered++;
            continue;
          }
          // A changed key is not found, or belongs to another request.
          expect(answer.reason, name).toBeInstanceOf(GatewayError);
          expect(["store-unavailable", "turn-not-found", "idempotency-mismatch"], name).toContain(answer.reason.name);
          if (answer.reason.detail === DAMAGE) shown.add(name);
        }
        expect(answered, name).toBeGreaterThan(0);
        await store.ping();
        await store[Symbol.asyncDispose]();
      }
      const bodies = columns.filter(({ column }) => column === "body");
      expect([...shown]).toEqual(expect.arrayContaining(bodies.map(({ table, column }) => `${table}.${column}`)));
    });
  }
});
