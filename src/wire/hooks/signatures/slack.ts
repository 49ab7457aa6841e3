import { headerOf, keyOfText, type Scheme, secondsOf, textAt } from "./signature.ts";

const PREFIX = "v0=";

/** Slack: `x-slack-signature: v0=<hex>` over `v0:<x-slack-request-timestamp>:<body>`. */
export const slack: Scheme = {
  encoding: "hex",
  idNamesContent: true,
  claimOf(headers) {
    const timestamp = headerOf(headers, "x-slack-request-timestamp");
    const seconds = secondsOf(timestamp);
    const signature = headerOf(headers, "x-slack-signature");
    if (seconds === undefined || !signature?.startsWith(PREFIX)) return undefined;
    return { seconds, prefix: `v0:${timestamp}:`, signatures: [signature.slice(PREFIX.length)] };
  },
  keysOf: keyOfText,
  senderIdOf: (_headers, body) => textAt(body, "event_id"),
  challengeOf: (body) => (textAt(body, "type") === "url_verification" ? textAt(body, "challenge") : undefined),
};
