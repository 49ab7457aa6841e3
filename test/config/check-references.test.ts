// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { good, load, refusal, refused, withSections } from "./configs.ts";

const built = { stores: ["memory", "postgres"], backends: ["echo", "http", "a2a", "model"] };
function said(right: string) {
  return `looks like a reference to a variable, but is used as written: write \`${right}\`. If it is the secret itself, put it in a variable.`;
}

test("a secret that looks like a reference is refused with its place and the right form", async () => {
  expect(await refusal("{ agents: { main: { backend: 'echo' } },\n  webhooks: { token: '$WEBHOOK_TOKEN' } }")).toEqual([
    `gateway.json5:2:22: webhooks.token ${said("${WEBHOOK_TOKEN}")}`,
  ]);
});

describe("every place of a secret:", () => {
  const agent = (section: object) => ({ agents: { main: section } });
  const url = "https://example.com";
  const headers = { authorization: "Bearer $A_NAME" };
  const verify = (secret: unknown) => ({
    webhooks: { mappings: { m: { match: {}, message: "x", verify: { type: "github", secret } } } },
  });
  const model = { backend: "model", models: { fast: { provider: "p", model: "x" } } };
  const provider = (more: object) => ({
    ...agent(model),
    providers: { p: { type: "openai", apiKey: good(1), ...more } },
  });
  test.each([
    ["gateway.rest.auth.keys[0].key", { gateway: { rest: { auth: { keys: [{ name: "a", key: "$A_NAME" }] } } } }],
    [
      "gateway.rpc.auth.tokens[0].token",
      { gateway: { rpc: { auth: { tokens: [{ name: "a", token: "$A_NAME", permissions: "*" }] } } } },
    ],
    ["gateway.console.token", { gateway: { console: { token: "$A_NAME" } } }],
    ["webhooks.token", { webhooks: { token: "$A_NAME" } }],
    ["webhooks.token[1]", { webhooks: { token: [good(1), "$A_NAME"] } }],
    ["webhooks.token[0].value", { webhooks: { token: [{ value: "$A_NAME" }] } }],
    ["webhooks.mappings.m.verify.secret", verify("$A_NAME")],
    ["webhooks.mappings.m.verify.secret[1]", verify([good(1), "$A_NAME"])],
    ["channels.ops.secret", { channels: { ops: { type: "webhook", url, secret: "$A_NAME" } } }],
    ["agents.main.http.secret", agent({ backend: "http", http: { url, secret: "$A_NAME" } })],
    ["agents.main.http.headers.authorization", agent({ backend: "http", http: { url, headers } })],
    ["agents.main.a2a.headers.authorization", agent({ backend: "a2a", a2a: { url, headers } })],
    ["providers.p.apiKey", provider({ apiKey: "$A_NAME" })],
    ["providers.p.headers.authorization", provider({ headers })],
    ["tools.t.headers.authorization", { tools: { t: { type: "http", url, headers } } }],
    ["store.url", { store: { type: "postgres", url: "$A_NAME" } }],
    ["store.url[0]", { store: { type: "postgres", url: ["$A_NAME"] } }],
  ])("%s", async (key, sections) => {
    expect(await refused(sections, { built, env: { NODE_ENV: "production" } })).toContain(
      `${key} ${said("${A_NAME}")}`,
    );
  });
});

test("the value of a variable is a secret, whatever it looks like", async () => {
  const text = withSections({ webhooks: { token: "${TOKEN}" } });
  const { config } = await load(text, { env: { TOKEN: "$OTHER_LONG_ENOUGH" } });
  expect(config.webhooks.token).toHaveLength(1);
});

test.each(["$ecret-with-a-hyphen", "a$REST_API_KEY", "100%-sure-of-that%", "{not a name, this}"])(
  "%s is a secret",
  async (token) => {
    await load(withSections({ webhooks: { token } })).catch(({ message }: Error) =>
      expect(message).not.toContain("looks like a reference"),
    );
  },
);
