import { describe, expect, test } from "vitest";
import { good, load, refused, refusedOrWarned, rest, rpc, warned, withSections } from "./configs.ts";

const agents = { main: { backend: "echo" }, billing: { backend: "echo" } };
const gateway = { defaultAgent: "main", ...rest({ key: good(1) }), ...rpc({ token: good(2) }) };

function budget(more: object) {
  return { agents, gateway, budgets: { daily: { per: "day", tokens: 1_000, ...more } } };
}

describe("a budget", () => {
  test("by default refuses at its limit, warns at 80 %, and uses days in UTC", async () => {
    const { config, warnings } = await load(withSections(budget({})));
    expect(config.budgets.daily).toEqual({
      per: "day",
      tokens: 1_000,
      timeZone: "UTC",
      warnAt: 0.8,
      // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
      then: "refuse",
    });
    expect(warnings).toEqual([]);
  });

  test("must have a limit", async () => {
    expect(await refused(budget({ tokens: undefined }))).toEqual([
      "budgets.daily has no limit: give it `tokens`, `cost` or both, for example `tokens: 2000000`.",
    ]);
  });

  test.each([
    ["Europe/Berln", "; did you mean `Europe/Berlin`?"],
    ["Berlin", "; did you mean `Europe/Berlin`?"],
    ["new york", "; did you mean `America/New_York`?"],
    ["CEST2", ", for example `Europe/Berlin`."],
  ])("must be in a time zone, not in %s", async (timeZone, hint) => {
    expect(await refused(budget({ timeZone }))).toEqual([
      `budgets.daily.timeZone is not the name of a time zone${hint}`,
    ]);
  });

  test("is for agents that are configured", async () => {
    expect(await refused(budget({ agents: ["main", "biling"] }))).toEqual([
      "budgets.daily.agents[1] names an agent that is not configured; did you mean `billing`?",
    ]);
  });

  test("may be for a key that is not in the configuration, with a warning", async () => {
    const webhooks = {
      token: [{ name: "crm", value: good(3) }],
      mappings: { push: { match: {}, message: "x", verify: { type: "github", secret: good(4) } } },
    };
    const schedules = { brief: { every: "1h", message: "x" } };
    const named = ["k0", "t0", "crm", "push", "brief", "kO"];
    expect(await warned({ ...budget({ keys: named }), webhooks, schedules })).toEqual([
      "budgets.daily.keys[5] names a key or token that is not in the configuration, so it matches only a created key of this name; did you mean `k0`?",
    ]);
  });

  test.each([
    [{ per: "week" }, "per must be `hour`, `day` or `month`."],
    [{ per: undefined }, 'per is missing. Add it, for example `per: "day"`.'],
    [{ tokens: 0 }, "tokens must be at least 1."],
    [{ cost: 0 }, "cost must be at least 0.000001."],
    [{ warnAt: 1.2 }, "warnAt must be at most 1."],
    [
      { sources: ["webhooks"] },
      "sources[0] must be `rest`, `rpc`, `webhook`, `heartbeat` or `schedule`; did you mean `webhook`?",
    ],
    [{ keys: [] }, 'keys must not be empty, for example `["ci"]`.'],
  ])("MUST NOT be %j", async (wrong, said) => {
    expect(await refused(budget(wrong))).toEqual([`budgets.daily.${said}`]);
  });
});

describe("a limit of the cost", () => {
  const providers = { local: { type: "openai-compatible", baseUrl: "http://127.0.0.1:9/v1" } };
  const priced = { provider: "local", model: "a", price: { input: 1, output: 2 } };
  const model = (models: object) => ({ backend: "model", models });
  const load = (agents: object, more: object = {}) =>
    refusedOrWarned({
      agents: { main: { backend: "echo" }, ...agents },
      gateway,
      providers,
      budgets: { daily: { per: "day", cost: 5, ...more } },
    });

  test("warns of agents whose cost is not known", async () => {
    const half = model({ a: priced, b: { provider: "local", model: "b" } });
    expect(await load({ half, whole: model({ a: priced }) })).toEqual([
      "warning: budgets.daily.cost does not count the turns of `half`, because their cost is unknown: set a `price` for each model, or limit `tokens`.",
    ]);
    expect(await load({ half, whole: model({ a: priced }) }, { agents: ["main"] })).toEqual([
      "warning: budgets.daily.cost does not count the turns of `main`, because their cost is unknown: set a `price` for each model, or limit `tokens`.",
    ]);
  });

  test("does not warn if every model has a price", async () => {
    expect(await load({ whole: model({ a: priced }) })).toEqual([]);
  });
});
