import { newId } from "#core/ids.ts";
import type { Delivery } from "#store/store.ts";
import type { WireCall } from "./call.ts";

/** Headers that are, or hold, a secret or a proof of one: never recorded. */
const SECRET_HEADERS = new Set([
  "authorization",
  "proxy-authorization",
  "x-gateway-token",
  "cookie",
  "sec-websocket-protocol",
  "webhook-signature",
  "x-hub-signature",
  "x-hub-signature-256",
  "stripe-signature",
  "x-slack-signature",
]);

/** A request as the flight recorder keeps it. To be made after authentication only. */
export const createDelivery = (
  call: WireCall,
  { now, caller, body, keepBody }: { now: number; caller: string; body: Buffer | undefined; keepBody: boolean },
): Delivery => {
  return {
    deliveryId: newId("dlv", now),
    at: now,
    surface: call.surface === "public" ? "rest" : call.surface,
    operation: call.operation,
    method: call.req.method ?? "",
    path: call.path,
    address: call.peer.address,
    requestId: call.requestId,
    caller,
    headers: headersOf(call.req.rawHeaders),
    // A copy: a part of a larger read would keep all of it alive.
    body: keepBody && body ? Buffer.from(body) : undefined,
    bytes: body?.length ?? 0,
  };
};

const headersOf = (raw: readonly string[]): string => {
  let text = "";
  for (let n = 0; n < raw.length; n += 2) {
    const start = startOf(raw[n] as string);
    if (start !== "") text += text === "" ? start + raw[n + 1] : `\n${start}${raw[n + 1]}`;
  }
  return text;
};

/** How the line of a header begins, by its name as it was sent; empty for one that is not recorded. Few names are ever sent. */
const starts = new Map<string, string>();
const MOST_STARTS = 1_000;

const startOf = (sent: string): string => {
  const known = starts.get(sent);
  if (known !== undefined) return known;
  const name = sent.toLowerCase();
  const start = SECRET_HEADERS.has(name) ? "" : `${name}: `;
  if (starts.size < MOST_STARTS) starts.set(sent, start);
  return start;
};
