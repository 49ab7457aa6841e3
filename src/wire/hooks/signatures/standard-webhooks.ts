import { headerOf, type Scheme, secondsOf } from "./signature.ts";

const PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Standard Webhooks, v1: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64> v1,<base64>`. */
export const standardWebhooks: Scheme = {
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
    const hasPrefix = secret.startsWith(PREFIX);
    const text = hasPrefix ? secret.slice(PREFIX.length) : secret;
    const decoded = BASE64.test(text) ? [Buffer.from(text, "base64")] : [];
    return hasPrefix && decoded.length > 0 ? decoded : [...decoded, Buffer.from(secret)];
  },
  senderIdOf: (headers) => headerOf(headers, "webhook-id"),
};
