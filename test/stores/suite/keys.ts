import { describe, expect } from "vitest";
import type { ApiKey } from "#store/store.ts";
import { testsOn } from "../tests-on.ts";
import type { Engine } from "../world.ts";

function keyOf(n: number): ApiKey {
  return {
    keyId: `key_${n}`,
    name: `key ${n}`,
    prefix: `gw_${n}`,
    hash: String(n).repeat(64),
    scopes: n % 2 ? ["chat"] : ["chat", "admin"],
    createdAt: n,
    lastUsedAt: undefined,
    expiresAt: n % 2 ? undefined : 9_000 + n,
    replacedBy: undefined,
    agents: n % 2 ? ["main", "b\u00fcro"] : undefined,
    rateLimit: n % 2 ? { maxRequests: n, windowMs: 60_000 } : undefined,
  };
}

export function keysTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("keeping keys", () => {
    it("lists keys in the order of their creation", async ({ world }) => {
      for (const n of [3, 1, 2]) await world.store.createKey(keyOf(n));
      expect(await world.store.listKeys()).toEqual([keyOf(3), keyOf(1), keyOf(2)]);
    });

    it("revokes a key once, and only this key", async ({ world }) => {
      for (const n of [1, 2]) await world.store.createKey(keyOf(n));
      expect(await world.store.revokeKey("key_1")).toBe(true);
      expect(await world.store.revokeKey("key_1")).toBe(false);
      expect(await world.store.revokeKey("key_9")).toBe(false);
      expect(await world.store.listKeys()).toEqual([keyOf(2)]);
    });

    it("creates a key as a replacement for another, which expires no later than before", async ({ world }) => {
      for (const n of [1, 2]) await world.store.createKey(keyOf(n));
      expect(await world.store.replaceKey("key_1", keyOf(3), 5_000)).toBe(true);
      expect(await world.store.replaceKey("key_2", keyOf(4), 99_000)).toBe(true);
      expect(await world.store.listKeys()).toEqual([
        { ...keyOf(1), replacedBy: "key_3", expiresAt: 5_000 },
        { ...keyOf(2), replacedBy: "key_4" },
        keyOf(3),
        keyOf(4),
      ]);
    });

    it("replaces a key once, and stores nothing if the key does not exist", async ({ world }) => {
      await world.store.createKey(keyOf(1));
      const both = [world.store.replaceKey("key_1", keyOf(3), 5_000), world.store.replaceKey("key_1", keyOf(5), 6_000)];
      expect((await Promise.all(both)).toSorted()).toEqual([false, true]);
      expect(await world.store.replaceKey("key_9", keyOf(7), 5_000)).toBe(false);
      expect(await world.store.listKeys()).toHaveLength(2);
    });

    it("records when a key was last used, and ignores a key that does not exist", async ({ world }) => {
      for (const n of [1, 2]) await world.store.createKey(keyOf(n));
      await world.store.touchKey("key_1", 5_000);
      await world.store.touchKey("key_9", 5_000);
      expect((await world.store.listKeys()).map(({ lastUsedAt }) => lastUsedAt)).toEqual([5_000, undefined]);
    });
  });
}
