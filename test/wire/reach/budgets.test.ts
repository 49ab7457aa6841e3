import { describe, expect, onTestFinished, test } from "vitest";
import { SECRETS, type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

const OWN = "a-key-with-its-own-budget";
const ADMIN = "an-admin-key-with-a-budget";
const TOKEN = "a-token-with-its-own-budget";
const NARROW = "a-token-for-the-agent-main";

type Budget = { per: "hour" | "day" | "month"; tokens?: number; cost?: number };
const TINY: Budget = { per: "day", tokens: 1 };

/** A key and a token with a budget, and others without. */
function configOf(budget: Budget | undefined, budgets: NonNullable<SomeConfig["budgets"]> = {}): SomeConfig {
  const limit = budget && { budget };
  return {
    agents: { main: { backend: "echo" }, other: { backend: "echo" } },
    budgets,
    gateway: {
      defaultAgent: "main",
      openai: { enabled: true },
      rest: {
        auth: {
          keys: [
            { name: "own", key: OWN, ...limit },
            { name: "admin", key: ADMIN, scopes: ["admin"], ...limit },
            { name: "tests", key: SECRETS.key },
          ],
        },
      },
      rpc: {
        auth: {
          tokens: [
            { name: "own", token: TOKEN, permissions: "*", ...limit },
            { name: "narrow", token: NARROW, permissions: "*", agents: ["main"], ...limit },
            { name: "ops", token: SECRETS.rpcToken, permissions: "*" },
          ],
        },
      },
    },
  };
}

async function start(config: SomeConfig) {
  const gateway = await startGateway({ config });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}
type Gateway = Awaited<ReturnType<typeof start>>;

/** The outcomes of as many messages with the key. */
async function outcomes({ rest }: Gateway, key: string, count: number): Promise<string[]> {
  const found = [];
  for (let n = 0; n < count; n++) {
    const { error, status } = await rest.call("chat.send", { key, body: { message: "hi" } });
    found.push(error ?? String(status));
  }
  return found;
}
async function names({ console }: Gateway): Promise<string[]> {
  const { json } = await console.call("budgets.list");
  return (json.budgets as { name: string }[]).map(({ name }) => name);
}
function create({ console }: Gateway, body: object) {
  return console.call("keys.create", { body });
}
function grant({ console }: Gateway, name: string, key?: string) {
  return console.call("budgets.grant", { path: { name }, body: { tokens: 1_000 }, ...(key !== undefined && { key }) });
}
async function seenBy(gateway: Gateway, token: string): Promise<string[]> {
  const { result } = await createRpc(gateway.url, token).call("budget.list");
  return (result as { budgets: { name: string }[] }).budgets.map(({ name }) => name);
}

describe("the budget of a key", () => {
  test("MUST count only the turns of the key, refuse further turns, and not affect other keys", async () => {
    const gateway = await start(configOf(TINY));
    expect(await outcomes(gateway, OWN, 2)).toEqual(["200", "budget-exceeded"]);
    expect(await outcomes(gateway, SECRETS.key, 3)).toEqual(["200", "200", "200"]);
    const { headers, problem } = await gateway.rest.call("chat.send", { key: OWN, body: { message: "hi" } });
    expect(problem.detail).toContain("`key:own`");
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });

  test("MUST apply to skills and the OpenAI-compatible API", async () => {
    const gateway = await start(configOf(TINY));
    await outcomes(gateway, OWN, 1);
    const messages = [{ role: "user", content: "hi" }];
    const answer = await gateway.rest.call("completions.create", { key: OWN, body: { model: "main", messages } });
    expect([answer.status, answer.error]).toEqual([429, "budget-exceeded"]);
    // Else they would retry within seconds, because the day ends later than they wait.
    expect(answer.headers.get("x-should-retry")).toBe("false");
  });

  test("MUST hold for a created key from its first call, and for the key that replaces it", async () => {
    const gateway = await start(configOf(undefined));
    const { json } = await create(gateway, { name: "widget", budget: TINY });
    expect(json.budget).toEqual({ per: "day", time_zone: "UTC", tokens: 1 });
    expect(json.config_line).toContain('budget: { per: "day", tokens: 1 }');
    expect(await names(gateway)).toEqual(["key:widget"]);
    expect(await outcomes(gateway, String(json.key), 2)).toEqual(["200", "budget-exceeded"]);
    const path = { key_id: String(json.key_id) };
    const { json: next } = await gateway.console.call("keys.rotate", { path, body: {} });
    expect(await outcomes(gateway, String(next.key), 1)).toEqual(["budget-exceeded"]);
    expect(await names(gateway)).toEqual(["key:widget"]);
    expect((await grant(gateway, "key:widget")).status).toBe(200);
    expect(await outcomes(gateway, String(next.key), 1)).toEqual(["200"]);
  });

  test("is shown with the key and to the key, and gone when the key is revoked", async () => {
    const gateway = await start(configOf(undefined));
    const budget = { per: "month", time_zone: "Europe/Berlin", tokens: 5, cost: 0.5 };
    const { json } = await create(gateway, { name: "widget", budget });
    const { json: list } = await gateway.console.call("keys.list");
    expect((list.keys as { name: string; budget: unknown }[]).find(({ name }) => name === "widget")?.budget).toEqual(
      budget,
    );
    expect((await gateway.rest.call("identity.get", { key: String(json.key) })).json.budget).toEqual(budget);
    expect((await gateway.rest.call("identity.get", { key: TOKEN })).json.budget).toBeNull();
    await gateway.console.call("keys.revoke", { path: { key_id: String(json.key_id) } });
    expect(await names(gateway)).toEqual([]);
  });

  test("MUST end with the key, and not limit a later key of the same name", async () => {
    const gateway = await start(configOf(undefined));
    const end = Date.now() + 1_500;
    const old = await create(gateway, { name: "widget", budget: TINY, expires_at: new Date(end).toISOString() });
    expect(await outcomes(gateway, String(old.json.key), 2)).toEqual(["200", "budget-exceeded"]);
    await expect.poll(() => names(gateway), { timeout: 5_000 }).toEqual([]);
    const { json } = await create(gateway, { name: "widget" });
    expect(await outcomes(gateway, String(json.key), 2)).toEqual(["200", "200"]);
  });

  test.each([
    [{ name: "a", budget: { per: "day" } }, "/budget", "has no limit: set `tokens`, `cost` or both"],
    [
      { name: "a", budget: { per: "day", tokens: 1, time_zone: "Europe/Berln" } },
      "/budget/time_zone",
      "is not the name of a time zone, for example Europe/Berlin",
    ],
    [{ name: "tests", budget: TINY }, "/name", "is the name of another key, so this key cannot have a budget"],
    [{ name: "own" }, "/name", "is the name of another key, which has a budget"],
  ])("is checked when the key is created: %j", async (body, pointer, message) => {
    const gateway = await start(configOf(TINY));
    const { error, problem } = await create(gateway, body);
    expect([error, problem.errors]).toEqual(["invalid-request", [{ pointer, message }]]);
  });

  test("MUST be set, raised and taken away by a reload, which does not change what was spent", async () => {
    const gateway = await start(configOf(undefined));
    expect(await outcomes(gateway, OWN, 2)).toEqual(["200", "200"]);
    await gateway.reload(configOf(TINY));
    expect(await outcomes(gateway, OWN, 2)).toEqual(["200", "budget-exceeded"]);
    await gateway.reload(configOf({ per: "day", tokens: 1_000_000 }));
    expect(await outcomes(gateway, OWN, 1)).toEqual(["200"]);
    await gateway.reload(configOf(TINY));
    expect(await outcomes(gateway, OWN, 1)).toEqual(["budget-exceeded"]);
    await gateway.reload(configOf(undefined));
    expect(await outcomes(gateway, OWN, 1)).toEqual(["200"]);
  });

  test("MUST not be raised by the key itself, and no key can create keys", async () => {
    const gateway = await start(configOf(TINY));
    expect(await outcomes(gateway, ADMIN, 2)).toEqual(["200", "budget-exceeded"]);
    expect((await grant(gateway, "key:admin", ADMIN)).error).toBe("forbidden");
    expect((await grant(gateway, "key:own", OWN)).error).toBe("forbidden");
    expect((await gateway.rest.call("keys.create", { key: ADMIN, body: { name: "more" } })).error).toBe("forbidden");
    expect(await outcomes(gateway, ADMIN, 1)).toEqual(["budget-exceeded"]);
    expect((await grant(gateway, "key:admin")).status).toBe(200);
    expect(await outcomes(gateway, ADMIN, 1)).toEqual(["200"]);
  });

  test("MUST count the deliveries that an admin key sends again", async () => {
    const gateway = await start(configOf(TINY));
    const { json } = await gateway.hooks.agent({ message: "hi" });
    const path = { delivery_id: String(json.deliveryId) };
    const replay = () => gateway.rest.call("deliveries.replay", { key: ADMIN, path, body: {} });
    await replay();
    await expect
      .poll(async () => {
        const { json } = await gateway.console.call("budgets.list");
        return (json.budgets as { name: string; state: string }[]).find(({ name }) => name === "key:admin")?.state;
      })
      .toBe("exceeded");
    expect((await replay()).error).toBe("budget-exceeded");
  });
});

describe("the budget of an RPC token", () => {
  test("MUST count only the turns of the token, and be separate from the budget of a key with the same name", async () => {
    const gateway = await start(configOf(TINY));
    const ask = async (token: string) => {
      const params = { agentName: "main", message: "hi", wait: true };
      const { error } = await createRpc(gateway.url, token).call("agent.sendMessage", params);
      return error?.data.name ?? "result";
    };
    expect([await ask(TOKEN), await ask(TOKEN)]).toEqual(["result", "budget-exceeded"]);
    expect([await ask(SECRETS.rpcToken), await ask(SECRETS.rpcToken)]).toEqual(["result", "result"]);
    expect(await outcomes(gateway, OWN, 1)).toEqual(["200"]);
    expect((await grant(gateway, "token:own")).status).toBe(200);
    expect(await ask(TOKEN)).toBe("result");
  });

  test("MUST show a token with limited agents only the budgets of its agents, and its own", async () => {
    const budgets = {
      all: { per: "day", tokens: 10 },
      main: { per: "day", tokens: 10, agents: ["main"] },
      both: { per: "day", tokens: 10, agents: ["main", "other"] },
      other: { per: "day", tokens: 10, agents: ["other"] },
      mine: { per: "day", tokens: 10, keys: ["narrow"] },
      ours: { per: "day", tokens: 10, agents: ["main"], keys: ["narrow", "own"] },
      rest: { per: "day", tokens: 10, keys: ["narrow"], sources: ["rest"] },
    } satisfies SomeConfig["budgets"];
    const gateway = await start(configOf(TINY, budgets));
    const all = [...Object.keys(budgets), "token:own", "token:narrow", "key:own", "key:admin"];
    expect(await seenBy(gateway, SECRETS.rpcToken)).toEqual(all);
    expect(await names(gateway)).toEqual(all);
    expect(await seenBy(gateway, NARROW)).toEqual(["main", "mine", "token:narrow"]);
  });
});
