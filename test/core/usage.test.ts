import { describe, expect, it } from "vitest";
import { START } from "#test/harness/clock.ts";
import { startCore, type TestCore } from "./start-core.ts";

const HOUR = 3_600_000;
function iso(time: number): string {
  return new Date(time).toISOString();
}

async function run(core: TestCore, options: Parameters<TestCore["start"]>[0], ms = 10) {
  const turn = await core.start(options);
  const played = await core.scripted.next();
  played.use(3, 2);
  await core.clock.advance(ms);
  played.end();
  await core.ended(turn);
}

function counts(of: { messages: number; completed: number; input: number; output: number; mean: number | null }) {
  return {
    messages: of.messages,
    turns: { completed: of.completed, failed: 0, cancelled: 0 },
    attempts: of.completed,
    tokens: { input: of.input, output: of.output, total: of.input + of.output },
    latencyMs: { mean: of.mean },
  };
}

describe("usage statistics", () => {
  it("are all zero, with no mean, before the first turn", async () => {
    await using core = await startCore();
    const { total, groups } = await core.core.usageStats({});
    expect(total).toEqual(counts({ messages: 0, completed: 0, input: 0, output: 0, mean: null }));
    expect(groups).toEqual([]);
  });

  it("count all stored turns up to the end of the current hour", async () => {
    await using core = await startCore();
    await run(core, {}, 10);
    await run(core, {}, 25);
    expect(await core.core.usageStats({})).toEqual({
      from: iso(START - 400 * 24 * HOUR),
      to: iso(START + HOUR),
      total: counts({ messages: 2, completed: 2, input: 6, output: 4, mean: 17.5 }),
      groups: [],
    });
  });

  it("round the period to whole hours", async () => {
    await using core = await startCore();
    await run(core, {});
    const span = (from: number, to: number) => core.core.usageStats({ from: iso(from), to: iso(to) });
    expect(await span(START + 1, START + 2)).toMatchObject({ from: iso(START), to: iso(START + HOUR) });
    expect((await span(START + 1, START + 2)).total.messages).toBe(1);
    expect(await span(START, START)).toMatchObject({ to: iso(START), total: { messages: 0 } });
    expect((await span(START + HOUR, START + 2 * HOUR)).total.messages).toBe(0);
  });

  it("refuse a period that ends before it starts", async () => {
    await using core = await startCore();
    const query = { from: iso(START + HOUR), to: iso(START) };
    await expect(core.core.usageStats(query)).rejects.toMatchObject({ name: "invalid-params" });
  });

  it("are split by each key, in the order of the keys", async () => {
    await using core = await startCore({ agents: [{ name: "main" }, { name: "ada", model: "small" }] });
    await run(core, { surface: "rpc", caller: "ops" });
    await core.clock.block(24 * HOUR);
    await run(core, { agent: "ada", session: "chat:b", surface: "hooks", caller: "ci" });
    await run(core, { agent: "ada", session: "chat:b", surface: "rest", model: "large", caller: "ci" });
    const keys = async (groupBy: "agent" | "model" | "surface" | "token" | "hour" | "day") =>
      (await core.core.usageStats({ groupBy })).groups.map(({ key, counts }) => [
        key,
        counts.messages,
        counts.attempts,
      ]);
    expect(await keys("agent")).toEqual([
      ["ada", 2, 2],
      ["main", 1, 1],
    ]);
    expect(await keys("model")).toEqual([
      ["large", 1, 1],
      ["scripted", 1, 1],
      ["small", 1, 1],
    ]);
    expect(await keys("surface")).toEqual([
      ["rest", 1, 1],
      ["rpc", 1, 1],
      ["webhooks", 1, 1],
    ]);
    expect(await keys("token")).toEqual([
      ["ci", 2, 2],
      ["ops", 1, 1],
    ]);
    expect(await keys("hour")).toEqual([
      [iso(START), 1, 1],
      [iso(START + 24 * HOUR), 2, 2],
    ]);
    expect(await keys("day")).toEqual([
      ["2026-11-21T00:00:00.000Z", 1, 1],
      ["2026-11-22T00:00:00.000Z", 2, 2],
    ]);
    expect((await core.core.usageStats({ groupBy: "model" }, ["ada"])).total.messages).toBe(2);
    expect((await core.core.usageStats({}, ["gone"])).total.messages).toBe(0);
  });

  it("remain after a session is deleted, and include its turn's usage until the deletion", async () => {
    await using core = await startCore();
    await run(core, {});
    await core.start();
    (await core.scripted.next()).use(9, 9);
    await core.clock.settle();
    await core.store.deleteSession("chat:a", core.clock.now());
    await core.clock.settle();
    expect((await core.core.usageStats({})).total).toMatchObject({
      messages: 2,
      turns: { completed: 1, failed: 0, cancelled: 1 },
      attempts: 2,
      tokens: { input: 12, output: 11, total: 23 },
    });
  });
});
