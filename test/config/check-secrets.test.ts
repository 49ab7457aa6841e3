// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { good, load, refused, rest, rpc, warned, withSections } from "./configs.ts";

const mapping = (more: object) => ({ webhooks: { mappings: { push: { match: {}, message: "x", ...more } } } });
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
  ])("that is %s is warned of on loopback, and refused elsewhere and in production", async (_, sections, said) => {
    expect(await warned(sections)).toEqual([said]);
    expect(await refused(sections, { env: { NODE_ENV: "production" } })).toEqual([said]);
    expect(await refused(sections, { host: "0.0.0.0" })).toEqual([said]);
    expect(await refused({ ...sections, gateway: { ...sections.gateway, host: "192.0.2.1" } })).toEqual([said]);
    expect(await warned({ ...sections, gateway: { ...sections.gateway, host: "::1" } })).toEqual([said]);
    const listeners = [{ port: 1 }, { port: 2, host: "10.0.0.1" }];
    expect(await refused({ ...sections, gateway: { ...sections.gateway, listeners } })).toEqual([said]);
  });

  test.each([
    ["a mapping", mapping({ verify: { type: "github", secret: "short" } })],
    ["a channel", { channels: { ops: { type: "webhook", url: "https://example.com", secret: "short" } } }],
    ["the console", { gateway: { console: { token: "short" } } }],
    ["a list of webhook tokens", { webhooks: { token: ["short"] } }],
    ["a dated webhook token", { webhooks: { token: [{ value: "short" }] } }],
    ["a REST key", { gateway: rest({ key: "short" }) }],
  ])("of %s is held to the same", async (_, sections) => {
    expect(await warned(sections)).toHaveLength(1);
  });

  test("of an agent's service is held to the same, and may be another agent's", async () => {
    const options = { built: { stores: ["memory"], backends: ["http"] } };
    const agent = (secret: string) => ({ backend: "http", http: { url: "https://example.com", secret } });
    const both = (secret: string) => ({
      gateway: { defaultAgent: "a" },
      agents: { a: agent(secret), b: agent(secret) },
    });
    expect(await warned(both("short"), options)).toEqual([
      expect.stringContaining("agents.a.http.secret is shorter than 16 characters"),
      expect.stringContaining("agents.b.http.secret is shorter than 16 characters"),
    ]);
    expect(await warned(both(good(1)), options)).toEqual([]);
    expect(await refused(both("whsec_%%%"), options)).toEqual([
      expect.stringContaining("agents.a.http.secret begins with `whsec_`, but the rest is not base64"),
      expect.stringContaining("agents.b.http.secret begins with `whsec_`, but the rest is not base64"),
    ]);
  });

  test("that is there twice on one surface is refused anywhere", async () => {
    expect(await refused({ gateway: rpc({ token: good(1) }, { token: good(1) }) })).toEqual([
      "gateway.rpc.auth.tokens[1].token is the same token as gateway.rpc.auth.tokens[0].token: remove one, or give each its own.",
    ]);
    expect(await refused({ webhooks: { token: [good(1), { value: good(1) }] } })).toHaveLength(1);
    const hash = "sha256:8ED3F6AD685B959EAD7022518E1AF76CD816F8E8EC7CCDDA1ED4018E8F2223F8";
    expect(
      await refused({ gateway: rest({ key: hash }, { key: "password1" }, { key: hash.toLowerCase() }) }),
    ).toContain(
      "gateway.rest.auth.keys[2].key is the same token as gateway.rest.auth.keys[0].key: remove one, or give each its own.",
    );
  });

  test("of two senders may be one", async () => {
    const push = { match: {}, message: "x", verify: { type: "github", secret: good(1) } };
    expect(await warned({ webhooks: { mappings: { push, pull: push } } })).toEqual([]);
  });

  test("is never blank, never a reference that stayed, never what no header can carry", async () => {
    expect(
      await refused({
        gateway: rpc({ token: "   " }, { token: "$${TOKEN}-and-more" }, { token: "with a space in between" }),
      }),
    ).toEqual([
      "gateway.rpc.auth.tokens[0].token is empty: give it a value, best as ${NAME} from the environment.",
      "gateway.rpc.auth.tokens[1].token holds `${` after its variables were filled in: a secret never does.",
      "gateway.rpc.auth.tokens[2].token holds a space or a character that no header can carry: use letters and digits.",
    ]);
  });

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

  test("has a name of its own in its list", async () => {
    const tokens = [{ token: good(1) }, { token: good(2), name: "t0" }];
    expect(await refused({ gateway: rpc(...tokens) })).toEqual([
      "gateway.rpc.auth.tokens[1].name is also the name of another entry in this list: choose another name.",
    ]);
  });

  test("is not kept in the configuration, only its hash", async () => {
    const gateway = { ...rest({ key: good(1) }), ...rpc({ token: good(2) }), console: { token: good(3) } };
    const { config } = await load(withSections({ gateway, webhooks: { token: good(4) } }));
    expect(JSON.stringify(config)).not.toContain("a-good-long-secret");
  });
});

describe("the end of a key", () => {
  const ending = (expiresAt: string) => ({ gateway: rest({ key: good(1), expiresAt }) });

  test.each([
    ["2027-02-31", "2027-02-28"],
    ["2028-02-30", "2028-02-29"],
    ["2027-04-31T12:00:00Z", "2027-04-30"],
    ["2027-06-31T12:00:00.5Z", "2027-06-30"],
  ])("that no calendar has is refused: %s", async (expiresAt, last) => {
    expect(await refused(ending(expiresAt))).toEqual([
      `gateway.rest.auth.keys[0].expiresAt names a day that the calendar does not have: the last of that month is ${last}.`,
    ]);
  });

  test.each(["2028-02-29", "2027-03-01T00:00:00Z", "2027-12-31T23:59:59.999Z"])("is taken: %s", async (expiresAt) => {
    expect(await warned(ending(expiresAt))).toEqual([]);
  });
});
