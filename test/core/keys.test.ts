import { describe, expect, it } from "vitest";
import { type ConfiguredKey, Keys } from "#core/keys.ts";
import { GatewayError } from "#kit/errors.ts";
import { createSecretIndex, hashOf } from "#kit/secrets.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import type { ApiKey, Store } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";

function configuredKey(name: string, secret: string): ConfiguredKey {
  return {
    name,
    hash: hashOf(secret),
    prefix: undefined,
    scopes: ["chat"],
  };
}

function agents(): string[] {
  return ["main", "billing"];
}
const silent = { storeFailed: () => {}, keyCreated: () => {}, keyRevoked: () => {} };

async function openKeys(configured: readonly ConfiguredKey[] = []) {
  const clock = createManualClock();
  const store = createMemoryStore({ clock });
  const keys = new Keys({ store, clock, events: silent, agents, configured });
  await keys.load();
  return { clock, store, keys };
}

/** A store with one key, whose answers the test controls, and the log of its calls. */
async function openWith(listKeys: (store: Store, time: number) => Promise<readonly ApiKey[]> | readonly ApiKey[]) {
  const { store, keys, clock } = await openKeys();
  const made = await keys.create({ name: "ci", scopes: ["chat"] }, "ops");
  let times = 0;
  const failing = { ...store, listKeys: async () => [...(await listKeys(store, ++times))] };
  const told: string[] = [];
  const events = { ...silent, storeFailed: ({ operation }: { operation: string }) => told.push(operation) };
  const others = new Keys({ store: failing, clock, events, agents, configured: [] });
  return {
    ...made,
    clock,
    store,
    told,
    keys: others,
    use: () => others.use(hashOf(made.secret))?.name,
    times: () => times,
  };
}
function away(): never {
  throw new GatewayError("store-unavailable");
}

describe("minted keys", () => {
  it("show their secret once, and are stored as a hash", async () => {
    const { keys, store, clock } = await openKeys();
    const { key, secret } = await keys.create({ name: "ci", scopes: ["chat", "admin"] }, "ops");
    expect(secret).toMatch(/^gw_[A-Za-z0-9_-]{43}$/);
    expect(key).toEqual({
      keyId: expect.stringMatching(/^key_[0-9A-Z]{26}$/),
      name: "ci",
      prefix: secret.slice(0, 9),
      hash: hashOf(secret).toString("hex"),
      scopes: ["chat", "admin"],
      createdAt: clock.now(),
      lastUsedAt: undefined,
    });
    expect(await store.listKeys()).toEqual([key]);
    expect(JSON.stringify([await store.listKeys(), await keys.list()])).not.toContain(secret);
  });

  it("are valid in any gateway that opens their store later", async () => {
    const { keys, store, clock } = await openKeys();
    const { secret } = await keys.create({ name: "ci", scopes: ["chat"] }, "ops");
    const others = new Keys({ store, clock, events: silent, agents, configured: [] });
    expect(others.use(hashOf(secret))).toBeUndefined();
    await others.load();
    expect(others.use(hashOf(secret))).toMatchObject({ name: "ci" });
  });

  it("are all stored if several are created at once", async () => {
    const { keys } = await openKeys();
    const made = await Promise.all(["a", "b", "c", "d"].map((name) => keys.create({ name, scopes: ["chat"] }, "ops")));
    for (const { key, secret } of made) expect(keys.use(hashOf(secret))?.keyId).toBe(key.keyId);
    expect(await keys.list()).toHaveLength(4);
  });

  it("record their last use, to the minute", async () => {
    const { keys, clock } = await openKeys();
    const { secret } = await keys.create({ name: "ci", scopes: ["chat"] }, "ops");
    const lastUsedAt = async () => (await keys.list())[0]?.lastUsedAt;
    expect(await lastUsedAt()).toBeUndefined();
    const first = clock.now();
    keys.use(hashOf(secret));
    expect(await lastUsedAt()).toBe(first);
    await clock.advance(59_999);
    keys.use(hashOf(secret));
    expect(await lastUsedAt()).toBe(first);
    await clock.advance(1);
    keys.use(hashOf(secret));
    expect(await lastUsedAt()).toBe(first + 60_000);
  });

  it("allow a call even if the store does not accept the record of their use", async () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock });
    const failing = { ...store, touchKey: () => Promise.reject(new Error("down")) };
    const keys = new Keys({ store: failing, clock, events: silent, agents, configured: [] });
    const { secret } = await keys.create({ name: "ci", scopes: ["chat"] }, "ops");
    expect(keys.use(hashOf(secret))).toMatchObject({ name: "ci" });
    await clock.settle();
  });
});

