import { describe, expect, it } from "vitest";
import { setPaused } from "#core/agents/agents.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import type { HealthPart, Store } from "#store/store.ts";
import { followLive } from "./follow-live.ts";
import { AMPLE, type CoreOptions, startCore, type TestCore } from "./start-core.ts";

const OK = { status: "ok", detail: null };

async function partOf({ core }: TestCore, name: string): Promise<HealthPart | undefined> {
  return (await core.health.read()).parts.find((part) => part.name === name);
}
async function degraded({ core }: TestCore): Promise<string[]> {
  return (await core.health.read()).parts.filter(({ status }) => status === "degraded").map(({ name }) => name);
}
async function pushed({ core }: TestCore) {
  return (await core.gatewayStream.read(0, 100)).map((entry) =>
    entry.name === "health.changed" ? [entry.status, ...entry.parts.map(({ name }) => name)].join(" ") : entry.name,
  );
}

/** A core whose store can stop answering, and that counts the calls. */
async function startWithPing(options: CoreOptions = {}) {
  const pings = { count: 0, answer: (): Promise<void> => Promise.resolve() };
  const ping = () => {
    pings.count++;
    return pings.answer();
  };
  const core = await startCore({ ...options, wrapStore: () => ({ ping }) });
  return Object.assign(core, { pings });
}

async function failOne(core: TestCore, agent = "main") {
  const turn = await core.start({ agent, session: `chat:${agent}` });
  (await core.scripted.next()).fail(new BackendError("no"));
  await core.ended(turn);
}

function dated(since: string, index = 0) {
  return { index, name: "shared", since };
}

describe("health", () => {
  it("is ok if every part is, and names each part", async () => {
    await using core = await startCore({ agents: [{ name: "main" }, { name: "other" }] });
    expect(await core.core.health.read()).toEqual({
      status: "ok",
      parts: ["store", "queue", "events", "agents.main", "agents.other"].map((name) => ({ name, ...OK })),
      store: { type: "memory", durable: false },
      nodeId: core.core.node,
    });
  });

  it("reports a paused agent with its waiting work, without being degraded", async () => {
    await using core = await startCore();
    await setPaused(core, "main", true, "ada");
    await core.start();
    expect(await degraded(core)).toEqual([]);
    expect(await partOf(core, "agents.main")).toEqual({
      name: "agents.main",
      status: "ok",
      detail: "It has been paused since 2026-11-21T08:00:00.000Z: 1 turn and 0 events wait until it is resumed.",
    });
    expect(await pushed(core)).toEqual(["agent.paused"]);
  });

  it("names a failing store", async () => {
    await using core = await startWithPing();
    core.pings.answer = () => Promise.reject(new Error("down"));
    expect(await core.core.health.read()).toMatchObject({ status: "degraded" });
    expect(await degraded(core)).toEqual(["store"]);
  });

  it("reports that the disk of the store is full", async () => {
    await using core = await startWithPing();
    core.pings.answer = () => Promise.reject(new GatewayError("store-full", "The store's disk is full."));
    const detail = "The store's disk is full: work that does not fit is refused until there is space.";
    expect(await partOf(core, "store")).toEqual({ name: "store", status: "degraded", detail });
  });

  it("names a store that does not answer within a second, and calls it once while it hangs", async () => {
    await using core = await startWithPing();
    let answer = () => {};
    core.pings.answer = () => new Promise((resolve) => (answer = resolve));
    for (let n = 0; n < 3; n++) {
      const read = degraded(core);
      await core.clock.advance(1_000);
      expect(await read).toEqual(["store"]);
      await core.clock.advance(250);
    }
    expect(core.pings.count).toBe(1);
    core.pings.answer = () => Promise.resolve();
    answer();
    await core.clock.settle();
    expect(await degraded(core)).toEqual([]);
    expect(core.pings.count).toBe(2);
  });

  it("names a full store", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, storeBytes: 10_000 } };
    await using core = await startCore({ settings: { limits } });
    expect(await degraded(core)).toEqual([]);
    await core.start({ text: "x".repeat(10_000) });
    await core.clock.advance(250);
    expect(await degraded(core)).toEqual(["store"]);
  });

  it("names a full queue until there is room again", async () => {
    const limits = { ...AMPLE, store: { ...AMPLE.store, turns: 1 } };
    await using core = await startCore({ settings: { limits } });
    await core.start();
    const waiting = await core.start();
    expect(await degraded(core)).toEqual(["queue"]);
    await core.core.turns.cancel(waiting.turnId);
    await core.clock.advance(250);
    expect(await degraded(core)).toEqual([]);
  });

  it("names the agent whose backend failed, until a turn of it completes", async () => {
    await using core = await startCore({ agents: [{ name: "main" }, { name: "other" }] });
    await failOne(core, "other");
    expect(await degraded(core)).toEqual(["agents.other"]);
    const turn = await core.start({ agent: "other", session: "chat:other" });
    (await core.scripted.next()).end();
    await core.ended(turn);
    await core.clock.advance(250);
    expect(await degraded(core)).toEqual([]);
  });

  it("warns of a webhook token that is in use for more than 90 days", async () => {
    await using core = await startCore({ settings: { datedTokens: [dated("2026-08-24")] } });
    expect(await partOf(core, "webhooks.token")).toMatchObject(OK);
    await core.clock.block(86_400_000);
    expect(await partOf(core, "webhooks.token")).toMatchObject({
      status: "degraded",
      detail: expect.stringContaining("2026-08-24"),
    });
  });

  it("logs an old token at the start and then once a day", async () => {
    await using core = await startCore({ settings: { datedTokens: [dated("2026-11-01"), dated("2026-08-01", 1)] } });
    const told = async () => (await core.logged("token.old")).map(({ index, name, days }) => [index, name, days]);
    const first = await told();
    expect(first).toEqual([[1, "shared", expect.any(Number)]]);
    for (let day = 0; day < 2; day++) await core.clock.block(86_400_000);
    const days = first[0]?.[2] as number;
    expect(await told()).toEqual([0, 1, 2].map((later) => [1, "shared", days + later]));
    await core.core.reconfigure({ ...core.settingsWith(), datedTokens: [] });
    await core.clock.block(86_400_000);
    expect(await told()).toHaveLength(3);
  });

  it("has the age of each token with a start date; a date in the future or a missing date gives no age", async () => {
    const datedTokens = ["2026-11-01", "2036-01-01", "2026-99-99"].map((since, index) => dated(since, index));
    await using core = await startCore({ settings: { datedTokens } });
    expect(core.core.tokenAges()).toMatchObject([{ index: 0, name: "shared" }]);
  });

  it("names the old token among several", async () => {
    await using core = await startCore({ settings: { datedTokens: [dated("2026-11-01"), dated("2026-01-01", 1)] } });
    const part = await partOf(core, "webhooks.token");
    expect(part?.detail).toContain("2026-01-01");
    expect(part?.detail).not.toContain("2026-11-01");
  });

  it("has what the process reports of itself", async () => {
    const memory = { name: "memory", status: "degraded", detail: "Memory is low." } as const;
    await using core = await startCore({ processHealth: () => [memory] });
    expect(await partOf(core, "memory")).toEqual(memory);
    expect(await degraded(core)).toEqual(["memory"]);
  });
});

