import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { GatewayError } from "#core/errors.ts";
import { newId } from "#core/ids.ts";
import type { Events } from "#observe/events.ts";
import { childTrace, type Trace } from "#observe/tracing.ts";
import type { Peer } from "./address.ts";
import { sendProblem } from "./problem.ts";
import type { UnderWay } from "./under-way.ts";

/** One HTTP request on its way through the doors, and what the access line will say of it. */
export type WireCall = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly requestId: string;
  readonly trace: Trace;
  readonly peer: Peer;
  surface: "rest" | "rpc" | "hooks" | "public";
  operation: string;
  caller: string | undefined;
  error: string | undefined;
  turnId: string | undefined;
  /** Aborts when the caller has gone before the answer was sent, or when it must wait no longer. Made when somebody asks. */
  readonly signal: AbortSignal;
  endWait(): void;
};

type CallParts = { path: string; peer: Peer; clock: Clock; events: Events; underWay: UnderWay };

/** Begins a call; its access line is written when the answer was sent or the caller has gone. */
export const beginCall = (
  req: IncomingMessage,
  res: ServerResponse,
  { path, peer, clock, events, underWay }: CallParts,
): WireCall => {
  const began = clock.monotonic();
  let controller: AbortController | undefined;
  const call: WireCall = {
    req,
    res,
    path,
    requestId: newId("req", clock.now()),
    trace: childTrace(req.headers.traceparent as string | undefined),
    peer,
    surface: "public",
    operation: "unknown",
    caller: undefined,
    error: undefined,
    turnId: undefined,
    get signal() {
      controller ??= new AbortController();
      if (res.destroyed && !res.writableFinished) controller.abort();
      return controller.signal;
    },
    endWait: () => controller?.abort(),
  };
  underWay.add(call);
  res.once("close", () => {
    underWay.delete(call);
    if (!res.writableFinished) controller?.abort();
    const { surface, operation, requestId, caller, error, turnId } = call;
    const status = res.writableFinished || res.headersSent ? res.statusCode : GONE;
    const ms = clock.monotonic() - began;
    events.requestHandled({
      surface,
      operation,
      status,
      ms,
      requestId,
      traceId: call.trace.traceId,
      caller,
      error,
      turnId,
    });
  });
  return call;
};

/** What the access line says of a caller that left before the answer. Never sent. */
const GONE = 499;

/** How much of a body that nobody will read is still taken from a connection that goes on. */
const DISCARD_LIMIT = 4096;

/** Answers with the problem, or ends what cannot be answered any more. What is not ours is logged whole and answered bare. */
export const failCall = (call: WireCall, thrown: unknown, events: Events): void => {
  const { req, res, requestId } = call;
  const error = GatewayError.from(thrown);
  call.error = error.name;
  call.turnId ??= error.extra.turnId;
  if (error.name === "internal") events.unexpectedError({ error: error.cause ?? error, requestId });
  if (res.headersSent || res.destroyed) {
    if (!res.writableEnded) res.destroy();
    return;
  }
  if (hasUnreadBody(req)) res.setHeader("connection", "close");
  sendProblem(res, error, requestId);
};

const hasUnreadBody = (req: IncomingMessage): boolean => {
  if (req.readableEnded || req.complete) return false;
  return req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > DISCARD_LIMIT;
};

export const sendJson = (call: WireCall, status: number, body: unknown, headers: Record<string, string> = {}): void => {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  call.res.writeHead(status, {
    "content-type": "application/json",
    "content-length": length,
    "x-request-id": call.requestId,
    ...headers,
  });
  call.res.end(text);
};
