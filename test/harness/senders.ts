import { createHash, createHmac } from "node:crypto";
import { sign as signGithub, verify as verifyGithub } from "@octokit/webhooks-methods";
import { verifySlackRequest } from "@slack/bolt";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import type { SignatureType } from "#wire/hooks/signatures.ts";

export type Signed = Record<string, string>;

/** One kind of sender, with its own reference implementation. Bodies are text, because the references accept nothing else. */
type ReferenceSender = {
  /** A secret in the sender's format. */
  makeSecret(seed: string): string;
  /** The headers with the signature of the body; `id` is the delivery's id if a header has it, `at` in milliseconds. */
  sign(secret: string, body: string, options?: { at?: number; id?: string }): Promise<Signed>;
  /** Verifies with the reference, at this machine's time. */
  accepts(secret: string, body: string, headers: Signed): Promise<boolean>;
  /** The headers of a signature: no byte of them may change. */
  signed: readonly string[];
};

function seconds(at: number): number {
  return Math.floor(at / 1_000);
}
async function accepted(verify: () => unknown): Promise<boolean> {
  try {
    return (await verify()) !== false;
  } catch {
    return false;
  }
}
const { webhooks } = new Stripe("sk_test_of_nobody");

export const senders: Record<SignatureType, ReferenceSender> = {
  "standard-webhooks": {
    makeSecret: (seed) => `whsec_${Buffer.from(seed.padEnd(24, "-")).toString("base64")}`,
    sign: async (secret, body, { at = Date.now(), id = "msg_2Lml6qkBTVFkPzBwjHEWMVD6wJP" } = {}) => ({
      "webhook-id": id,
      "webhook-timestamp": String(seconds(at)),
      "webhook-signature": new Webhook(secret).sign(id, new Date(at), body),
    }),
    accepts: (secret, body, headers) =>
      accepted(() => new Webhook(secret).verify(body, headers, { jsonParse: false }) ?? true),
    signed: ["webhook-id", "webhook-timestamp", "webhook-signature"],
  },
  github: {
    makeSecret: (seed) => `${seed}-secret-of-the-repository`,
    sign: async (secret, body, { id = "72d3162e-cc78-11e3-81ab-4c9367dc0958" } = {}) => ({
      "x-github-delivery": id,
      "x-hub-signature-256": await signGithub(secret, body),
    }),
    accepts: (secret, body, headers) =>
      accepted(() => verifyGithub(secret, body, headers["x-hub-signature-256"] ?? "")),
    signed: ["x-hub-signature-256"],
  },
  stripe: {
    makeSecret: (seed) => `whsec_${seed}OfTheEndpoint`,
    sign: async (secret, payload, { at = Date.now() } = {}) => ({
      "stripe-signature": webhooks.generateTestHeaderString({ payload, secret, timestamp: seconds(at) }),
    }),
    accepts: (secret, body, headers) =>
      accepted(() => webhooks.signature?.verifyHeader(body, headers["stripe-signature"] ?? "", secret, 300)),
    signed: ["stripe-signature"],
  },
  // Its reference only verifies: every signature of a test is verified by it.
  slack: {
    makeSecret: (seed) => `${seed}-signing-secret`,
    sign: async (secret, body, { at = Date.now() } = {}) => {
      const timestamp = String(seconds(at));
      const signature = createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest("hex");
      return { "x-slack-request-timestamp": timestamp, "x-slack-signature": `v0=${signature}` };
    },
    accepts: (signingSecret, body, headers) =>
      accepted(() => {
        const given = {
          "x-slack-signature": headers["x-slack-signature"] as string,
          "x-slack-request-timestamp": headers["x-slack-request-timestamp"] as unknown as number,
        };
        verifySlackRequest({ signingSecret, body, headers: given });
      }),
    signed: ["x-slack-request-timestamp", "x-slack-signature"],
  },
  // Linear's package cannot be installed without all of its API: this is its rule.
  linear: {
    makeSecret: (seed) => `lin_wh_${seed}OfTheWebhook`,
    sign: async (secret, body, { id = "234d1a4e-b617-4388-90fe-adc3633d6b72" } = {}) => ({
      "linear-delivery": id,
      "linear-signature": createHmac("sha256", secret).update(body).digest("hex"),
    }),
    accepts: async (secret, body, headers) =>
      headers["linear-signature"] === createHmac("sha256", secret).update(body).digest("hex"),
    signed: ["linear-signature"],
  },
  // The rule of Twilio's package, for JSON. Forms: test/wire/hooks/twilio.test.ts.
  twilio: {
    makeSecret: (seed) => `${seed}AuthTokenOfTheAccount`,
    sign: async (secret, body, { id = "f9b2c1d4-0001" } = {}) => ({
      "i-twilio-idempotency-token": id,
      "x-twilio-signature": twilioSignature(secret, body),
    }),
    accepts: async (secret, body, headers) => headers["x-twilio-signature"] === twilioSignature(secret, body),
    signed: ["x-twilio-signature"],
  },
};

/** The address that the tests' mappings of Twilio have. */
export const TWILIO_URL = "https://gateway.example.com/hooks/twilio?tenant=7";

function twilioSignature(secret: string, body: string): string {
  const hash = createHash("sha256").update(body).digest("hex");
  return createHmac("sha1", secret).update(`${TWILIO_URL}&bodySHA256=${hash}`).digest("base64");
}

export const senderTypes = Object.keys(senders) as SignatureType[];
