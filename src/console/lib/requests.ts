import type { Delivery } from "#generated/clients/rest.ts";
import { curlOf } from "./curl.ts";

/** Headers that belong to a connection, and those that curl sets itself. */
const DROPPED = new Set([
  "host",
  "connection",
  "content-length",
  "accept-encoding",
  "user-agent",
  "accept",
  "transfer-encoding",
  "expect",
]);
const SIGNED = ["x-hub-signature-256", "stripe-signature", "x-slack-signature", "webhook-signature"];

/** Whether its sender proved itself by a signature, which no other body and no later time has. */
export const isSigned = ({ timeline }: Pick<Delivery, "timeline">): boolean =>
  timeline.some(({ name }) => name.startsWith("signature."));

/** The variable that a command names in the place of the secret. */
const secretOf = (surface: Delivery["surface"]): Record<string, string> => {
  if (surface === "rest") return { authorization: "Bearer $REST_API_KEY" };
  if (surface === "rpc") return { authorization: "Bearer $RPC_TOKEN" };
  return { authorization: "Bearer $WEBHOOK_TOKEN" };
};

/** The command that sends a recorded request again, from outside. */
export const curlOfDelivery = (delivery: Delivery, origin: string): string => {
  const kept = Object.entries(delivery.headers).filter(([name]) => !DROPPED.has(name) && !SIGNED.includes(name));
  const body = delivery.body_encoding === "base64" ? undefined : (delivery.body ?? undefined);
  return curlOf({
    method: delivery.method,
    url: origin + delivery.path,
    headers: { ...secretOf(delivery.surface), ...Object.fromEntries(kept) },
    body,
  });
};
