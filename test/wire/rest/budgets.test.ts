import { describe, expect, test } from "vitest";
import { SECRETS, type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../ws/socket.ts";

const HOUR = 3_600_000;
type Budgets = NonNullable<SomeConfig["budgets"]>;
type Amount = { used: number; reserved: number; limit: number; granted: number };
type Shown = { name: string; tokens: Amount | null; cost: Amount | null; state: string; resets_at: string };

function withBudgets(budgets: Budgets, more: SomeConfig = {}): SomeConfig {
  const gateway = { defaultAgent: "main", ...more.gateway };
  return { agents: { main: { backend: "echo" }, other: { backend: "echo" } }, budgets, gateway };
}
function start(budgets: Budgets, more?: SomeConfig) {
  return startGateway({ config: withBudgets(budgets, more) });
}
function send({ rest }: TestGateway, agent = "main", key?: string) {
  return rest.call("chat.send", { body: { message: "hi", agent }, ...(key !== undefined && { key }) });
}
async function list({ console }: TestGateway): Promise<Shown[]> {
  return (await console.call("budgets.list")).json.budgets as Shown[];
}
function grant({ console }: TestGateway, name: string, body: object, key?: string) {
  return console.call("budgets.grant", { path: { name }, body, ...(key !== undefined && { key }) });
}

describe("budgets.list", () => {
  test("shows the budgets in the order of the configuration, with their use", async () => {
    await using gateway = await start({
      // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
      monthly: { per: "month", timeZone: "Europe/Berlin", cost: 2.5, agents: ["main"], then: "pause" },
      daily: { per: "day", tokens: 1_000_000, keys: ["ci"], sources: ["rest", "webhook"] },
    });
    expect(await list(gateway)).toEqual([
      {
        name: "monthly",
        per: "month",
        time_zone: "Europe/Berlin",
        agents: ["main"],
        keys: null,
        sources: null,
        tokens: null,
        cost: { used: 0, reserved: 0, limit: 2.5, granted: 0 },
        estimated_tokens: 0,
        starts_at: expect.stringMatching(/T2[23]:00:00\.000Z$/),
        resets_at: expect.stringMatching(/T2[23]:00:00\.000Z$/),
        state: "open",
        // biome-ignore lint/suspicious/noThenProperty: the name of the contract.
        then: "pause",
      },
      expect.objectContaining({
        name: "daily",
        keys: ["ci"],
        sources: ["rest", "webhook"],
        tokens: { used: 0, reserved: 0, limit: 1_000_000, granted: 0 },
        cost: null,
      }),
    ]);
  });

  test("counts the turns that match, and no others", async () => {
    await using gateway = await start({
      all: { per: "day", tokens: 1_000_000 },
      main: { per: "day", tokens: 1_000_000, agents: ["main"] },
      hooks: { per: "day", tokens: 1_000_000, sources: ["webhook"] },
    });
    await send(gateway);
    await send(gateway, "other");
    const used = Object.fromEntries((await list(gateway)).map(({ name, tokens }) => [name, tokens?.used]));
    expect(used.main).toBeGreaterThan(0);
    expect(used).toEqual({ all: 2 * Number(used.main), main: used.main, hooks: 0 });
  });

  test("is empty without budgets", async () => {
    await using gateway = await startGateway();
    expect(await list(gateway)).toEqual([]);
  });

  test("shows the same to RPC, and its states", async () => {
    await using gateway = await start({ tiny: { per: "hour", tokens: 1 }, half: { per: "hour", tokens: 1_000_000 } });
    await send(gateway);
    expect((await list(gateway)).map(({ state }) => state)).toEqual(["exceeded", "open"]);
    const { result } = await createRpc(gateway.url).call("budget.list");
    expect((result as { budgets: object[] }).budgets[0]).toMatchObject({
      name: "tiny",
      timeZone: "UTC",
      state: "exceeded",
      estimatedTokens: 0,
      startsAt: expect.any(String),
    });
  });
});

describe("budgets.grant", () => {
  test("opens a spent budget at once, until the end of its window, and is pushed and logged", async () => {
    await using gateway = await start({ daily: { per: "day", tokens: 1 } });
    using socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { gateway: null });
    expect((await send(gateway)).status).toBe(200);
    const refused = await send(gateway);
    expect([refused.status, refused.error]).toEqual([429, "budget-exceeded"]);
    const { json } = await grant(gateway, "daily", { tokens: 500 });
    expect(json).toMatchObject({ name: "daily", tokens: { limit: 1, granted: 500 }, state: "open" });
    expect((await send(gateway)).status).toBe(200);
    await socket.until(() => socket.pushes.some(({ method }) => method === "budget.granted"));
    expect(socket.pushes.map(({ method }) => method)).toEqual(["budget.exceeded", "budget.granted"]);
    expect(socket.pushes.map(({ params }) => params)).toMatchObject([
      { budgetName: "daily", unit: "tokens", limit: 1, resetsAt: json.resets_at },
      { budgetName: "daily", tokens: 500, cost: null, until: json.resets_at, grantedBy: "console" },
    ]);
    expect(await gateway.logged("budget.granted")).toMatchObject({ budget: "daily", tokens: 500, caller: "console" });
  });

  test("adds a cost, in the currency of the prices, and each call adds again", async () => {
    await using gateway = await start({ daily: { per: "day", tokens: 10, cost: 2 } });
    const until = new Date(Date.now() + 48 * HOUR).toISOString();
    await grant(gateway, "daily", { cost: 0.5 });
    const { json } = await grant(gateway, "daily", { cost: 0.25, tokens: 5, until });
    expect(json).toMatchObject({ cost: { limit: 2, granted: 0.75 }, tokens: { limit: 10, granted: 5 } });
  });

  test.each([
    [{}, "", "The grant adds nothing. Set `tokens`."],
    [{ cost: 1 }, "/cost", "The budget `daily` does not limit the cost."],
    [{ tokens: 5, until: "2020-01-01T00:00:00.000Z" }, "/until", "`until` is not in the future."],
    [{ tokens: 5, until: "2126-01-01T00:00:00.000Z" }, "/until", "`until` is more than a year ahead."],
    [{ tokens: 5, until: "2035-02-31T00:00:00.000Z" }, "/until", "until is not a valid date and time."],
  ])("refuses %j", async (body, pointer, detail) => {
    await using gateway = await start({ daily: { per: "day", tokens: 10 } });
    const { status, problem } = await grant(gateway, "daily", body);
    expect([status, problem.detail]).toEqual([400, detail]);
    expect(problem.errors?.map((one) => one.pointer)).toEqual([pointer]);
    expect((await list(gateway))[0]?.tokens?.granted).toBe(0);
  });

  test("rejects an unknown name, and suggests the nearest", async () => {
    await using gateway = await start({ daily: { per: "day", tokens: 10 } });
    const { error, problem } = await grant(gateway, "dayly", { tokens: 1 });
    expect([error, problem.detail]).toEqual(["budget-not-found", "No budget is named `dayly`. Did you mean `daily`?"]);
  });

  test("MUST refuse a key that the budget names, and accept another key and the console token", async () => {
    const other = "an-admin-key-of-somebody-else";
    const auth = {
      keys: [
        { name: "ops", key: SECRETS.adminKey, scopes: ["admin"] },
        { name: "boss", key: other, scopes: ["admin"] },
      ],
    };
    await using gateway = await start(
      {
        ops: { per: "day", tokens: 10, keys: ["ops", "ci"] },
        rpc: { per: "day", tokens: 10, keys: ["ops"], sources: ["rpc"] },
      },
      { gateway: { rest: { auth } } } as SomeConfig,
    );
    const { error, problem } = await grant(gateway, "ops", { tokens: 1 }, SECRETS.adminKey);
    expect([error, problem.detail]).toEqual(["forbidden", expect.stringContaining("applies to the key `ops`")]);
    expect((await list(gateway))[0]?.tokens?.granted).toBe(0);
    expect((await grant(gateway, "rpc", { tokens: 1 }, SECRETS.adminKey)).status).toBe(200);
    expect((await grant(gateway, "ops", { tokens: 1 }, other)).status).toBe(200);
    expect((await grant(gateway, "ops", { tokens: 1 })).status).toBe(200);
  });
});
