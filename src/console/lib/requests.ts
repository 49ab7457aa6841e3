import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import { curlOf } from "./curl.ts";

/** Headers that belong to a connection, those that curl sets itself, and the key with which a request starts nothing anew. */
const DROPPED = new Set([
  "host",
  "connection",
  "content-length",
  "accept-encoding",
  "accept-language",
  "idempotency-key",
  "sec-fetch-mode",
  "user-agent",
  "accept",
  "transfer-encoding",
  "expect",
]);
const SIGNED = ["x-hub-signature-256", "stripe-signature", "x-slack-signature", "webhook-signature"];

/** Says if its sender proved itself by a signature, which is good for no other body and no later time. */
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

/** The mapping that its path names, or an empty object for the shared path; undefined where no mapping is asked. */
export const mappedBy = ({ operation, path }: Pick<Delivery, "operation" | "path">): { name?: string } | undefined => {
  if (operation === "hooks.mapped") return {};
  return operation === "hooks.mappedByName" ? { name: path.slice(path.lastIndexOf("/") + 1) } : undefined;
};

/** A kept body in lines; undefined where none is kept, or it is no JSON. */
export const prettyBody = ({ body, body_encoding }: Pick<Delivery, "body" | "body_encoding">): string | undefined => {
  if (body === null || body_encoding === "base64") return undefined;
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return undefined;
  }
};

/** An integer of a JSON text that JavaScript would round, as it is written; undefined where it holds none. */
export const roundedNumberOf = (json: string): string | undefined =>
  json
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
    .match(/-?\d[\d.eE+-]*/g)
    ?.find((number) => /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)));
