// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { good, load, refused, rest, rpc, warned, withSections } from "./configs.ts";

const two = { main: { backend: "echo" }, helper: { backend: "echo" } };
const mapping = (more: object) => ({ webhooks: { mappings: { push: { match: {}, message: "x", ...more } } } });
const isOfBackend = (line: string) => line.startsWith("agents.main.backend ");

describe("what is not built yet is refused by its name", () => {
  test("an address of the store that is another database's, without its words", async () => {
    const built = { stores: ["postgres"], backends: ["echo"] };
    const store = (...url: string[]) => ({ store: { type: "postgres", url } });
    const lines = await refused(store("postgres://a/b", "mysql://user:secret@a/b"), { built });
    expect(lines).toEqual(["store.url must be the address of a PostgreSQL database, which begins with `postgres://`."]);
    await load(withSections(store("postgresql://a/b", "postgres://user:secret@a:1/b")), { built });
  });

  test.each(["sqlite", "postgres"])("the store %s", async (type) => {
    const store = type === "sqlite" ? { type, path: "x" } : { type, url: ["x", "y"] };
    expect(await refused({ store })).toEqual([
      `store.type is \`${type}\`, which this version does not have yet: use \`memory\`.`,
    ]);
  });

  test.each(["model", "a2a", "http", "command", "acp"])("the backend %s", async (backend) => {
    const described = /http|a2a/.test(backend) ? { url: "http://127.0.0.1:9" } : { run: ["x"] };
    const section = backend === "model" ? {} : { [backend]: described };
    expect((await refused({ agents: { main: { backend, ...section } } })).filter(isOfBackend)).toEqual([
      `agents.main.backend is \`${backend}\`, which this version does not have yet: use \`echo\`.`,
    ]);
  });

  test("a build that has it takes it", async () => {
    const built = { stores: ["sqlite"], backends: ["echo"] };
    const { config } = await load(withSections({ store: { type: "sqlite", path: "/data/x.db" } }), { built });
    expect(config.store).toEqual({ type: "sqlite", path: "/data/x.db" });
  });
});

describe("the default agent", () => {
  test("is the only one", async () => {
    expect((await load(withSections({}))).config.gateway.defaultAgent).toBe("main");
  });

  test("has to be said where there are several", async () => {
    expect(await refused({ agents: two })).toEqual([
      'gateway.defaultAgent is missing. There are several agents (`main`, `helper`): say which one answers a request that names none, for example `gateway: { defaultAgent: "main" }`.',
    ]);
    const { config } = await load(withSections({ agents: two, gateway: { defaultAgent: "helper" } }));
    expect(config.gateway.defaultAgent).toBe("helper");
  });

  test("has to be there", async () => {
    expect(await refused({ gateway: { defaultAgent: "mian" } })).toEqual([
      "gateway.defaultAgent names an agent that is not configured; did you mean `main`?",
    ]);
  });
});

