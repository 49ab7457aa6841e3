/** How the senders that a mapping may have sign what they send; the gateway checks the same in `src/wire/hooks/signatures.ts`. */
export type SignatureType = "github" | "stripe" | "slack" | "standard-webhooks";

type Signed = {
  secret: string;
  /** The body exactly as it is sent. */
  body: string;
  /** When it is signed, in seconds since 1970. GitHub signs no time. */
  seconds: number;
  /** The sender's id of this delivery. Standard Webhooks signs it. */
  id: string;
};

const encoder = new TextEncoder();

const hmac = async (key: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> => {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, encoder.encode(text)));
};

const hex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Standard Webhooks writes its secret in base64, as a rule behind `whsec_`. Any other text is the key itself. */
const standardKey = (secret: string): Uint8Array<ArrayBuffer> => {
  const text = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  if (text === "" || !BASE64.test(text)) return encoder.encode(secret);
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
};

/** The headers that a sender of this type adds to a body. */
export const signWebhook = async (
  type: SignatureType,
  { secret, body, seconds, id }: Signed,
): Promise<Record<string, string>> => {
  const key = encoder.encode(secret);
  switch (type) {
    case "github":
      return { "x-hub-signature-256": `sha256=${hex(await hmac(key, body))}`, "x-github-delivery": id };
    case "stripe":
      return { "stripe-signature": `t=${seconds},v1=${hex(await hmac(key, `${seconds}.${body}`))}` };
    case "slack":
      return {
        "x-slack-request-timestamp": String(seconds),
        "x-slack-signature": `v0=${hex(await hmac(key, `v0:${seconds}:${body}`))}`,
      };
    case "standard-webhooks":
      return {
        "webhook-id": id,
        "webhook-timestamp": String(seconds),
        "webhook-signature": `v1,${base64(await hmac(standardKey(secret), `${id}.${seconds}.${body}`))}`,
      };
  }
};
