// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { built, good, load, refusal, refused, rest, rpc, withSections } from "./configs.ts";

const two = { main: { backend: "echo" }, helper: { backend: "echo" } };
function mapping(more: object) {
  return { webhooks: { mappings: { push: { match: {}, message: "x", ...more } } } };
}
function isOfBackend(line: string) {
  return line.startsWith("agents.main.backend ");
}

describe("a type that is not part of the build is refused by name", () => {
  test.each(["sqlite", "postgres"])("the store %s", async (type) => {
    const store = type === "sqlite" ? { type, path: "x" } : { type, url: ["x", "y"] };
    expect(await refused({ store })).toEqual([
      `store.type is \`${type}\`, which this version does not support: use \`memory\`.`,
    ]);
  });

  test.each(["model", "a2a", "http", "command", "acp"])("the backend %s", async (backend) => {
    const described = /http|a2a/.test(backend) ? { url: "http://127.0.0.1:9" } : { run: ["x"] };
    const section = backend === "model" ? {} : { [backend]: described };
    expect((await refused({ agents: { main: { backend, ...section } } })).filter(isOfBackend)).toEqual([
      `agents.main.backend is \`${backend}\`, which this version does not support: use \`echo\`.`,
    ]);
  });
});

describe("the default agent", () => {
  test("is the only agent", async () => {
    expect((await load(withSections({}))).config.gateway.defaultAgent).toBe("main");
  });

  test("must be named if there are several", async () => {
    expect(await refused({ agents: two })).toEqual([
      'gateway.defaultAgent is missing. There are several agents (`main`, `helper`): name the one for requests without an agent, for example `gateway: { defaultAgent: "main" }`.',
    ]);
    const { config } = await load(withSections({ agents: two, gateway: { defaultAgent: "helper" } }));
    expect(config.gateway.defaultAgent).toBe("helper");
  });
});

describe("a surface", () => {
  test("is on if it has a secret and is not switched off", async () => {
    const gateway = { ...rest({ key: good(1) }), ...rpc({ token: good(2) }) };
    const webhooks = { token: good(3), enabled: false };
    const { config } = await load(withSections({ gateway, webhooks }));
    expect(config.gateway.rest.enabled).toBe(true);
    expect(config.gateway.rpc.enabled).toBe(true);
    expect(config.gateway.console.enabled).toBe(false);
    expect(config.webhooks.enabled).toBe(false);
  });

  test("REST and RPC are on with only the console's token", async () => {
    const { config } = await load(withSections({ gateway: { console: { token: good(1) } } }));
    expect([config.gateway.rest.enabled, config.gateway.rpc.enabled, config.gateway.console.enabled]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("webhooks are on with a signed mapping", async () => {
    const { config } = await load(withSections(mapping({ verify: { type: "github", secret: good(1) } })));
    expect(config.webhooks.enabled).toBe(true);
  });
});

describe("the MCP server", () => {
  const on = { rest: { auth: { keys: [{ name: "ci", key: good(1) }] } }, mcp: { enabled: true } };

  test("is off, offers all agents and skills, and no tools of operators, unless the configuration says otherwise", async () => {
    const mcpOf = async (gateway: object) => (await load(withSections({ gateway }))).config.gateway.mcp;
    expect(await mcpOf({})).toEqual({ enabled: false, agents: undefined, operator: false, skills: true });
    const mcp = { enabled: true, agents: ["main"], operator: "read", skills: false };
    expect(await mcpOf({ ...on, mcp })).toEqual(mcp);
  });

  test("with an agent that is not configured is refused at its place", async () => {
    const gateway = { ...on, mcp: { enabled: true, agents: ["main", "mian"] } };
    const text = JSON.stringify({ agents: { main: { backend: "echo" } }, gateway }, null, 1);
    const line = text.split("\n").findIndex((one) => one.includes('"mian"')) + 1;
    expect(await refusal(text)).toEqual([
      `gateway.json5:${line}:5: gateway.mcp.agents[1] names an agent that is not configured; did you mean \`main\`?`,
    ]);
  });

  test("is refused, with the command that installs its packages, if they are missing", async () => {
    const missingPackages = (kinds: readonly string[]) => (kinds.includes("mcp") ? "npm install it@2" : undefined);
    const options = { built: { ...built, missingPackages } };
    expect(await refused({ gateway: on }, options)).toEqual([
      "gateway.mcp.enabled is true, but needs packages that are not installed. Run: npm install it@2",
    ]);
    expect(await load(withSections({}), options)).toBeDefined();
  });
});

describe("permissions", () => {
  test("may be only a star", async () => {
    const { config } = await load(
      withSections({ gateway: rpc({ token: good(1) }, { token: good(2), permissions: ["*"] }) }),
    );
    expect(config.gateway.rpc.auth.tokens.map(({ permissions }) => permissions)).toEqual([["*"], ["*"]]);
  });
});

describe("listeners", () => {
  test("without readable certificates are refused", async () => {
    const tls = { cert: "./nowhere.pem", key: "/" };
    expect(await refused({ gateway: { listeners: [{ port: 1, tls }] } })).toEqual([
      "gateway.listeners[0].tls.cert names the file `./nowhere.pem`, which cannot be read: it does not exist. Create it, or name another one. It is resolved relative to the configuration file.",
      "gateway.listeners[0].tls.key names the file `/`, which cannot be read: it is a folder. Name the file in it.",
    ]);
  });

  test("with a certificate and the key of another are refused", async () => {
    const at = (file: string) => `${process.cwd()}/test/config/tls/${file}`;
    const listening = (key: string) => ({
      gateway: { listeners: [{ port: 1, tls: { cert: at("cert.pem"), key: at(key) } }] },
    });
    expect(await refused(listening("other-key.pem"))).toEqual([
      "gateway.listeners[0].tls has a certificate and a key that do not belong together, or a file that is not PEM: check `cert` and `key`.",
    ]);
    const { config, files } = await load(withSections(listening("key.pem")));
    expect(config.gateway.listeners[0]?.tls?.cert).toMatch(/^-----BEGIN CERTIFICATE-----/);
    expect(Object.keys(files).slice(1)).toEqual([at("cert.pem"), at("key.pem")]);
  });
});
