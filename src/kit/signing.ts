import { createHmac } from "node:crypto";

const PREFIX = "whsec_";

/** The key that a secret stands for: after `whsec_` its bytes in base64, as Standard Webhooks writes secrets; any other text is its own bytes. */
export function signingKeyOf(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), "base64") : Buffer.from(secret);
}

/** The signature of a message as its header has it. `timestamp` is in seconds. */
export function sign(key: Buffer, id: string, timestamp: string, body: Buffer | string): string {
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}
