import { describe, expect, test } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { senders } from "#test/harness/senders.ts";
import type { SignatureType } from "#wire/hooks/signatures.ts";

function secretOf(type: SignatureType): string {
  return senders[type].makeSecret("first");
}
function mappingOf<Type extends SignatureType>(type: Type) {
  return {
    match: { "body.kind": "known" },
    message: "hi",
    verify: { type, secret: secretOf(type) },
  };
}
const mappings = { slack: mappingOf("slack"), github: mappingOf("github") };
function signedAs(type: SignatureType, body: string) {
  return senders[type].sign(secretOf(type), body);
}

describe("Slack's url_verification", async () => {
  const gateway = await shareGateway({ config: { webhooks: { mappings } } });
  const challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P";
  const body = JSON.stringify({ token: "Jhj5dZrVaK7ZwHHjRyZWjbDl", challenge, type: "url_verification" });

  test("is answered with its challenge if its signature is good, and starts nothing", async () => {
    const { sessions, turnsQueued, turnsRunning } = gateway.gateway.store.stats();
    const headers = await signedAs("slack", body);
    const { status, json, headers: got } = await gateway.hooks.named("slack", body, { token: null, headers });
    expect([status, json]).toEqual([200, { challenge }]);
    expect(got.get("content-type")).toBe("application/json");
    expect(gateway.gateway.store.stats()).toMatchObject({ sessions, turnsQueued, turnsRunning });
    const { json: list } = await gateway.console.call("deliveries.list", { query: { outcome: "challenge" } });
    expect(list.deliveries).toMatchObject([{ status: 200, mapping: "slack", caller: "slack" }]);
  });

  test("is 401 without a signature: the answer repeats nothing of the request", async () => {
    const reply = await gateway.hooks.named("slack", body, { token: null });
    expect(reply.error).toBe("unauthenticated");
    expect(reply.text).not.toContain(challenge);
  });

  test("is accepted only from Slack, and only in this form", async () => {
    const { json } = await gateway.hooks.named("github", body, {
      token: null,
      headers: await signedAs("github", body),
    });
    expect(json.message).toBe("no mapping matched");
    for (const other of [
      { type: "url_verification" },
      { type: "url_verification", challenge: 7 },
      { challenge },
      [challenge],
    ]) {
      const text = JSON.stringify(other);
      const reply = await gateway.hooks.named("slack", text, {
        token: null,
        headers: await signedAs("slack", text),
      });
      expect(reply.json.message).toBe("no mapping matched");
    }
  });
});
