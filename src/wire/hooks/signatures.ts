import { isUtf8 } from "node:buffer";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { fieldsOf, isForm } from "#kit/forms.ts";

/** The claim of a request's headers about its body. */
export type Claim = {
  /** The time of the signature, in seconds; undefined where the headers have no signed time. */
  seconds: number | undefined;
  /** The text that was signed in front of the body, as it stands in the headers. */
  prefix: string;
  /** The signatures as they were sent. Any of them may be the good one. */
  signatures: readonly string[];
};

/** A signed text, after any one of the prefixes. */
type Signed = { prefixes: readonly string[]; text: Buffer | string };

/** The signatures of one kind of sender, in its own headers. By default HMAC-SHA256 over the raw body. */
export type Scheme = {
  encoding: "hex" | "base64";
  algorithm?: "sha1";
  /** Undefined where a header is missing or malformed: then the body need not be read. */
  claimOf(headers: IncomingHttpHeaders): Claim | undefined;
  /** The keys that a secret of the configuration may stand for. */
  keysOf(secret: string): readonly Buffer[];
  /** The signed text, if it is not the raw body. `url` is the configured address. Undefined for a body that the sender cannot have signed. */
  signedOf?(raw: Buffer, headers: IncomingHttpHeaders, url: string): Signed | undefined;
  /** The time of the signature, in milliseconds, if it is in the body, which must be verified and parsed. Without it the body is refused. */
  timeOf?(body: unknown): number | undefined;
  /** The sender's id of this delivery, which a repeat has too. The body must be verified and parsed. */
  senderIdOf(headers: IncomingHttpHeaders, body: unknown): string | undefined;
  /** The id names the content of the body: a repeat may differ in details that the sender keeps up to date. */
  idNamesContent: boolean;
  /** The answer in place of JSON, for a sender that shows the body to people or reads it as instructions. */
  answerOf?(headers: IncomingHttpHeaders): PlainAnswer | undefined;
  /** The answer to a sender that asks us to prove that the address is ours. */
  challengeOf?(body: unknown): string | undefined;
};

/** Without a media type there is no body. */
export type PlainAnswer = { type: string | undefined; body: string };

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
  return claim.seconds === undefined ? undefined : ageFault(claim.seconds * 1_000, now);
}

/** The fault of a verified body by its time. */
export function timeFault(scheme: Scheme, body: unknown, now: number): ReturnType<typeof claimFault> {
  if (!scheme.timeOf) return undefined;
  const at = scheme.timeOf(body);
  return at === undefined ? { reason: "missing" } : ageFault(at, now);
}

function ageFault(at: number, now: number): ReturnType<typeof claimFault> {
  const age = now - at;
  if (Math.abs(age) <= TOLERANCE_MS) return undefined;
  return { reason: age > 0 ? "too-old" : "too-new", age_ms: age, allowed_ms: TOLERANCE_MS };
}

/** The keys of a mapping, and the configured address that its sender signs. */
type SignedBy = { scheme: Scheme; keys: readonly Buffer[]; url: string };

/**
 * The index of the key that has signed the body; undefined when none has. Compared in constant time, and as text: several texts of
 * base64 stand for the same bytes, and all but one of them were never sent by a sender.
 */
export function signedWith({ scheme, keys, url }: SignedBy, claim: Claim, raw: Buffer, headers: IncomingHttpHeaders) {
  const given = claim.signatures.map((signature) => Buffer.from(signature, "latin1"));
  const signed = scheme.signedOf ? scheme.signedOf(raw, headers, url) : { prefixes: [claim.prefix], text: raw };
  if (signed === undefined) return undefined;
  const index = keys.findIndex((key) =>
    signed.prefixes.some((prefix) => {
      const hmac = createHmac(scheme.algorithm ?? "sha256", key)
        .update(prefix, "latin1")
        .update(signed.text);
      const expected = Buffer.from(hmac.digest(scheme.encoding));
      return given.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
    }),
  );
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

function numberAt(body: unknown, name: string): number | undefined {
  const value = typeof body === "object" && body !== null ? (body as Record<string, unknown>)[name] : undefined;
  return typeof value === "number" ? value : undefined;
}

/** The value of a header; undefined where there is none, or an empty one. */
function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return (headers[name] as string | undefined) || undefined;
}

