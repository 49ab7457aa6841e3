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
  const { rawHeaders } = call.req;
  const headers: string[] = [];
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = (rawHeaders[n] as string).toLowerCase();
    if (!SECRET_HEADERS.has(name)) headers.push(`${name}: ${rawHeaders[n + 1]}`);
  }
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
    headers: headers.join("\n"),
    // A copy: a part of a larger read would keep all of it alive.
    body: keepBody && body ? Buffer.from(body) : undefined,
    bytes: body?.length ?? 0,
  };
};
