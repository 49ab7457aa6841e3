import { describe, expect, test } from "vitest";
import type { ErrorName } from "#generated/errors.ts";
import openrpc from "#generated/openrpc.json" with { type: "json" };
import type { RpcMethod } from "#generated/rpc-types.ts";
import { type Start, startGateway } from "#test/harness/gateway.ts";
import { UNREACHABLE } from "#test/harness/pairs.ts";
import { createRpc, type Rpc, transports } from "#test/harness/rpc.ts";
import { createStage, provocations } from "./provoke.ts";
import { scheduleProvocations } from "./provoke-schedules.ts";

// Readers of the contract try its examples first: each is sent, and each answer is one that was received.

type Params = Record<string, unknown>;
type Example = { name: string; params: { name: string; value: unknown }[]; result: { value: Params } };
type Failure = { code: number; message: string; data: Params & { name: string } };
type Described = {
  name: RpcMethod;
  examples: Example[];
  "x-errors": string[];
  "x-error-examples": Record<string, { params: Params; error: Failure }>;
};
const methods = openrpc.methods as unknown as Described[];
const common = openrpc["x-error-examples"] as unknown as Record<string, { error: Failure }>;

const examples = methods.flatMap(({ name: method, examples }) => examples.map((example) => ({ method, example })));

const main = { backend: "echo", description: "Repeats each message." } as const;
const brief = { cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", message: "Write the brief of the day." } as const;
const support = { backend: "echo", description: "Answers what customers ask." } as const;

/** The conversation of the contract's examples. */
function converse(rpc: Rpc) {
  return rpc.call("agent.sendMessage", { agentName: "main", message: "Good morning", wait: true });
}

/** Replaces the reload of the configuration, because the files of the examples do not exist here. */
const reloads: Record<string, Start["readConfig"]> = {
  changed: async () => ({
    reloaded: true,
    changed: ["agents.main.heartbeat.every"],
    needsRestart: ["gateway.port"],
    problems: [],
  }),
  invalid: async () => {
    const message = "is not a key of the configuration; did you mean `token`?";
    const problem = { file: "/somewhere/gateway.json5", line: 7, column: 5, key: "webhooks.tokn", message };
    return { reloaded: false, changed: [], needsRestart: [], problems: [problem] };
  },
};

/** Makes ids, times and build data the same. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value)
      .replaceAll(/\b(msg|turn|req|node|dlv)_[0-9A-HJKMNP-TV-Z]{26}/g, "$1_id")
      .replaceAll(/"schedule:[0-9A-HJKMNP-TV-Z]{26}"/g, '"a session of a schedule"')
      .replaceAll(/"nextAt":("[^"]+"|null)/g, '"nextAt":"a time or null"')
      .replaceAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g, '"a time"')
      .replaceAll(/"(uptimeMs|mean)":[\d.]+/g, '"$1":"a number"')
      .replaceAll(/"(version|runtime)":"[^"]+"/g, '"$1":"of this build"')
      .replaceAll(/"turnsPerMinute":\[[\d,]+\]/g, '"turnsPerMinute":"as counted"')
      .replaceAll(/"enabled":(true|false)/g, '"enabled":"as configured"'),
  );
}

/** The same params, with the current date. */
function today(params: Params): Params {
  const day = new Date().toISOString().slice(0, 10);
  const dates = { from: `${day}T00:00:00.000Z`, to: `${day}T23:59:59.999Z` };
  return { ...params, ...("from" in params && dates) };
}

describe("the examples of results", () => {
  test.each(examples)("$method: $example.name", async ({ method, example }) => {
    const readConfig = method === "system.reload" ? reloads[example.name] : undefined;
    const budgets = { daily: { per: "day", timeZone: "Europe/Berlin", tokens: 2_000_000 } } as const;
    const config = {
      agents: { main },
      ...(method === "budget.list" && { budgets }),
      ...(method.startsWith("schedule.") && { schedules: { brief } }),
    };
    await using gateway = await startGateway({ config, ...(readConfig && { readConfig }) });
    const rpc = createRpc(gateway.url);
    if (!method.startsWith("system.") && method !== "agent.sendMessage") await converse(rpc);
    const params = Object.fromEntries(example.params.map(({ name, value }) => [name, value]));
    const { result } = await rpc.call(method, today(params));
    expect(plain(result)).toEqual(plain(example.result.value));
  });

  test("exist for every method", () => {
    for (const { name, examples } of methods) expect([name, examples.length > 0]).toEqual([name, true]);
  });
});

/** Errors that the params of the example cause without further preparation. */
const PLAIN = ["invalid-request", "invalid-params", "agent-not-found", "session-not-found", "schedule-not-found"];
const failures = methods.flatMap(({ name: method, "x-errors": names, "x-error-examples": own }) =>
  names.map((name) => ({ method, name, own: own[name], error: (own[name] ?? common[name])?.error })),
);

describe("the examples of errors", async () => {
  const stage = createStage(transports["HTTP/1.1"] as NonNullable<(typeof transports)[string]>);

  test.each(failures)("$method: $name", async ({ method, name, own, error }) => {
    expect(error, "there is an example").toBeDefined();
    if (own && PLAIN.includes(name)) {
      await using gateway = await startGateway({
        config: { agents: { main, support }, gateway: { defaultAgent: "main" }, schedules: { brief } },
      });
      const { error: got } = await createRpc(gateway.url).call(method, own.params);
      expect(plain(got)).toEqual(plain(error));
    } else if (!(`${method} ${name}` in UNREACHABLE)) {
      const provoke = scheduleProvocations[method]?.[name as ErrorName] ?? provocations[name as ErrorName];
      if (!provoke) return expect(error?.data.name).toBe(name);
      const { error: got } = await provoke({ ...stage, method });
      expect({ ...got, data: Object.keys(got?.data ?? {}) }).toEqual({
        ...error,
        data: Object.keys(error?.data ?? {}),
      });
    }
  });

  test("and the gateways go", () => stage.close());
});
