import type {
  AgentNotification,
  Announcement,
  BudgetNotification,
  CompletedTurnNotification,
  DeadAnnouncementNotification,
  DeadEventNotification,
  HealthNotification,
  KeyNotification,
  TestNotification,
  TurnNotification,
} from "#generated/clients/typescript/src/rest-types.ts";
import { GatewayError } from "./error.ts";

/** Headers of a request, in any form of a server. */
export type HeadersLike = Headers | Record<string, string | readonly string[] | undefined>;

/** The signature schemes. They have the names of a mapping's `verify.type`. */
export type SignatureScheme = "standard-webhooks" | "github" | "stripe" | "slack" | "linear" | "twilio";

export interface SignOptions {
  scheme?: SignatureScheme;
  /** The delivery's id, which the gateway uses as the idempotency key. Default: a new one. */
  id?: string;
  /** Seconds since 1970. Default: now. */
  timestamp?: number;
  /** With `twilio`, where it is required: the `verify.url` of the mapping. */
  url?: string;
}

/** An event for an endpoint of `notify`. New types may be added: respond with 2xx to unknown types. */
export type GatewayEvent =
  | CompletedTurnNotification
  | TurnNotification
  | DeadEventNotification
  | DeadAnnouncementNotification
  | AgentNotification
  | KeyNotification
  | BudgetNotification
  | HealthNotification
  | TestNotification;

const TOLERANCE_S = 300;

/**
 * Verifies an announcement of the gateway and returns its content. `body` must be the unchanged bytes or text of the request. With several secrets,
 * one must match, so that a secret can be changed. Throws a GatewayError, `bad-signature`, if the request cannot be trusted, and a TypeError if a
 * secret is empty or damaged.
 */
export async function unwrap(
  body: string | Uint8Array,
  headers: HeadersLike,
  secrets: string | readonly string[],
): Promise<Announcement> {
  return JSON.parse(await verified(body, headers, secrets));
}

/** Verifies a notification of the gateway like `unwrap`, and returns its event. */
export async function unwrapEvent(
  body: string | Uint8Array,
  headers: HeadersLike,
  secrets: string | readonly string[],
): Promise<GatewayEvent> {
  return JSON.parse(await verified(body, headers, secrets));
}

async function verified(
  body: string | Uint8Array,
  headers: HeadersLike,
  secrets: string | readonly string[],
): Promise<string> {
  const keys = [secrets].flat().map(keyOf);
  if (keys.length === 0) throw new TypeError("Pass the secret of the channel or endpoint.");
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature").split(" ");
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= TOLERANCE_S))
    throw refusal(`\`webhook-timestamp\` is more than ${TOLERANCE_S} seconds from now. Check the clock.`);
  const bytes = bytesOf(body);
  for (const key of keys) {
    const expected = `v1,${base64(await hmac(key, `${id}.${timestamp}.`, bytes))}`;
    if (signatures.some((signature) => isSame(signature, expected))) return new TextDecoder().decode(bytes);
  }
  throw refusal(
    "The signature does not match any of the secrets. Pass the secret of the channel or endpoint, and the unmodified body.",
  );
}

/**
 * The headers that a sender must set for a mapping with `verify`. `body` is exactly the sent text. With `linear` it must have the current time, in
 * milliseconds, as `webhookTimestamp`. With `twilio` it is a form or JSON.
 */
export async function sign(
  body: string | Uint8Array,
  secret: string,
  { scheme = "standard-webhooks", id, timestamp = Math.floor(Date.now() / 1_000), url }: SignOptions = {},
): Promise<Record<string, string>> {
  const bytes = bytesOf(body);
  const plain = checked(secret);
  const own = id ?? crypto.randomUUID();
  const signed = async (prefix: string) => hex(await hmac(plain, prefix, bytes));
  switch (scheme) {
    case "standard-webhooks": {
      const message = id ?? `msg_${own}`;
      const signature = base64(await hmac(keyOf(secret), `${message}.${timestamp}.`, bytes));
      return { "webhook-id": message, "webhook-timestamp": `${timestamp}`, "webhook-signature": `v1,${signature}` };
    }
    case "github":
      return { "x-github-delivery": own, "x-hub-signature-256": `sha256=${await signed("")}` };
    case "stripe":
      return { "stripe-signature": `t=${timestamp},v1=${await signed(`${timestamp}.`)}` };
    case "slack": {
      const signature = `v0=${await signed(`v0:${timestamp}:`)}`;
      return { "x-slack-request-timestamp": `${timestamp}`, "x-slack-signature": signature };
    }
    case "linear":
      return { "linear-delivery": own, "linear-signature": await signed("") };
    case "twilio": {
      if (!url) throw new TypeError("Twilio signs the address. Pass `url`, the `verify.url` of the mapping.");
      const signature = base64(await hmac(plain, url, encode(await twilioText(bytes, url)), "SHA-1"));
      return { "i-twilio-idempotency-token": own, "x-twilio-signature": signature };
    }
    default:
      throw new TypeError(`\`scheme\` must be ${SCHEMES.join(", ")}.`);
  }
}

const SCHEMES: readonly SignatureScheme[] = ["standard-webhooks", "github", "stripe", "slack", "linear", "twilio"];

/** The text that Twilio signs after the address: the sorted fields of a form, or the hash of JSON as a parameter of the address. */
async function twilioText(bytes: Uint8Array, url: string): Promise<string> {
  const text = new TextDecoder().decode(bytes);
  if (/^\s*[[{]/.test(text)) {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", Uint8Array.from(bytes)));
    return `${url.includes("?") ? "&" : "?"}bodySHA256=${hex(hash)}`;
  }
  // U+0000 sorts before all other characters, so fields are in the order of their names and then of their values.
  const fields = new Set([...new URLSearchParams(text)].map((field) => field.join("\0")));
  return [...fields].sort().join("").replaceAll("\0", "");
}

function refusal(detail: string): GatewayError {
  return new GatewayError("bad-signature", "Bad signature", { detail });
}

function headerOf(headers: HeadersLike, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value === "string") return value;
  throw refusal(`The header \`${name}\` is missing.`);
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === "string" ? encode(body) : body;
}

/** The key of a Standard Webhooks secret: after `whsec_` its bytes in base64, otherwise the bytes of the text. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const plain = checked(secret);
  if (!secret.startsWith("whsec_")) return plain;
  const text = secret.slice(6).replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]{2,}$/.test(text) || text.length % 4 === 1)
    throw new TypeError(
      "The secret begins with `whsec_`, and the rest is not base64. Pass the whole secret, as it was shown.",
    );
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

/** Refuses an empty secret: anyone could sign with it. */
function checked(secret: unknown): Uint8Array<ArrayBuffer> {
  if (typeof secret !== "string")
    throw new TypeError(`A secret is text, not ${secret === null ? "null" : typeof secret}.`);
  if (secret.trim() === "") throw new TypeError("The secret is empty. Pass the whole secret, as it was shown.");
  return encode(secret);
}

async function hmac(
  key: Uint8Array<ArrayBuffer>,
  prefix: string,
  body: Uint8Array,
  hash = "SHA-256",
): Promise<Uint8Array> {
  const algorithm = { name: "HMAC", hash };
  const imported = await crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
  const before = encode(prefix);
  const signed = new Uint8Array(before.length + body.length);
  signed.set(before);
  signed.set(body, before.length);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, signed));
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Compares in constant time. */
function isSame(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < a.length; index += 1) difference |= a.charCodeAt(index) ^ b.charCodeAt(index);
  return difference === 0;
}
