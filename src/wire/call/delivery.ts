import { idLike, newId } from "#kit/ids.ts";
import { isSecretHeader } from "#kit/secret-headers.ts";
import type { Delivery, DeliveryStep } from "#store/store.ts";
import type { WireCall } from "./call.ts";

/** As much of a call as the recorder keeps. */
export type Recorded = Pick<WireCall, "surface" | "operation" | "path" | "peer" | "requestId" | "hideSecrets"> & {
  readonly req: Pick<WireCall["req"], "method" | "headers" | "rawHeaders">;
  /** A delivery has taken over its id. */
  isRecorded?: boolean;
};

/** One for all: most doors note nothing of the way in. */
const NO_STEPS: readonly DeliveryStep[] = Object.freeze([]);

type Given = { now: number; caller: string; body: Buffer | undefined; keepBody: boolean };

/** A request as the flight recorder keeps it. To be made after authentication only, except for a refused request. */
export const createDelivery = (call: Recorded, given: Given): Delivery => {
  const { req, requestId, operation, path } = call;
  const request = {
    requestId,
    operation,
    path,
    surface: call.surface === "public" ? "rest" : call.surface,
    method: req.method ?? "",
    address: call.peer.address,
    headers: headersOf(req.rawHeaders, call.hideSecrets),
    senderId: req.headers["idempotency-key"] as string | undefined,
  };
  const delivery = deliveryOf(request, given, call.isRecorded === true);
  call.isRecorded = true;
  return delivery;
};

type Request = Pick<
  Delivery,
  "surface" | "operation" | "method" | "path" | "address" | "requestId" | "headers" | "senderId"
>;

/** The delivery has the id of its request, unless another has it already. */
export const deliveryOf = (request: Request, { now, caller, body, keepBody }: Given, isFurther: boolean): Delivery => ({
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
  // May be a part of a larger read: a keeper of the body makes a copy.
  body: keepBody ? body : undefined,
  bytes: body?.length ?? 0,
  answer: "accepted",
  status: undefined,
  mapping: undefined,
  replayOf: undefined,
  senderId: request.senderId,
  steps: NO_STEPS,
});

/** The headers as lines, without secrets. They are looked through line by line, as a client repeats most of them. */
const headersOf = (raw: readonly string[], hideSecrets: (line: string) => string): string => {
  let text = "";
  for (let n = 0; n < raw.length; n += 2) {
    const { start, isAddress } = lineOf(raw[n] as string);
    if (start === "") continue;
    const line = hideSecrets(start + (isAddress ? withoutQuery(raw[n + 1] as string) : raw[n + 1]));
    text += text === "" ? line : `\n${line}`;
  }
  return text;
};

/** The beginning of a header's line; empty for a header that is not recorded. */
type Line = { start: string; isAddress: boolean };

/** By their names as they were sent. Few names are ever sent. */
const lines = new Map<string, Line>();
const MOST_LINES = 1_000;

const lineOf = (sent: string): Line => {
  const known = lines.get(sent);
  if (known !== undefined) return known;
  const name = sent.toLowerCase();
  const line = { start: isSecretHeader(name) ? "" : `${name}: `, isAddress: ADDRESSES.has(name) };
  if (lines.size < MOST_LINES) lines.set(sent, line);
  return line;
};

/** Headers that hold an address. As with the path, nothing is kept of its query: people put tokens there. */
const ADDRESSES = new Set(["referer", "x-original-url", "x-original-uri", "x-rewrite-url", "x-forwarded-uri"]);

const withoutQuery = (address: string): string => address.replace(/\?.*$/s, "").replace(/\/\/[^/]*@/, "//");
