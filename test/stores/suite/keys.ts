import { describe, expect, it } from "vitest";
import type { ApiKey } from "#store/store.ts";
import { type Engine, openWorld } from "../world.ts";

const keyOf = (n: number): ApiKey => ({
  keyId: `key_${n}`,
  name: `key ${n}`,
  prefix: `gw_${n}`,
  hash: String(n).repeat(64),
  scopes: n % 2 ? ["chat"] : ["chat", "admin"],
  createdAt: n,
  lastUsedAt: undefined,
});

export const keysTests = (engine: Engine): void => {
  describe("keeping keys", () => {
    it("lists keys in the order of their making", async () => {
      await using world = await openWorld(engine);
      for (const n of [3, 1, 2]) await world.store.createKey(keyOf(n));
      expect(await world.store.listKeys()).toEqual([keyOf(3), keyOf(1), keyOf(2)]);
    });

    it("revokes a key once, and only that one", async () => {
      await using world = await openWorld(engine);
      for (const n of [1, 2]) await world.store.createKey(keyOf(n));
      expect(await world.store.revokeKey("key_1")).toBe(true);
      expect(await world.store.revokeKey("key_1")).toBe(false);
      expect(await world.store.revokeKey("key_9")).toBe(false);
      expect(await world.store.listKeys()).toEqual([keyOf(2)]);
    });

    it("notes when a key was last used, and ignores one that is not there", async () => {
      await using world = await openWorld(engine);
      for (const n of [1, 2]) await world.store.createKey(keyOf(n));
      await world.store.touchKey("key_1", 5_000);
      await world.store.touchKey("key_9", 5_000);
      expect((await world.store.listKeys()).map(({ lastUsedAt }) => lastUsedAt)).toEqual([5_000, undefined]);
    });
  });
};