/** The claim of a signature without a signed time in the headers. */
function claimOfBody(signature: string | undefined): Claim | undefined {
  return signature === undefined ? undefined : { seconds: undefined, prefix: "", signatures: [signature] };
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
    return signature?.startsWith(GITHUB_PREFIX) ? claimOfBody(signature.slice(GITHUB_PREFIX.length)) : undefined;
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

/**
 * Slack: `x-slack-signature: v0=<hex>` over `v0:<x-slack-request-timestamp>:<body>`. Events are JSON, commands and interactions are forms. People see
 * the answer to a form as a message.
 */
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
  senderIdOf: (_headers, body) => textAt(body, "event_id") ?? textAt(body, "trigger_id"),
  answerOf: (headers) => (isForm(headers["content-type"]) ? { type: undefined, body: "" } : undefined),
  challengeOf: (body) => (textAt(body, "type") === "url_verification" ? textAt(body, "challenge") : undefined),
};

/** Linear: `linear-signature: <hex>` over the body, which has the time of sending. It does not sign its delivery id, and a retry has a new time. */
const linear: Scheme = {
  encoding: "hex",
  idNamesContent: true,
  claimOf(headers) {
    return claimOfBody(headerOf(headers, "linear-signature"));
  },
  keysOf: keyOfText,
  timeOf: (body) => numberAt(body, "webhookTimestamp"),
  senderIdOf: (headers) => headerOf(headers, "linear-delivery"),
};

/** A stranger's form is decoded before its signature is checked, so it must be small. Twilio's forms are. */
const TWILIO_FORM = { bytes: 64 * 1024, fields: 256 };

/** Twilio reports an answer without a media type as an error. */
const NO_INSTRUCTIONS: PlainAnswer = { type: "text/xml", body: "<Response/>" };

/**
 * Twilio: `x-twilio-signature: <base64>`, HMAC-SHA1 over the address and then each field of the form, sorted by name, as name and value. For JSON the
 * address has the parameter `bodySHA256`, and no fields follow. It signs neither a time nor its delivery id, and reads an answer as instructions.
 */
const twilio: Scheme = {
  encoding: "base64",
  algorithm: "sha1",
  idNamesContent: false,
  claimOf(headers) {
    return claimOfBody(headerOf(headers, "x-twilio-signature"));
  },
  signedOf(raw, headers, url) {
    const addresses = withAndWithoutPort(url);
    if (isForm(headers["content-type"])) {
      const text = signedFields(raw);
      return text === undefined ? undefined : { prefixes: addresses, text };
    }
    const parameter = `${url.includes("?") ? "&" : "?"}bodySHA256=`;
    const text = createHash("sha256").update(raw).digest("hex");
    return { prefixes: addresses.map((address) => address + parameter), text };
  },
  keysOf: keyOfText,
  senderIdOf: (headers, body) => signedIdOf(body) ?? headerOf(headers, "i-twilio-idempotency-token"),
  answerOf: () => NO_INSTRUCTIONS,
};

/**
 * The id of a message or a recording with its status: the same request again has it too. The requests of a call have nothing that tells a repeat from
 * the same input again.
 */
function signedIdOf(body: unknown): string | undefined {
  const message = textAt(body, "MessageSid") ?? textAt(body, "SmsSid");
  if (message) return `${message} ${textAt(body, "MessageStatus") ?? textAt(body, "SmsStatus") ?? ""}`;
  const recording = textAt(body, "RecordingSid");
  const status = textAt(body, "RecordingStatus");
  return recording && status && `${recording} ${status}`;
}

/** The first character of a name. Otherwise a part of the signed address, or the hash of JSON, could be the name of a field. */
const NAME_START = /^[A-Za-z_]/;

/** The fields of a form as Twilio signs them: sorted, each value of a name once. Undefined for a form that Twilio cannot have sent. */
function signedFields(raw: Buffer): string | undefined {
  if (raw.length > TWILIO_FORM.bytes || !isUtf8(raw)) return undefined;
  const fields = fieldsOf(raw.toString("utf8"), TWILIO_FORM.fields);
  if ("flaw" in fields || fields.some(([name]) => !NAME_START.test(name))) return undefined;
  const pairs = new Map<string, Set<string>>();
  for (const [name, value] of fields) pairs.set(name, (pairs.get(name) ?? new Set()).add(value));
  return [...pairs.keys()]
    .sort()
    .flatMap((name) => [...(pairs.get(name) ?? [])].sort().map((value) => name + value))
    .join("");
}

/** The address as it is written, and in the forms that Twilio signs: it may add a standard port, or leave out any port. */
function withAndWithoutPort(url: string): string[] {
  const { protocol, hostname, port, pathname, search } = new URL(url);
  const ports = ["", `:${port || (protocol === "https:" ? 443 : 80)}`];
  return [...new Set([url, ...ports.map((end) => `${protocol}//${hostname}${end}${pathname}${search}`)])];
}

export type SignatureType = "standard-webhooks" | "github" | "stripe" | "slack" | "linear" | "twilio";

export const schemes: Record<SignatureType, Scheme> = {
  "standard-webhooks": standardWebhooks,
  github,
  stripe,
  slack,
  linear,
  twilio,
};
