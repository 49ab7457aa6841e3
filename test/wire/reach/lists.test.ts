import { describe, expect, test } from "vitest";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { skillsFolder } from "#test/harness/skills.ts";
import { configOf, FULL, LIMITED, SKILLS, seed } from "./limited.ts";

const folder = skillsFolder(SKILLS);

async function start(agents?: readonly string[], more: Parameters<typeof configOf>[1] = {}) {
  const gateway = await startGateway({ config: configOf(agents, { skills: { dirs: [folder] }, ...more }) });
  const rpc = createRpc(gateway.url, LIMITED.rpcToken);
  const get = async (operation: "skills.list" | "models.list" | "identity.get", key: string) =>
    (await gateway.rest.call(operation, { key })).json;
  return { gateway, rpc, full: createRpc(gateway.url, FULL.rpcToken), get };
}

async function dispose({ gateway }: { gateway: TestGateway }): Promise<void> {
  await gateway[Symbol.asyncDispose]();
}

describe("a caller that is limited to an agent sees only this agent", () => {
  test("in the list of skills: only skills that it has, and no folders that are not valid", async () => {
    const on = await start();
    const { skills, invalid } = await on.get("skills.list", LIMITED.key);
    expect((skills as { skill_id: string; agents: string[] }[]).map((one) => [one.skill_id, one.agents])).toEqual([
      ["of-a", ["a"]],
      ["shared", ["a"]],
    ]);
    expect(invalid).toEqual([]);
    const all = await on.get("skills.list", FULL.key);
    expect([(all.skills as object[]).length, (all.invalid as object[]).length]).toEqual([4, 1]);
    await dispose(on);
  });

  test("in the list of models", async () => {
    const on = await start();
    const idsOf = ({ data }: Record<string, unknown>) => (data as { id: string }[]).map(({ id }) => id);
    expect(idsOf(await on.get("models.list", LIMITED.key))).toEqual(["a"]);
    expect(idsOf(await on.get("models.list", FULL.key))).toEqual(["a", "b"]);
    await dispose(on);
  });

  test("in the list of agents", async () => {
    const on = await start();
    const namesOf = async ({ call }: typeof on.rpc) =>
      (await call("agent.list")).result.agents.map(({ agentName }) => agentName);
    expect([await namesOf(on.rpc), await namesOf(on.full)]).toEqual([["a"], ["a", "b"]]);
    await dispose(on);
  });

  test("in each page of the list of sessions", async () => {
    const on = await start();
    for (let n = 0; n < 5; n++) await seed(on.gateway);
    const found: string[] = [];
    let cursor: string | null | undefined;
    do {
      const { result } = await on.rpc.call("session.list", { limit: 2, ...(cursor && { cursor }) });
      expect(result.sessions.length).toBeLessThanOrEqual(2);
      found.push(...result.sessions.map(({ agentName }) => agentName));
      cursor = result.nextCursor;
    } while (cursor);
    expect(found).toEqual(["a", "a", "a", "a", "a"]);
    await dispose(on);
  });

  test("in usage, also where it is split by surface, token or hour", async () => {
    const on = await start();
    await seed(on.gateway);
    await on.gateway.rest.call("chat.send", { body: { message: "more", agent: "b" } });
    expect((await on.rpc.call("usage.stats")).result.total.messages).toBe(1);
    expect((await on.full.call("usage.stats")).result.total.messages).toBe(3);
    const { groups } = (await on.rpc.call("usage.stats", { groupBy: "agent" })).result;
    expect(groups.map(({ key }) => key)).toEqual(["a"]);
    for (const groupBy of ["surface", "token", "hour"] as const) {
      const [group] = (await on.rpc.call("usage.stats", { groupBy })).result.groups;
      expect(group?.counts.messages).toBe(1);
    }
    await dispose(on);
  });

  test("in health, whose status is that of the parts that it gets", async () => {
    const on = await start(["a"], { agents: { b: { backend: "echo", echo: { fail: "out of order" } } } });
    await on.gateway.rest.call("chat.send", { body: { message: "hi", agent: "b" } });
    const read = async ({ call }: typeof on.rpc) => {
      const { status, parts } = (await call("system.health")).result;
      return [status, parts.map(({ name }) => name).filter((name) => name.startsWith("agents."))];
    };
    await expect.poll(() => read(on.full)).toEqual(["degraded", ["agents.a", "agents.b"]]);
    expect(await read(on.rpc)).toEqual(["ok", ["agents.a"]]);
    const { parts } = (await on.rpc.call("system.health")).result;
    expect(parts.map(({ name }) => name)).toContain("store");
    await dispose(on);
  });

  test("in health, without the parts and the counts that concern all agents", async () => {
    const on = await start(["a"], {
      agents: { b: { backend: "echo" } },
      channels: { ops: { type: "webhook", url: "https://example.com/ops", secret: "a-secret-for-ops-channel" } },
      limits: { events: 1 },
    });
    const body = { name: "ending", expires_at: new Date(Date.now() + 60_000).toISOString() };
    expect((await on.gateway.console.call("keys.create", { body })).status).toBe(201);
    for (const text of ["one", "two"]) await on.gateway.hooks.wake({ text, mode: "next-heartbeat" });
    const read = async ({ call }: typeof on.rpc) => (await call("system.health")).result;
    const full = await read(on.full);
    const others = ["channels.ops", "rest.keys", "agents.b"];
    expect(full.parts.map(({ name }) => name)).toEqual(expect.arrayContaining(others));
    expect(full.parts.find(({ name }) => name === "events")?.detail).toContain("1 events wait");
    const { status, parts } = await read(on.rpc);
    expect(parts.map((part) => part.name)).toEqual(["store", "queue", "events", "memory", "eventLoop", "agents.a"]);
    const detail = "Its limit is reached: new work is refused until there is space.";
    expect([status, parts.find(({ name }) => name === "events")]).toEqual([
      "degraded",
      { name: "events", status: "degraded", detail },
    ]);
    await dispose(on);
  });

  test("in the turns of the last hour", async () => {
    const on = await start();
    await seed(on.gateway);
    await on.gateway.rest.call("chat.send", { body: { message: "more", agent: "b" } });
    const read = async ({ call }: typeof on.rpc) =>
      (await call("system.info")).result.turnsPerMinute.reduce((sum, one) => sum + one, 0);
    expect([await read(on.rpc), await read(on.full)]).toEqual([1, 3]);
    await dispose(on);
  });

  test("and its own limits, by its identity", async () => {
    const on = await start(["b", "a"]);
    for (const token of Object.values(LIMITED))
      expect(await on.get("identity.get", token)).toMatchObject({ agents: ["b", "a"], rate_limit: null });
    for (const token of [...Object.values(FULL), on.gateway.consoleToken])
      expect(await on.get("identity.get", token)).toMatchObject({ agents: null, rate_limit: null });
    await dispose(on);
  });
});
