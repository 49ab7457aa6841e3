import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import { mappedJsonOf } from "#kit/forms.ts";
import { curlOf } from "./curl.ts";

/**
 * Headers that a command leaves out: those of a connection, the accepted compression, which a terminal cannot show, and the idempotency key,
 * with which the request would start nothing.
 */
const LEFT_OUT = new Set([
  ...["host", "connection", "keep-alive", "proxy-connection", "http2-settings", "te", "trailer", "upgrade", "expect"],
  ...["content-length", "transfer-encoding", "accept-encoding", "idempotency-key"],
]);

/** Says if its sender proved itself by a signature, which is good for no other body and no later time. */
export function isSigned({ timeline }: Pick<Delivery, "timeline">): boolean {
  return timeline.some(({ name }) => name.startsWith("signature."));
}

const SECRETS = {
  rest: "REST_API_KEY",
  rpc: "RPC_TOKEN",
  hooks: "WEBHOOK_TOKEN",
  schedule: "REST_API_KEY",
} as const;

/** The command that sends a recorded request again, from outside: its method, path, headers and body as they were recorded. */
export function curlOfDelivery(delivery: Delivery, origin: string): string {
  const { method, path, surface, body: text, body_encoding } = delivery;
  if (surface === "schedule") return curlOfSchedule(delivery.caller ?? "", origin);
  const sent = Object.entries(delivery.headers).filter(([name]) => !LEFT_OUT.has(name));
  const body = body_encoding === "base64" ? bytesOfBase64(text ?? "") : (text ?? "");
  // Headers that curl would add.
  const own = ["accept", "user-agent", ...(body.length > 0 ? ["content-type"] : [])];
  const headers = { ...Object.fromEntries(own.map((name) => [name, null])), ...Object.fromEntries(sent) };
  return curlOf({ method, origin, path, secret: SECRETS[surface], headers, body });
}

/** No request arrived for the run of a schedule: the command runs the schedule again. */
function curlOfSchedule(name: string, origin: string): string {
  const path = `/api/v1/schedules/${encodeURIComponent(name)}/run`;
  return curlOf({ method: "POST", origin, path, secret: SECRETS.schedule });
}

function bytesOfBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** A hidden value of JSON, or of a form. */
const HIDDEN_VALUE = /(?:"|%22|=)\[hidden\]/;

/** A sentence about the parts that a command cannot send as recorded; undefined if it sends all of them. */
export function curlNote(delivery: Delivery): string | undefined {
  const notes = [
    ...(isSigned(delivery)
      ? [
          "Signatures are not stored: the command sends the webhook token, which a mapping with `verify` refuses. Replay the delivery instead.",
        ]
      : []),
    ...(isWithoutItsBody(delivery) ? ["The body was not stored and is not sent."] : []),
    ...(HIDDEN_VALUE.test(delivery.body ?? "") ? ["Replace [hidden] with the secrets."] : []),
  ];
  return notes.length === 0 ? undefined : notes.join(" ");
}

/** The body of a request that was refused early was not read, so only the headers have its size. */
function isWithoutItsBody({ body, bytes, headers }: Delivery): boolean {
  return (
    body === null &&
    (bytes > 0 || Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined)
  );
}

/** The mapping of its path, or an empty object for the shared path; undefined if no mapping is involved. */
export function mappedBy({ operation, path }: Pick<Delivery, "operation" | "path">): { name?: string } | undefined {
  if (operation === "hooks.mapped") return {};
  return operation === "hooks.mappedByName" ? { name: path.slice(path.lastIndexOf("/") + 1) } : undefined;
}

type StoredBody = Pick<Delivery, "body" | "body_encoding" | "headers">;

/** The JSON that mappings read from a stored body, also from a form; undefined if no text is stored. It may be invalid. */
export function jsonOf({ body, body_encoding, headers }: StoredBody): string | undefined {
  return body === null || body_encoding === "base64" ? undefined : mappedJsonOf(headers["content-type"], body);
}

/** A stored body in lines; undefined if none is stored, or it is neither JSON nor a form. */
export function prettyBody(delivery: StoredBody): string | undefined {
  const json = jsonOf(delivery);
  try {
    return json && JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return undefined;
  }
}

/** An integer of a JSON text that JavaScript would round, as written; undefined if there is none. */
export function roundedNumberOf(json: string): string | undefined {
  return json
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
    .match(/-?\d[\d.eE+-]*/g)
    ?.find((number) => /^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)));
}
