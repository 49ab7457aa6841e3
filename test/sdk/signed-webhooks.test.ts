import { verify as verifyGithub } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { describe, expect, it } from "vitest";
import { type SignatureScheme, sign } from "#generated/clients/typescript/src/webhooks.ts";
import { FORM } from "#kit/forms.ts";
import { claimFault, schemes, signedWith } from "#wire/hooks/signatures.ts";

const seconds = Math.floor(Date.now() / 1_000);
const body = '{"ref":"refs/heads/main","pusher":{"name":"Zoë 🎉"}}';
const id = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W";

const url = "https://gateway.example.com/hooks/sms?from=twilio";

function isTakenByGateway(type: SignatureScheme, headers: Record<string, string>, secret: string, text = body) {
  const scheme = schemes[type];
  const claim = scheme.claimOf(headers);
  if (claim === undefined || claimFault(claim, Date.now()) !== undefined) return false;
  const contentType = text.startsWith("{") ? "application/json" : FORM;
  const signing = { scheme, keys: scheme.keysOf(secret), url };
  return signedWith(signing, claim, Buffer.from(text), { ...headers, "content-type": contentType }) !== undefined;
}

describe("a webhook that webhooks.sign signs", () => {
  const cases: [SignatureScheme, string][] = [
    ["github", "It's a Secret to Everybody"],
    ["stripe", "whsec_stripe_secret_of_the_test1"],
    ["slack", "8f742231b10e8888abcd99yyyzzz85a5"],
    ["linear", "lin_wh_XkVDfb4jWnqz"],
    ["twilio", "12345"],
    ["standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ["standard-webhooks", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ["standard-webhooks", "no base64 at all"],
  ];
  it.each(cases)("passes the gateway's check as %s with the secret %s", async (type, secret) => {
    const headers = await sign(body, secret, { scheme: type, id, timestamp: seconds, url });
    expect(isTakenByGateway(type, headers, secret)).toBe(true);
  });

  it.each(cases)("fails the gateway's check as %s with another body (%s)", async (type, secret) => {
    const headers = await sign(body, secret, { scheme: type, id, timestamp: seconds, url });
    expect(isTakenByGateway(type, headers, secret, `${body} `)).toBe(false);
  });

  it("passes the gateway's check as a form of Twilio, with repeated and empty fields", async () => {
    for (const form of ["Body=Zo%C3%AB+%F0%9F%8E%89&From=%2B4930&Body=a&a=&b", "z=1&a=%3D%26&Z=2&a1=%C3%A9"]) {
      const headers = await sign(form, "12345", { scheme: "twilio", url });
      expect(isTakenByGateway("twilio", headers, "12345", form)).toBe(true);
      expect(isTakenByGateway("twilio", headers, "12345", `${form}&c=1`)).toBe(false);
    }
  });

  it("needs the address that Twilio signs", async () => {
    await expect(sign("a=1", "12345", { scheme: "twilio" })).rejects.toThrow(
      "Pass `url`, the `verify.url` of the mapping.",
    );
  });

  it("passes GitHub's own package", async () => {
    const headers = await sign(body, "secret", { scheme: "github", id, timestamp: seconds });
    await expect(verifyGithub("secret", body, headers["x-hub-signature-256"] ?? "")).resolves.toBe(true);
  });

  it("passes Stripe's own package", async () => {
    const headers = await sign(body, "whsec_test", { scheme: "stripe", id, timestamp: seconds });
    const { webhooks } = new Stripe("sk_test_123");
    expect(webhooks.constructEvent(body, headers["stripe-signature"] ?? "", "whsec_test")).toEqual(JSON.parse(body));
  });

  it("passes the package of Standard Webhooks", async () => {
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const headers = await sign(body, secret, { scheme: "standard-webhooks", id, timestamp: seconds });
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  });
});
