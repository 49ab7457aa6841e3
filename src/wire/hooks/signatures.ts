import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** The claim of a request's headers about its body. */
export type Claim = {
  /** The time of the signature, in seconds; undefined where the sender signs no time. */
  seconds: number | undefined;
  /** The text that was signed in front of the body, as it stands in the headers. */
  prefix: string;
  /** The signatures as they were sent. Any of them may be the good one. */
  signatures: readonly string[];
};

/** The signatures of one kind of sender: always HMAC-SHA256 over the raw body, each in headers of its own. */
export type Scheme = {
  encoding: "hex" | "base64";
  /** Undefined where a header is missing or malformed: then the body need not be read. */
  claimOf(headers: IncomingHttpHeaders): Claim | undefined;
  /** The keys that a secret of the configuration may stand for. */
  keysOf(secret: string): readonly Buffer[];
  /** The sender's id of this delivery, which a repeat has too. The body must be verified and parsed. */
  senderIdOf(headers: IncomingHttpHeaders, body: unknown): string | undefined;
  /** The id is part of the signed body and names its content: a repeat may differ in details that the sender keeps up to date. */
  idNamesContent: boolean;
  /** The answer to a sender that asks us to prove that the address is ours. */
  challengeOf?(body: unknown): string | undefined;
};

export type SignatureFault = "missing" | "too-old" | "too-new" | "wrong";

/** The most by which the time of a signature may differ from the gateway's. */
const TOLERANCE_MS = 5 * 60_000;

/** The age of a refused signature, and the most that is allowed. */
type RefusedAge = { age_ms: number; allowed_ms: number };

/** The fault of a claim, before its signature is checked. */
export function claimFault(
  claim: Claim | undefined,
  now: number,
): ({ reason: SignatureFault } & Partial<RefusedAge>) | undefined {
  if (claim === undefined) return { reason: "missing" };
  if (claim.seconds === undefined) return undefined;
  const age = now - claim.seconds * 1_000;
  if (Math.abs(age) <= TOLERANCE_MS) return undefined;
  return { reason: age > 0 ? "too-old" : "too-new", age_ms: age, allowed_ms: TOLERANCE_MS };
}

/**
 * The index of the key that has signed the body; undefined when none has. Compared in constant time, and as text: several texts of
 * base64 stand for the same bytes, and all but one of them were never sent by a sender.
 */
export function signedWith(
  keys: readonly Buffer[],
  { prefix, signatures }: Claim,
  raw: Buffer,
  encoding: Scheme["encoding"],
): number | undefined {
  const given = signatures.map((signature) => Buffer.from(signature, "latin1"));
  const index = keys.findIndex((key) => {
    const expected = Buffer.from(createHmac("sha256", key).update(prefix, "latin1").update(raw).digest(encoding));
    return given.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
  });
  return index < 0 ? undefined : index;
}

function keyOfText(secret: string): readonly Buffer[] {
  return [Buffer.from(secret)];
}

function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : undefined;
}

/** The text at a name of a body, which may be anything. */
function textAt(body: unknown, name: string): string | undefined {
  if (typeof body !== "object" || body === null || !Object.hasOwn(body, name)) return undefined;
  const value = (body as Record<string, unknown>)[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The value of a header; undefined where there is none, or an empty one. */
function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return (headers[name] as string | undefined) || undefined;
}

const SECRET_PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Standard Webhooks, v1: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64> v1,<base64>`. */
const standardWebhooks: Scheme = {
  encoding: "base64",
  idNamesContent: false,
  claimOf(headers) {
    const id = headerOf(headers, "webhook-id");
    const timestamp = headerOf(headers, "webhook-timestamp");
    const seconds = secondsOf(timestamp);
    const signatures = (headerOf(headers, "webhook-signature") ?? "")
      .split(" ")
      .flatMap((signature) => (signature.startsWith("v1,") ? [signature.slice(3)] : []));
    if (id === undefined || seconds === undefined || signatures.length === 0) return undefined;
    return { seconds, prefix: `${id}.${timestamp}.`, signatures };
  },
  /** Base64 behind `whsec_`. Without that, senders differ: some decode it all the same, some take the text as it is. */
  keysOf(secret) {
    const hasPrefix = secret.startsWith(SECRET_PREFIX);
    const text = hasPrefix ? secret.slice(SECRET_PREFIX.length) : secret;
    const decoded = BASE64.test(text) ? [Buffer.from(text, "base64")] : [];
    return hasPrefix && decoded.length > 0 ? decoded : [...decoded, Buffer.from(secret)];
  },
  senderIdOf: (headers) => headerOf(headers, "webhook-id"),
};

const GITHUB_PREFIX = "sha256=";

/** GitHub: `x-hub-signature-256: sha256=<hex>` over the body only. It signs neither a time nor its delivery id. */
const github: Scheme = {
  encoding: "hex",
  idNamesContent: false,
  claimOf(headers) {
    const signature = headerOf(headers, "x-hub-signature-256");
    if (!signature?.startsWith(GITHUB_PREFIX)) return undefined;
    return { seconds: undefined, prefix: "", signatures: [signature.slice(GITHUB_PREFIX.length)] };
  },
  keysOf: keyOfText,
  senderIdOf: (headers) => headerOf(headers, "x-github-delivery"),
};

/** Stripe: `stripe-signature: t=<seconds>,v1=<hex>,v1=<hex>`. In a retry the number of pending webhooks may differ. */
const stripe: Scheme = {
  encoding: "hex",
  idNamesContent: true,
  claimOf(headers) {
    const items = (headerOf(headers, "stripe-signature") ?? "").split(",");
    const valuesOf = (name: string) =>
      items.flatMap((item) => (item.startsWith(`${name}=`) ? [item.slice(name.length + 1)] : []));
    const [timestamp, ...others] = valuesOf("t");
    const seconds = secondsOf(timestamp);
    const signatures = valuesOf("v1");
    if (seconds === undefined || others.length > 0 || signatures.length === 0) return undefined;
    return { seconds, prefix: `${timestamp}.`, signatures };
  },
  keysOf: keyOfText,
  senderIdOf: (_headers, body) => textAt(body, "id"),
};

const SLACK_PREFIX = "v0=";

/** Slack: `x-slack-signature: v0=<hex>` over `v0:<x-slack-request-timestamp>:<body>`. */
const slack: Scheme = {
  encoding: "hex",
  idNamesContent: true,
  claimOf(headers) {
    const timestamp = headerOf(headers, "x-slack-request-timestamp");
    const seconds = secondsOf(timestamp);
    const signature = headerOf(headers, "x-slack-signature");
    if (seconds === undefined || !signature?.startsWith(SLACK_PREFIX)) return undefined;
    return { seconds, prefix: `v0:${timestamp}:`, signatures: [signature.slice(SLACK_PREFIX.length)] };
  },
  keysOf: keyOfText,
  senderIdOf: (_headers, body) => textAt(body, "event_id"),
  challengeOf: (body) => (textAt(body, "type") === "url_verification" ? textAt(body, "challenge") : undefined),
};

export type SignatureType = "standard-webhooks" | "github" | "stripe" | "slack";

export const schemes: Record<SignatureType, Scheme> = { "standard-webhooks": standardWebhooks, github, stripe, slack };
