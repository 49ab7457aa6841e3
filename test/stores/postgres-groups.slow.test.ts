import { describe, expect } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { groupOf } from "./groups.ts";
import { testsOnTwo } from "./two-stores.ts";
import { deliveryOf, times, type World } from "./world.ts";

function send(world: World, text: string, key: string) {
  const delivery = deliveryOf(world.newId("dlv"), text);
  const order = { session: `webhook:${key}`, surface: "hooks" as const, text, delivery, group: groupOf({ key }) };
  return world.store.startTurn(world.order(order));
}

await postgresTests((server) => {
  const it = testsOnTwo(server);

  describe("groups of webhooks on two gateways", () => {
    it("become one turn for each key, whichever gateway a request reaches", async ({ on: { one, two, clock } }) => {
      const started = await Promise.all(times(100, (n) => send(n % 2 ? one : two, `push ${n}`, `group:${n % 5}`)));
      expect(new Set(started.map(({ turn }) => turn.turnId)).size).toBe(5);
      expect(started.filter(({ joinedBy }) => joinedBy === undefined)).toHaveLength(5);
      await send(two, "last", "group:0");
      await clock.advance(30_000);
      const claims = await Promise.all([one.claim(), two.claim()]);
      const texts = claims.flatMap(({ turns }) => turns.map(({ message }) => message.text));
      expect(texts).toHaveLength(5);
      expect(texts).toContain("last");
    });

    it("are closed by the other gateway if the one that opened them has stopped", async ({
      on: { one, two, clock },
    }) => {
      const { turn } = await send(one, "one", "group:a");
      await two.hears((what) => what.kind === "turn");
      expect((await two.claim()).nextDueInMs).toBe(30_000);
      await one.store[Symbol.asyncDispose]();
      await clock.advance(30_000);
      expect((await two.claimNext()).turn.turnId).toBe(turn.turnId);
    });

    it("are closed many at once", async ({ on: { one, clock } }) => {
      await Promise.all(times(200, (n) => send(one, `push ${n}`, `group:${n}`)));
      await clock.advance(30_000);
      expect((await one.claim({ free: 50 })).turns).toHaveLength(50);
      expect((await one.claim()).turns).toHaveLength(150);
      expect(one.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 200 });
    });
  });
});