describe("a mapping", () => {
  test("of an agent that is not there is refused", async () => {
    expect(await refused(mapping({ agent: "nobody" }))).toEqual([
      "webhooks.mappings.push.agent names an agent that is not configured; there is `main`.",
    ]);
  });

  test("gets the default agent if it names none", async () => {
    expect((await load(withSections(mapping({})))).config.webhooks.mappings.push?.agent).toBe("main");
  });

  test.each(["{foo}", "{ body.a}", "{body}", 'a {"b": 1}', "{body.a", "{headers.}"])(
    "with %j in its message is refused",
    async (message) => {
      const [line] = await refused(mapping({ message }));
      expect(line).toMatch(
        /^webhooks\.mappings\.push\.message holds `\{.*`, which is no placeholder: write \{body\.<path>\} or \{headers\.<name>\}, or \{\{ for a brace\.$/,
      );
    },
  );

  test.each(["{body.a.0.b} and {headers.x-a}", '{{"b": {body.b}}', "none"])(
    "with %j in its message is taken",
    async (message) => {
      await load(withSections(mapping({ message })));
    },
  );

  test("has texts to compare with, whatever the file writes", async () => {
    const match = { "body.n": 1, "body.ok": true, "headers.x-event": ["push", 2] };
    const { config } = await load(withSections(mapping({ match })));
    expect(config.webhooks.mappings.push?.match).toEqual({
      "body.n": ["1"],
      "body.ok": ["true"],
      "headers.x-event": ["push", "2"],
    });
  });

  test("that announces to a channel that is not there is warned of", async () => {
    expect(await warned(mapping({ delivery: "announce", channel: "opz" }))).toEqual([
      "webhooks.mappings.push.channel names a channel that is not configured; there is none yet: add it to `channels`. Until then, announcements of this mapping reach subscribers alone.",
    ]);
    const channels = { ops: { type: "slack", url: "https://example.com/x" } };
    const announcing = mapping({ delivery: "announce", channel: "opz" });
    expect(await warned({ ...announcing, channels, gateway: { announceTo: "ops" } })).toEqual([]);
  });
});

test("gateway.announceTo has to be a channel", async () => {
  expect(await refused({ gateway: { announceTo: "ops" } })).toEqual([
    "gateway.announceTo names a channel that is not configured; there is none yet: add it to `channels`.",
  ]);
});

describe("networks, origins and paths", () => {
  test.each(["10.0.0.0/33", "10.0.0", "localhost", "::1/129", "1.2.3.4/8/9", "10.0.0.0/"])(
    "%s is no network",
    async (network) => {
      expect(await refused({ webhooks: { allowedIps: ["::1", network] } })).toEqual([
        "webhooks.allowedIps[1] must be an IP address or a network, for example `10.0.0.0/8` or `fd00::/8`.",
      ]);
      expect(await refused({ gateway: { trustedProxies: [network] } })).toHaveLength(1);
      expect(await refused({ gateway: { clearTextFrom: [network] } })).toHaveLength(1);
    },
  );

  test.each(["10.0.0.0/8", "127.0.0.1", "fd00::/8", "::ffff:10.0.0.1"])("%s is a network", async (network) => {
    await load(withSections({ webhooks: { allowedIps: [network] } }));
  });

  test.each([
    "example.com",
    "https://example.com/",
    "https://a.b/c",
    "*",
    "null",
    "https://*.example.com:443",
    "file://here",
    "app://",
    "app://chat/page",
    "App://chat",
  ])("%s is no origin", async (origin) => {
    expect(await refused({ gateway: { allowedOrigins: [origin] } })).toEqual([
      "gateway.allowedOrigins[0] must be an origin, `https://host` or `https://host:port` with nothing after it.",
    ]);
  });

  test.each(["http://localhost:5173", "https://chat.example", "app://chat", "chrome-extension://abcdefgh"])(
    "%s is an origin",
    async (origin) => {
      await load(withSections({ gateway: { allowedOrigins: [origin] } }));
    },
  );

  test.each([
    ["/rpc", "/rpc"],
    ["/rpc/ws", "/rpc"],
    ["/api", "/api/v1"],
    ["/api/v1/hooks", "/api/v1"],
    ["/console", "/console"],
    ["/metrics", "/metrics"],
    ["/openapi.json", "/openapi.json"],
    ["/healthz/x", "/healthz"],
  ])("webhooks.path %s meets %s", async (path, other) => {
    expect(await refused({ webhooks: { path } })).toEqual([
      `webhooks.path overlaps with \`${other}\`, which is taken: choose another path, for example \`/hooks\`.`,
    ]);
  });

  test("webhooks.path has no dots as steps", async () => {
    expect(await refused({ webhooks: { path: "/a/../b" } })).toEqual([
      "webhooks.path has `.` or `..` between its slashes, which no request has: remove it.",
    ]);
  });

  test.each(["/rpcs", "/in/webhooks", "/h.1_~-"])("webhooks.path %s is taken", async (path) => {
    expect((await load(withSections({ webhooks: { path } }))).config.webhooks.path).toBe(path);
  });
});

describe("a surface", () => {
  test("is on when it has a secret and nobody switched it off", async () => {
    const gateway = { ...rest({ key: good(1) }), ...rpc({ token: good(2) }) };
    const webhooks = { token: good(3), enabled: false };
    const { config } = await load(withSections({ gateway, webhooks }));
    expect(config.gateway.rest.enabled).toBe(true);
    expect(config.gateway.rpc.enabled).toBe(true);
    expect(config.gateway.console.enabled).toBe(false);
    expect(config.webhooks.enabled).toBe(false);
  });

  test("REST and RPC are on with the console's token alone", async () => {
    const { config } = await load(withSections({ gateway: { console: { token: good(1) } } }));
    expect([config.gateway.rest.enabled, config.gateway.rpc.enabled, config.gateway.console.enabled]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("webhooks are on with a mapping that verifies", async () => {
    const { config } = await load(withSections(mapping({ verify: { type: "github", secret: good(1) } })));
    expect(config.webhooks.enabled).toBe(true);
  });

  test("that is switched on without a secret is refused", async () => {
    const enabled = { enabled: true };
    const gateway = { rest: enabled, rpc: enabled, console: enabled };
    expect(await refused({ gateway, webhooks: enabled })).toEqual([
      "gateway.rest.enabled is true, but there is no key: add one to gateway.rest.auth.keys, or set gateway.console.token.",
      "gateway.rpc.enabled is true, but there is no token: add one to gateway.rpc.auth.tokens.",
      "gateway.console.enabled is true, but there is no token: set gateway.console.token.",
      "webhooks.enabled is true, but there is no secret: set webhooks.token, or `verify` of a mapping.",
    ]);
  });
});

describe("permissions", () => {
  test("that name no method are refused", async () => {
    expect(
      await refused({ gateway: rpc({ token: good(1), permissions: ["agent.list", "agents.list", "everything"] }) }),
    ).toEqual([
      "gateway.rpc.auth.tokens[0].permissions[1] is not the name of a method; did you mean `agent.list`?",
      expect.stringMatching(
        /^gateway\.rpc\.auth\.tokens\[0\]\.permissions\[2\] is not the name of a method; there are \*, agent\.list, .*usage\.stats\.$/,
      ),
    ]);
  });

  test("may be a bare star", async () => {
    const { config } = await load(
      withSections({ gateway: rpc({ token: good(1) }, { token: good(2), permissions: ["*"] }) }),
    );
    expect(config.gateway.rpc.auth.tokens.map(({ permissions }) => permissions)).toEqual([["*"], ["*"]]);
  });
});

describe("listeners", () => {
  test("with one address are refused", async () => {
    const listeners = [{ port: 8080 }, { port: 8080, surfaces: ["rest"] }];
    expect(await refused({ gateway: { listeners } })).toEqual([
      "gateway.listeners[1] has the host and port of another listener: give it a port of its own.",
    ]);
    await load(withSections({ gateway: { listeners: [{ port: 0 }, { port: 0 }] } }));
  });

  test("beside host or port are warned of", async () => {
    expect(await warned({ gateway: { listeners: [{ port: 1 }], port: 2 } })).toEqual([
      "gateway.port is not read, because gateway.listeners says where to listen: remove one of them.",
    ]);
  });

  test("without readable certificates are refused", async () => {
    const tls = { cert: "./nowhere.pem", key: "/" };
    expect(await refused({ gateway: { listeners: [{ port: 1, tls }] } })).toEqual([
      "gateway.listeners[0].tls.cert names the file `./nowhere.pem`, which cannot be read: it is not there. Create it, or name another one. It is looked for beside the configuration file.",
      "gateway.listeners[0].tls.key names the file `/`, which cannot be read: it is a folder. Name the file in it.",
    ]);
  });

  test("with a certificate and another's key are refused", async () => {
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