describe("keys of a store that does not answer", () => {
  it("delay a start, which would refuse them otherwise", async () => {
    const on = await openWith((store, time) => (time <= 3 ? away() : store.listKeys()));
    const loaded = on.keys.load();
    await on.clock.advance(5_000);
    await loaded;
    expect([on.use(), on.times(), on.told]).toEqual(["ci", 4, ["listKeys", "listKeys", "listKeys"]]);
    expect(on.clock.timers()).toBe(0);
  });

  it("make a start fail if the store does not answer for ten seconds, or if waiting does not help", async () => {
    const on = await openWith(away);
    const refused = expect(on.keys.load()).rejects.toMatchObject({ name: "store-unavailable" });
    await on.clock.advance(9_000);
    const before = on.times();
    await on.clock.advance(2_000);
    await refused;
    expect(before).toBeGreaterThan(5);
    const broken = await openWith(() => Promise.reject(new Error("no such table")));
    await expect(broken.keys.load()).rejects.toThrow("no such table");
    expect(broken.times()).toBe(1);
  });

  it("are read again until the store answers, if another node has changed them", async () => {
    const on = await openWith((store, time) => (time > 1 && time < 50 ? away() : store.listKeys()));
    await on.keys.load();
    expect(on.use()).toBe("ci");
    await on.store.revokeKey(on.key.keyId);
    on.keys.follow();
    on.keys.follow();
    await on.clock.advance(60_000);
    expect([on.use(), on.times(), on.told.length]).toEqual([undefined, 50, 48]);
    expect(on.clock.timers()).toBe(0);
  });

  it("are not read any more after the gateway has closed", async () => {
    const on = await openWith(away);
    on.keys.follow();
    await on.clock.advance(1_000);
    on.keys[Symbol.dispose]();
    const asked = on.times();
    await on.clock.advance(60_000);
    expect([on.times(), on.clock.timers()]).toEqual([asked, 0]);
  });

  it("are the latest created or revoked ones, in whatever order the answers arrive", async () => {
    const answers: (() => void)[] = [];
    const on = await openWith(async (store) => {
      const read = await store.listKeys();
      await new Promise<void>((resolve) => answers.push(resolve));
      return read;
    });
    on.keys.follow();
    await on.clock.settle();
    await on.store.revokeKey(on.key.keyId);
    on.keys.follow();
    const own = await on.keys.create({ name: "own", scopes: ["chat"] }, "ops");
    // The latest answer arrives first.
    for (let left = 9; left > 0; left--) {
      answers.pop()?.();
      await on.clock.settle();
    }
    expect([on.use(), on.keys.use(hashOf(own.secret))?.name]).toEqual([undefined, "own"]);
  });
});

describe("keys of the configuration", () => {
  it("have no id and cannot be revoked", async () => {
    const { keys } = await openKeys([configuredKey("ci", "secret")]);
    expect(await keys.list()).toEqual([
      {
        keyId: undefined,
        name: "ci",
        prefix: undefined,
        scopes: ["chat"],
        createdAt: undefined,
        lastUsedAt: undefined,
      },
    ]);
    await expect(keys.revoke("ci", "ops")).rejects.toMatchObject({ name: "key-not-found" });
    expect(keys.use(hashOf("secret"))).toMatchObject({ name: "ci" });
  });

  it("have the same last use after a new configuration", async () => {
    const { keys, clock } = await openKeys([configuredKey("ci", "secret")]);
    keys.use(hashOf("secret"));
    const at = clock.now();
    keys.configure([configuredKey("ci", "secret")]);
    expect(await keys.list()).toMatchObject([{ name: "ci", lastUsedAt: at }]);
  });
});

describe("secrets", () => {
  it("are found among many, also among those with the same beginning", () => {
    const like = (first: number, last: number) => Buffer.from([1, 2, 3, 4, ...Buffer.alloc(27, first), last]);
    const entries = [1, 2, 3].map((n) => ({ hash: like(n, n), value: `value ${n}` }));
    const find = createSecretIndex(entries);
    for (const { hash, value } of entries) expect(find(Buffer.from(hash))).toBe(value);
    expect(find(like(1, 9))).toBeUndefined();
    expect(find(Buffer.alloc(32))).toBeUndefined();
  });
});

describe("a rotation", () => {
  /** A store that delays its next list of keys, with the content at the time of the call. */
  const openHeld = async () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock });
    let held: Promise<void> | undefined;
    const listKeys = async () => {
      const list = await store.listKeys();
      const wait = held;
      held = undefined;
      await wait;
      return list;
    };
    const keys = new Keys({ store: { ...store, listKeys }, clock, events: silent, agents, configured: [] });
    const { key } = await keys.create({ name: "ci", scopes: ["chat"] }, "ops");
    const hold = (): (() => void) => {
      let release = () => {};
      held = new Promise((resolve) => (release = resolve));
      return release;
    };
    return { keys, key, hold };
  };

  it("MUST remain known if an older list arrives after it", async () => {
    const { keys, key, hold } = await openHeld();
    const release = hold();
    keys.follow();
    const { secret } = await keys.rotate(key.keyId, { overlapMs: 1_000, expiresAt: undefined }, "ops");
    release();
    await new Promise(setImmediate);
    expect(keys.good(hashOf(secret)) !== undefined).toBe(true);
  });

  it("MUST show its key once it is stored, even if the store fails right after that", async () => {
    const clock = createManualClock();
    const store = createMemoryStore({ clock });
    let isAway = false;
    const going: Store = {
      ...store,
      listKeys: async () => {
        if (isAway) throw new GatewayError("store-unavailable", "away");
        return store.listKeys();
      },
      replaceKey: async (...args) => {
        const isReplaced = await store.replaceKey(...args);
        isAway = true;
        return isReplaced;
      },
    };
    const keys = new Keys({ store: going, clock, events: silent, agents, configured: [] });
    const { key, secret: old } = await keys.create({ name: "ci", scopes: ["chat"] }, "ops");
    const { secret } = await keys.rotate(key.keyId, { overlapMs: 1_000, expiresAt: undefined }, "ops");
    await clock.advance(1_001);
    expect([old, secret].map((one) => keys.good(hashOf(one)) !== undefined)).toEqual([false, true]);
  });
});

it("reports keys that expire within two weeks, or expired within the last two", async () => {
  const { keys, clock } = await openKeys();
  const day = 86_400_000;
  await keys.create({ name: "ci", scopes: ["chat"], expiresAt: clock.now() + 15 * day }, "ops");
  const told = () => keys.ending().length;
  expect(told()).toBe(0);
  await clock.advance(day);
  expect(told()).toBe(1);
  await clock.advance(21 * day);
  expect(told()).toBe(1);
  await clock.advance(1);
  expect(told()).toBe(0);
});