describe("concurrent health checks", () => {
  it("share one check, also with those that follow soon", async () => {
    await using core = await startWithPing();
    const all = await Promise.all(Array.from({ length: 1_000 }, () => core.core.health.read()));
    expect(new Set(all).size).toBe(1);
    await core.core.health.read();
    expect(core.pings.count).toBe(1);
    await core.clock.advance(249);
    await core.core.health.read();
    expect(core.pings.count).toBe(1);
    await core.clock.advance(1);
    await core.core.health.read();
    expect(core.pings.count).toBe(2);
  });

  it("fail with the error of the check, and the next one checks again", async () => {
    let isBroken = true;
    await using core = await startCore({
      processHealth: () => {
        if (isBroken) throw new Error("broken");
        return [];
      },
    });
    await expect(core.core.health.read()).rejects.toThrow("broken");
    await core.clock.advance(5_000);
    isBroken = false;
    expect((await core.core.health.read()).status).toBe("ok");
    expect(await core.logged("unexpected.error")).toMatchObject([{ where: "health" }]);
  });
});

describe("a change of health", () => {
  it("is pushed if the status changes or another part is degraded, and only then", async () => {
    await using core = await startWithPing({ agents: [{ name: "main" }, { name: "other" }] });
    await core.clock.advance(20_000);
    expect(await pushed(core)).toEqual([]);
    await failOne(core, "other");
    await core.clock.advance(20_000);
    expect(await pushed(core)).toEqual(["degraded agents.other"]);
    core.pings.answer = () => Promise.reject(new Error("down"));
    await core.clock.advance(20_000);
    expect((await pushed(core)).at(-1)).toBe("degraded store agents.other");
    core.pings.answer = () => Promise.resolve();
    const turn = await core.start({ agent: "other", session: "chat:other" });
    (await core.scripted.next()).end();
    await core.ended(turn);
    await core.clock.advance(20_000);
    expect((await pushed(core)).slice(2)).toEqual(["ok"]);
  });

  it("reaches followers within a second", async () => {
    await using core = await startCore();
    const heard: unknown[] = [];
    followLive(core.core.gatewayStream, (entry) => heard.push(entry));
    await core.clock.advance(5_000);
    await failOne(core);
    await core.clock.advance(1_000);
    const part = { name: "agents.main", status: "degraded", detail: expect.any(String) };
    expect(heard).toEqual([
      {
        seq: 1,
        at: expect.any(Number),
        name: "health.changed",
        nodeId: core.core.node,
        status: "degraded",
        parts: [part],
      },
    ]);
  });

  it("is pushed at once if a health check finds it first", async () => {
    await using core = await startCore();
    await failOne(core);
    await core.core.health.read();
    await core.clock.settle();
    expect(await pushed(core)).toEqual(["degraded agents.main"]);
  });

  it("is pushed later if the store could not store it", async () => {
    let isDown = true;
    const wrapStore = (store: Store): Partial<Store> => ({
      appendGatewayEntry: (...args) => (isDown ? Promise.reject(new Error("down")) : store.appendGatewayEntry(...args)),
    });
    await using core = await startCore({ wrapStore });
    await failOne(core);
    await core.clock.advance(5_000);
    expect(await pushed(core)).toEqual([]);
    isDown = false;
    await core.clock.advance(5_000);
    expect(await pushed(core)).toEqual(["degraded agents.main"]);
  });

  it("is not checked any more after the core is closed", async () => {
    const core = await startWithPing();
    await core.core.close();
    await core.clock.advance(60_000);
    expect(core.pings.count).toBe(0);
    expect(core.clock.timers()).toBe(0);
    await core[Symbol.asyncDispose]();
  });
});
