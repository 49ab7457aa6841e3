import { describe, expect } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { connect, testsOnTwo } from "./two-stores.ts";
import { sweepOrder } from "./world.ts";

const HOUR = 3_600_000;
/** More than the pages of a call and of a sweep. The names compare differently by their bytes than by their UTF-16 units. */
const COUNTERS = 12_000;
const FILL = `insert into usage (counter, body)
  select lpad(hour::text, 13, '0') || ' ' || names, ('{"hour":' || hour || ',"agent":"main","model":' || to_json(model)
    || ',"surface":"rest","caller":"ci","messages":1,"completed":0,"failed":0,"cancelled":0,"attempts":0,"latencyMs":0,"input":0,"output":0,"cached":0,"reasoning":0,"cost":0}')::json
  from (select *, '["main",' || to_json(model) || ',"rest","ci"]' as names
    from (select ${HOUR} * (1 + n % 2) as hour, case n % 3 when 0 then U&'\\FB01' when 1 then U&'\\+01F642' else 'a' end || n as model
      from generate_series(1, ${COUNTERS}) as n) as n) as n`;

await postgresTests((server) => {
  const it = testsOnTwo(server);

  describe("usage on PostgreSQL", () => {
    it("is summed and erased once for each counter, in several pages", async ({ on: { one, url } }) => {
      await using client = await connect(url);
      await client.query(FILL);
      const query = { from: 0, to: 10 * HOUR };
      const counters = await one.store.readUsage(query);
      expect(new Set(counters.map(({ hour, model }) => `${hour} ${model}`)).size).toBe(COUNTERS);
      expect(counters).toHaveLength(COUNTERS);
      const [sum] = await one.store.sumUsage({ ...query, by: "agent" });
      expect(sum).toMatchObject({ key: "main", counts: { messages: COUNTERS } });
      for (let n = 0; n < COUNTERS / 1_000; n++) await one.store.sweep(sweepOrder(1, { usageBefore: 10 * HOUR }));
      expect(await one.store.readUsage(query)).toEqual([]);
    });
  });
});
