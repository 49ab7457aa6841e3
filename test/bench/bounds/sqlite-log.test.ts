import { statSync } from "node:fs";
import { expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { newId } from "#kit/ids.ts";
import { newPath, openSqlite } from "#test/stores/sqlite-engine.ts";

const KEYS = 1_500;
const MIB = 1_048_576;

function keyOf(n: number) {
  return {
    keyId: newId("key", n),
    name: `key ${n} ${"x".repeat(8_000)}`,
    prefix: "gw_",
    hash: String(n),
    scopes: ["chat" as const],
    createdAt: n,
    lastUsedAt: undefined,
  };
}

it("limits the log while one commit follows another, and all stored records are in the file", {
  timeout: 30_000,
}, async () => {
  const path = newPath();
  let longest = 0;
  {
    await using store = await openSqlite(systemClock, path);
    for (let n = 0; n < KEYS; n++) {
      await store.createKey(keyOf(n));
      if (n % 10 === 0) longest = Math.max(longest, statSync(`${path}-wal`).size);
    }
  }
  expect(longest).toBeGreaterThan(MIB);
  // More than that was written, and SQLite itself would let the log grow further.
  expect(longest).toBeLessThan(24 * MIB);
  expect(statSync(path).size).toBeGreaterThan(KEYS * 8_000);
  await using again = await openSqlite(systemClock, path);
  expect(await again.listKeys()).toHaveLength(KEYS);
});
