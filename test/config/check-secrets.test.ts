// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { settle } from "#config/load.ts";
import { unwritten } from "#config/problems.ts";
import type { ConfigFile } from "#generated/config-types.ts";
import { good, load, refused, rest, rpc, warned, withSections } from "./configs.ts";

describe("a secret", () => {
  const short = { gateway: rpc({ token: "short" }) };
  const shortSaid =
    "gateway.rpc.auth.tokens[0].token is shorter than 16 characters: anyone can guess it. Make a longer one, for instance with openssl rand -hex 24.";
  const shared = { gateway: { ...rest({ key: good(1) }), ...rpc({ token: good(1) }) } };
  const sharedSaid =
    "gateway.rpc.auth.tokens[0].token is the same as gateway.rest.auth.keys[0].key: give each surface a secret of its own, or a leak of one opens both.";

  test.each([
    ["short", short, shortSaid],
    ["used on two surfaces", shared, sharedSaid],
  ])(
    "that is %s causes a warning on loopback, and is refused elsewhere and in production",
    async (_, sections, said) => {
      expect(await warned(sections)).toEqual([said]);
      expect(await refused(sections, { env: { NODE_ENV: "production" } })).toEqual([said]);
      expect(await refused(sections, { host: "0.0.0.0" })).toEqual([said]);
      expect(await refused({ ...sections, gateway: { ...sections.gateway, host: "192.0.2.1" } })).toEqual([said]);
      expect(await warned({ ...sections, gateway: { ...sections.gateway, host: "::1" } })).toEqual([said]);
      const listeners = [{ port: 1 }, { port: 2, host: "10.0.0.1" }];
      expect(await refused({ ...sections, gateway: { ...sections.gateway, listeners } })).toEqual([said]);
    },
  );

  test("may be a hash for REST, and only there", async () => {
    expect(await refused({ gateway: rest({ key: "sha256:abc" }) })).toEqual([
      "gateway.rest.auth.keys[0].key is not a hash: write 64 hexadecimal digits after `sha256:`.",
    ]);
    expect(await refused({ gateway: rpc({ token: `sha256:${"a".repeat(64)}` }) })).toEqual([
      "gateway.rpc.auth.tokens[0].token is a hash, which only a key of `gateway.rest.auth.keys` can be: give the token itself.",
    ]);
    const { config } = await load(withSections({ gateway: rest({ key: `sha256:${"AB".repeat(32)}` }) }));
    expect(config.gateway.rest.auth.keys).toEqual([{ name: "k0", hash: "ab".repeat(32), scopes: ["chat"] }]);
  });

  test("is not stored in the configuration, only its hash", async () => {
    const gateway = { ...rest({ key: good(1) }), ...rpc({ token: good(2) }), console: { token: good(3) } };
    const { config } = await load(withSections({ gateway, webhooks: { token: good(4) } }));
    expect(JSON.stringify(config)).not.toContain("a-good-long-secret");
  });
});

const file: ConfigFile = {
  gateway: { defaultAgent: "service" },
  providers: { local: { type: "openai-compatible", baseUrl: "http://127.0.0.1:9", apiKey: "key-1" } },
  agents: {
    service: {
      backend: "http",
      http: {
        url: "http://127.0.0.1:9",
        secret: "secret-2",
        headers: { authorization: "Bearer token-3", accept: "text/x" },
      },
    },
    program: {
      backend: "command",
      command: { run: ["cat"], env: { OPENAI_API_KEY: "key-4", NODE_ENV: "production" } },
    },
  },
  tools: { files: { type: "stdio", run: ["cat"], env: { GITHUB_TOKEN: "token-5" } } },
};

test("the log gets the secrets of agents, providers and tools, and no other settings of theirs", async () => {
  const built = { stores: ["memory"], backends: ["http", "command"] };
  const { secrets } = await settle(unwritten(file), { env: {}, built });
  expect(secrets).toEqual(
    expect.arrayContaining(["key-1", "secret-2", "Bearer token-3", "token-3", "key-4", "token-5"]),
  );
  expect(secrets.join()).not.toMatch(/production|text\/x/);
});
