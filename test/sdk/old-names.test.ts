import { afterEach, describe, expect, test, vi } from "vitest";
import {
  AgentGateway,
  AgentGatewayError,
  type AgentGatewayOptions,
  Gateway,
  GatewayError,
} from "#generated/clients/typescript/src/index.ts";
import { runCli } from "#test/cli/cli.ts";
import { answerServer, json } from "./answers.ts";
import { pythons, runPython } from "./python.ts";

function old(url: string) {
  return {
    AGENT_GATEWAY_URL: url,
    AGENT_GATEWAY_KEY: "old-key",
    AGENT_GATEWAY_RPC_TOKEN: "old-rpc",
    AGENT_GATEWAY_WEBHOOK_TOKEN: "old-hook",
  };
}
const NEW_NAMES = {
  AGENT_GATEWAY_URL: "GATEWAY_URL",
  AGENT_GATEWAY_KEY: "REST_API_KEY",
  AGENT_GATEWAY_RPC_TOKEN: "RPC_TOKEN",
  AGENT_GATEWAY_WEBHOOK_TOKEN: "WEBHOOK_TOKEN",
};
const warnings = Object.entries(NEW_NAMES).map(([before, now]) => `${before} is deprecated. Set ${now}.`);
const answers = [json(200, {}), json(200, {}), json(200, {}), json(200, { jsonrpc: "2.0", id: null, result: {} })];
function authorizationsOf({ seen }: Awaited<ReturnType<typeof answerServer>>) {
  return seen.map(({ headers }) => headers.authorization);
}
const OLD_TOKENS = ["Bearer old-key", "Bearer old-key", "Bearer old-hook", "Bearer old-rpc"];

afterEach(() => vi.unstubAllEnvs());

describe("the client for TypeScript", () => {
  test("has the old class, the old error and the old option as aliases", async () => {
    await using server = await answerServer([json(200, {})]);
    const options: AgentGatewayOptions = { url: server.url, restKey: "old-option" };
    expect(AgentGateway).toBe(Gateway);
    expect(AgentGatewayError).toBe(GatewayError);
    await new AgentGateway(options).skills.list();
    expect(authorizationsOf(server)).toEqual(["Bearer old-option"]);
  });

  test("prefers `key` to the old option", async () => {
    await using server = await answerServer([json(200, {})]);
    await new Gateway({ url: server.url, key: "new", restKey: "old" }).skills.list();
    expect(authorizationsOf(server)).toEqual(["Bearer new"]);
  });

  test("reads the old variables, and warns of each once", async () => {
    await using server = await answerServer(answers);
    for (const [name, value] of Object.entries(old(server.url))) vi.stubEnv(name, value);
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const gateway = new Gateway();
    await gateway.skills.list();
    await gateway.skills.list();
    await gateway.hooks.wake({ text: "x" });
    await gateway.rpc.agent.list({}, { maxRetries: 0 }).catch(() => {});
    expect(authorizationsOf(server)).toEqual(OLD_TOKENS);
    expect(warn.mock.calls.map(([words]) => words)).toEqual(expect.arrayContaining(warnings));
    expect(warn).toHaveBeenCalledTimes(warnings.length);
  });

  test("prefers a variable to its old name", async () => {
    await using server = await answerServer([json(200, {})]);
    vi.stubEnv("AGENT_GATEWAY_KEY", "old");
    vi.stubEnv("REST_API_KEY", "new");
    await new Gateway({ url: server.url }).skills.list();
    expect(authorizationsOf(server)).toEqual(["Bearer new"]);
  });
});

test.each(pythons)("the client for Python %s reads the old variables, and warns of each once", async (_, python) => {
  await using server = await answerServer(answers);
  const code = `
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    gateway = Gateway()
    gateway.skills.list()
    gateway.skills.list()
    gateway.hooks.wake(text="x")
    failing(lambda: gateway.with_options(max_retries=0).rpc.agent.list())
show([str(one.message) for one in caught if one.category is FutureWarning])
`;
  const [words] = await runPython(python, code, old(server.url));
  expect(authorizationsOf(server)).toEqual(OLD_TOKENS);
  expect((words as string[]).toSorted()).toEqual(warnings.toSorted());
});

test("the commands read the old variables, and warn of them", async () => {
  await using server = await answerServer([json(200, { skills: [], invalid: [] })]);
  const { code, err } = await runCli(["skills", "list"], { env: old(server.url) });
  expect({ code, seen: authorizationsOf(server) }).toEqual({ code: 0, seen: ["Bearer old-key"] });
  expect(err.split("\n")).toEqual(expect.arrayContaining(warnings));
});
