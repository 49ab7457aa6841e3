import pg from "pg";
import { describe, expect, it } from "vitest";
import { Memory } from "#store/postgres/records/memory.ts";
import { TransactionRecords } from "#store/postgres/records/records.ts";
import { Transaction } from "#store/postgres/records/transaction.ts";
import type { ToolCall, TurnOrder } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { recordSent } from "./sent.ts";
import { testsOnTwo } from "./two-stores.ts";
import { deliveryOf, RECORDER, silent, times, type World } from "./world.ts";

it("remembers the bookmarks that a transaction has set, and leaves those of another at the same time", () => {
  const memory = new Memory();
  const begin = () => new TransactionRecords(new Transaction(createManualClock()), memory, true);
  const [one, other] = [begin(), begin()];
  const [pass, otherPass] = [one.begin(), other.begin()];
  pass.setBookmarks({ isWaitedNext: false });
  expect(pass.bookmarks).toMatchObject({ isWaitedNext: false, sweptTo: undefined });
  one.remember();
  otherPass.setBookmarks({ recorderBytes: 5 });
  other.remember();
  expect(memory.bookmarks).toMatchObject({ isWaitedNext: false, recorderBytes: 5, sweptTo: undefined });
});

/** An order whose skills are read by the rule, or written with the record, by `read`. */
function orderWith(world: World, session: string, how: PropertyDescriptor | { toJSON(): unknown }): TurnOrder {
  const order = world.order({ session });
  return Object.defineProperty(order, "skillIds", "toJSON" in how ? { value: how } : how);
}

await postgresTests((server) => {
  const test = testsOnTwo(server);
  const sent = recordSent();

  describe("a transaction on PostgreSQL that fails", () => {
    test("does not make its connection prepare statements again", async ({ on: { one, two } }) => {
      const order = two.order({ session: "chat:two" });
      await two.store.startTurn(order);
      const clients: pg.Client[] = [];
      /** The statements that were prepared since the last call, each with its connection. */
      const prepared = () =>
        sent.splice(0).flatMap(({ client, text }) => {
          if (!clients.includes(client)) clients.push(client);
          const statements = text.split(";\n").filter((statement) => statement.startsWith("prepare "));
          return statements.map((statement) => statement.replace(/^prepare \w+/, `${clients.indexOf(client)}`));
        });
      const failAndStart = async () => {
        for (const sessionId of ["chat:known", "chat:new"]) {
          const twice = { ...order, session: { ...order.session, sessionId } };
          await expect(one.store.startTurn(twice)).rejects.toThrow(pg.DatabaseError);
          await one.start({ session: "chat:known" });
        }
      };
      await failAndStart();
      const before = new Set(prepared());
      expect(before.size).toBeGreaterThan(10);
      await failAndStart();
      expect(prepared().filter((statement) => before.has(statement))).toEqual([]);
      expect(one.store.stats().turnsQueued).toBe(5);
    });

    test("does not run an order again that was refused before", async ({ on: { one } }) => {
      let isBroken = true;
      let writes = 0;
      const get = () => {
        if (isBroken) throw new TypeError("broken");
        return [];
      };
      const toJSON = () => {
        if (writes++ === 0) throw new TypeError("broken");
        return [];
      };
      const broken = orderWith(one, "chat:broken", { get });
      const refused = one.store.startTurn(broken).catch((error) => {
        isBroken = false;
        return error;
      });
      await one.store.startTurn(orderWith(one, "chat:a", { toJSON }));
      expect(await refused).toBeInstanceOf(TypeError);
      expect(await one.store.getTurn(broken.turnId)).toBeUndefined();
      expect(one.store.stats().turnsQueued).toBe(1);
    });

    test("refuses only the order whose record cannot be written", async ({ on: { one } }) => {
      let writes = 0;
      const toJSON = () => {
        writes++;
        throw new RangeError("Invalid string length");
      };
      const long = one.store.startTurn(orderWith(one, "chat:long", { toJSON }));
      const others = times(3, (n) => one.start({ session: `chat:${n}` }));
      await expect(long).rejects.toThrow("Invalid string length");
      await Promise.all(others);
      expect(writes).toBe(2);
      expect(one.store.stats().turnsQueued).toBe(3);
    });
  });

  describe("a transaction on PostgreSQL", () => {
    test("is not repeated if a watcher throws after its commit", async ({ on: { one } }) => {
      const stop = one.store.watch({
        ...silent,
        entries: () => {
          throw new TypeError("broken");
        },
      });
      const orders = times(2, (n) => one.order({ session: `chat:${n}` }));
      const started = await Promise.allSettled(orders.map((order) => one.store.startTurn(order)));
      expect(started.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
      stop();
      expect(await one.names("chat:0")).toEqual(["message.created", "turn.queued"]);
      expect(one.store.stats().turnsQueued).toBe(2);
    });

    test("contains few recorded requests if their bodies are large", async ({ on: { one } }) => {
      sent.length = 0;
      const bodies = times(8, (n) => deliveryOf(`dlv_${n}`, "x".repeat(1_000_000)));
      await Promise.all(bodies.map((delivery) => one.store.recordDelivery(delivery, RECORDER)));
      expect(Math.max(...sent.map(({ text }) => text.length))).toBeLessThan(4_000_000);
    });

    test("contains few ends of turns if their tool calls are large", async ({ on: { one } }) => {
      await Promise.all(times(60, (n) => one.start({ session: `chat:${n}` })));
      const { turns } = await one.claim();
      sent.length = 0;
      const toolCalls = [{ name: "look", arguments: "x".repeat(60_000) }] as unknown as ToolCall[];
      await Promise.all(turns.map((turn) => one.end(turn, { toolCalls })));
      expect(Math.max(...sent.map(({ text }) => text.length))).toBeLessThan(3_000_000);
    });
  });
});
