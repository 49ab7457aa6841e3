import { describe, expect, test } from "vitest";
import { good, load, refusal, refused, rest, rpc, withSections } from "./configs.ts";

const agents = { main: { backend: "echo" }, billing: { backend: "echo" } };
const gateway = { defaultAgent: "main" };

describe("the agents of a key", () => {
  test("and its rate limit are part of the configuration, for REST and for RPC", async () => {
    const limits = { agents: ["billing", "main"], rateLimit: { maxRequests: 20, windowMs: 1_000 } };
    const both = { ...gateway, ...rest({ key: good(1), ...limits }), ...rpc({ token: good(2), ...limits }) };
    const { config } = await load(withSections({ agents, gateway: both }));
    expect(config.gateway.rest.auth.keys[0]).toMatchObject({ ...limits, scopes: ["chat"] });
    expect(config.gateway.rpc.auth.tokens[0]).toMatchObject(limits);
  });

  test("are refused with the scope admin, because such a key reaches every agent", async () => {
    const key = (scopes: string[]) => ({ ...gateway, ...rest({ key: good(1), scopes, agents: ["main"] }) });
    for (const scopes of [["admin"], ["chat", "admin"]])
      expect(await refused({ agents, gateway: key(scopes) })).toEqual([
        "gateway.rest.auth.keys[0].agents is only for keys whose only scope is `chat`: a key with the scope `admin` reaches every agent.",
      ]);
    expect(await load(withSections({ agents, gateway: key(["chat"]) }))).toBeDefined();
  });

  test("have to be configured", async () => {
    const limited = { agents: ["biling", "Main"] };
    const both = { ...gateway, ...rest({ key: good(1), ...limited }), ...rpc({ token: good(2), agents: ["other"] }) };
    expect(await refused({ agents, gateway: both })).toEqual([
      "gateway.rest.auth.keys[0].agents[0] names an agent that is not configured; did you mean `billing`?",
      "gateway.rest.auth.keys[0].agents[1] names an agent that is not configured; did you mean `main`?",
      "gateway.rpc.auth.tokens[0].agents[0] names an agent that is not configured; there are `main`, `billing`.",
    ]);
  });

  test("are refused at their place in the file", async () => {
    const text = `{
  gateway: {
    rest: {
      auth: { keys: [{ name: "a", key: "${good(1)}", agents: ["main", "mian"] }] },
    },
  },
  agents: { main: { backend: "echo" } },
}`;
    const [fault] = await refusal(text);
    expect(fault).toContain("gateway.json5:4:81: gateway.rest.auth.keys[0].agents[1] names an agent");
  });

  test.each([
    [{ agents: [] }, 'agents must not be empty, for example `["main"]`.'],
    [{ agents: ["main", "main"] }, "agents has the same entry twice: remove one of them."],
    [{ agents: "main" }, 'agents must be a list, for example `["main"]`.'],
    [{ rateLimit: { maxRequests: 0, windowMs: 1 } }, "rateLimit.maxRequests must be at least 1."],
    [{ rateLimit: { maxRequests: 1e7, windowMs: 1 } }, "rateLimit.maxRequests must be at most 1000000."],
    [{ rateLimit: { maxRequests: 1 } }, "rateLimit.windowMs is missing."],
    [{ rateLimit: { maxRequests: 1, windowMs: 1e9 } }, "rateLimit.windowMs must be at most 86400000."],
  ])("MUST NOT be %j", async (limits, said) => {
    const [fault] = await refused({ agents, gateway: { ...gateway, ...rest({ key: good(1), ...limits }) } });
    expect(fault).toContain(`gateway.rest.auth.keys[0].${said}`);
    const [other] = await refused({ agents, gateway: { ...gateway, ...rpc({ token: good(1), ...limits }) } });
    expect(other).toContain(`gateway.rpc.auth.tokens[0].${said}`);
  });
});
