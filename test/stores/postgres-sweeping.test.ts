import { describe, expect } from "vitest";
import { Servers } from "#store/postgres/connect.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { recordSent } from "./sent.ts";
import { testsOnTwo } from "./two-stores.ts";
import { DAY, endTurn, sweepOrder, times } from "./world.ts";

/** More than a sweep reads. */
const CHATS = 300;

await postgresTests((server) => {
  const it = testsOnTwo(server);
  const sent = recordSent();

  describe("a sweep on PostgreSQL", () => {
    it("does not read chats within their retention, which is longer than that of webhooks", async ({ on: { one } }) => {
      const now = one.clock.now();
      const use = (session: string, days: number) => endTurn(one.store, now - days * DAY, { session });
      await Promise.all([...times(CHATS, (n) => use(`chat:${n}`, 10)), use("webhook:old", 8), use("chat:old", 31)]);
      const order = sweepOrder(now, { sessionsBefore: now - 30 * DAY, webhookSessionsBefore: now - 7 * DAY });
      expect(await one.store.sweep(order)).toBe(false);
      expect(await one.store.getSession("webhook:old")).toBeUndefined();
      expect(await one.store.getSession("chat:old")).toBeUndefined();
      expect(one.store.stats().sessions).toBe(CHATS);
    });

    it("finds idle sessions by an index, at the beginning and after the last one", async ({ on: { one, url } }) => {
      const now = one.clock.now();
      sent.length = 0;
      await one.start({ session: "chat:unfinished" });
      await one.sweep({ sessionsBefore: now });
      const statements = sent.flatMap(({ text }) => /prepare sessions_scan_idle as ([^;]*)/.exec(text)?.[1] ?? []);
      expect(new Set(statements).size).toBe(1);
      const client = await new Servers([url]).find();
      await client.query(`prepare search as ${statements[0]}`);
      const values = /\$\d+/g;
      const nulls = [...new Set(statements[0]?.match(values))].map(() => "null");
      const { rows } = await client.query(`explain execute search(${nulls.join(", ")})`);
      await client.end();
      const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
      expect(plan.match(/Index Scan using sessions_idle/g)).toHaveLength(2);
      expect(plan.match(/Index Cond: .*ROW\(idle_minute, ordinal\) > .*idle_minute <= /g)).toHaveLength(2);
    });
  });
});
