import { describe, expect, test } from "vitest";
import { GatewayError, webhooks } from "#generated/clients/typescript/src/index.ts";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { checkedFetch } from "#test/harness/rest.ts";

const body = JSON.stringify({
  type: "turn.completed",
  timestamp: "2026-11-21T08:54:32.456Z",
  data: { reply: "Done." },
});
const secret = `whsec_${Buffer.from("a secret of the tests").toString("base64")}`;

describe("webhooks.unwrap", () => {
  test("returns an announcement whose signature matches one of the secrets", async () => {
    const headers = await webhooks.sign(body, secret);
    expect(await webhooks.unwrap(body, headers, secret)).toEqual(JSON.parse(body));
    expect(await webhooks.unwrap(Buffer.from(body), new Headers(headers), ["another", secret])).toEqual(
      JSON.parse(body),
    );
  });

  test("accepts header names in any case, and several signatures", async () => {
    const headers = await webhooks.sign(body, secret);
    const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    shouted["WEBHOOK-SIGNATURE"] = `v1,AAAA ${shouted["WEBHOOK-SIGNATURE"]}`;
    expect(await webhooks.unwrap(body, shouted, secret)).toEqual(JSON.parse(body));
  });

  test("also verifies the events of notify", async () => {
    const event = { type: "notify.test", timestamp: "2026-11-21T08:54:32.456Z", data: { endpoint: "ops" } };
    const text = JSON.stringify(event);
    const headers = await webhooks.sign(text, secret);
    expect(await webhooks.unwrapEvent(text, headers, secret)).toEqual(event);
    await expect(webhooks.unwrapEvent(`${text} `, headers, secret)).rejects.toThrow(
      /does not match any of the secrets/,
    );
  });

  const refused = async (given: Parameters<typeof webhooks.unwrap>): Promise<string> => {
    const error = await webhooks.unwrap(...given).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    expect((error as GatewayError).name).toBe("bad-signature");
    return (error as GatewayError).message;
  };

  test("refuses another body, another secret, an old request and a request without signature, with the reason", async () => {
    const headers = await webhooks.sign(body, secret);
    expect(await refused([`${body} `, headers, secret])).toMatch(/does not match any of the secrets/);
    expect(await refused([body, headers, "another"])).toMatch(/does not match any of the secrets/);
    const old = await webhooks.sign(body, secret, { timestamp: Math.floor(Date.now() / 1_000) - 301 });
    expect(await refused([body, old, secret])).toMatch(/more than 300 seconds from now/);
    expect(await refused([body, { ...headers, "webhook-timestamp": "soon" }, secret])).toMatch(/300 seconds/);
    expect(await refused([body, {}, secret])).toMatch(/`webhook-id` is missing/);
  });
});

describe("webhooks.sign", () => {
  test.each(["standard-webhooks", "github", "stripe", "slack"] as const)(
    "signs like %s, for a mapping that verifies it",
    async (scheme) => {
      const mapping = {
        match: {},
        message: "{body.text}",
        verify: { type: scheme, secret: "a-secret-of-sixteen-or-more" },
      };
      await using gateway = await startGateway({
        config: { webhooks: { token: SECRETS.webhookToken, mappings: { sender: mapping } } },
      });
      const sent = JSON.stringify({ text: "signed" });
      const post = async (headers: Record<string, string>) => {
        const init = { method: "POST", headers: { "content-type": "application/json", ...headers }, body: sent };
        return (await checkedFetch(new Request(`${gateway.url}/hooks/sender`, init))).status;
      };
      expect(await post(await webhooks.sign(sent, "a-secret-of-sixteen-or-more", { scheme }))).toBe(200);
      expect(await post(await webhooks.sign(sent, "another-secret-of-sixteen", { scheme }))).toBe(401);
    },
  );

  test("names the schemes if there is no such scheme", async () => {
    await expect(webhooks.sign("{}", "s", { scheme: "gitlab" as never })).rejects.toThrow(
      "must be standard-webhooks, github, stripe, slack, linear, twilio.",
    );
  });
});

test.each<[unknown, RegExp]>([
  ["", /^The secret is empty/],
  [" ", /^The secret is empty/],
  ["whsec_", /the rest is not base64/],
  ["whsec_***", /the rest is not base64/],
  [["a good secret", ""], /^The secret is empty/],
  [[], /^Pass the secret of the channel or endpoint/],
  [undefined, /^A secret is text, not undefined/],
  [null, /^A secret is text, not null/],
])("refuses the secret %j, with which anyone could sign", async (secret, words) => {
  const headers = await webhooks.sign("{}", "a good secret");
  await expect(webhooks.unwrap("{}", headers, secret as string)).rejects.toThrow(words);
  await expect(webhooks.unwrap("{}", headers, secret as string)).rejects.toThrow(TypeError);
  if (Array.isArray(secret)) return;
  await expect(webhooks.sign("{}", secret as string)).rejects.toThrow(TypeError);
  if (!String(secret).startsWith("whsec_"))
    await expect(webhooks.sign("{}", secret as string, { scheme: "github" })).rejects.toThrow(words);
});
