import { idLike, newId } from "#kit/ids.ts";
import type { Delivery, DeliveryStep } from "#store/store.ts";
import type { WireCall } from "./call.ts";

/** One for all: most doors note nothing of the way in. */
const NO_STEPS: readonly DeliveryStep[] = Object.freeze([]);

type DeliveryFacts = { now: number; caller: string; body: Buffer | undefined; keepBody: boolean };

/** A request as the flight recorder keeps it. To be made after authentication only, except for a refused request. */
export function createDelivery(
  call: WireCall,
  caller: string,
  body: Buffer | undefined,
  operation = call.line.operation,
): Delivery {
  const { req, requestId, path, parts } = call;
  const request = {
    requestId,
    operation,
    path,
    surface: call.line.surface === "public" ? "rest" : call.line.surface,
    method: req.method ?? "",
    address: call.peer.address,
    headers: parts.headerLines(req.rawHeaders),
    senderId: req.headers["idempotency-key"] as string | undefined,
  };
  const given = { now: parts.clock.now(), caller, body, keepBody: parts.recordBodies() };
  const delivery = deliveryOf(request, given, !call.recordsFirst());
  if (body === undefined) delivery.bytes = announcedBytes(req.headers["content-length"]);
  return delivery;
}

/** The size of an unread body, from `Content-Length`. */
function announcedBytes(length = "0"): number {
  return /^\d{1,15}$/.test(length) ? Number(length) : 0;
}

type Request = Pick<
  Delivery,
  "surface" | "operation" | "method" | "path" | "address" | "requestId" | "headers" | "senderId"
>;

/** The delivery has the id of its request, unless another has it already. */
export function deliveryOf(
  request: Request,
  { now, caller, body, keepBody }: DeliveryFacts,
  isFurther: boolean,
): Delivery {
  return {
    // Field by field: an object that grows from another one takes far longer to make.
    deliveryId: isFurther ? newId("dlv", now) : idLike("dlv", request.requestId, now),
    at: now,
    surface: request.surface,
    operation: request.operation,
    method: request.method,
    path: request.path,
    address: request.address,
    requestId: request.requestId,
    caller,
    headers: request.headers,
    body: keepBody ? body?.toString("latin1") : undefined,
    showsWords: keepBody,
    bytes: body?.length ?? 0,
    answer: "accepted",
    status: undefined,
    mapping: undefined,
    replayOf: undefined,
    senderId: request.senderId,
    steps: NO_STEPS,
  };
}
