import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { traceIdOf } from "#kit/traceparent.ts";
import type { Events } from "#observe/events.ts";
import type { UnderWay } from "#wire/http/under-way.ts";
import type { Peer } from "./address.ts";
import type { HeaderLines } from "./header-lines.ts";
import { refusalOf, sendBody, type Wording } from "./problem.ts";

/** The parts that every call is handled with, whichever door it goes through. */
export type CallParts = {
  clock: Clock;
  events: Events;
  underWay: UnderWay;
  /** The refusal of a caller without a good token, at a path in the contract's words: the caller's own could hold a secret. */
  guard: (call: WireCall, advice: string, path: string, mapping?: string) => GatewayError;
  headerLines: HeaderLines;
  /** JSON without the secrets of the configuration. */
  hideInJson: (json: string) => string;
  /** The flight recorder keeps bodies. */
  recordBodies: () => boolean;
  refusals: {
    admits(network: string, error: string, isKnown: boolean): boolean;
    note(call: WireCall, status: number): void;
  };
  /** The refusal of a path where this listener has nothing. */
  nothingAt: (path: string) => GatewayError;
};

/**
 * One HTTP request on its way through the doors, with the facts for its access line. The line is written when the answer was sent
 * or the caller has gone. A class, as it owns the request, and as a getter in a literal would give every call a shape of its own.
 */
export class WireCall {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly peer: Peer;
  readonly parts: CallParts;
  readonly requestId: string;
  /** The connection of a request that asks for a WebSocket, and the bytes that came behind it. */
  upgrade: { socket: Socket; head: Buffer } | undefined = undefined;
  /** A delivery has taken over its id. */
  isRecorded = false;
  surface: "rest" | "rpc" | "hooks" | "public" = "public";
  operation = "unknown";
  caller: string | undefined = undefined;
  error: string | undefined = undefined;
  reason: string | undefined = undefined;
  turnId: string | undefined = undefined;
  /** The body of an authenticated caller, set once it is read and cleared when the call succeeds. A refusal is recorded with it. */
  body: Buffer | undefined = undefined;
  /** A call of RPC starts or changes something. */
  changes = false;
  /** Its place among the calls under way. */
  at = -1;
  keyHash: Buffer | undefined = undefined;
  readonly #began: number;
  #controller: AbortController | undefined = undefined;
  #stream: { stop(): void } | undefined = undefined;
  #mayStream = true;

  constructor(parts: CallParts, req: IncomingMessage, res: ServerResponse, path: string, peer: Peer) {
    this.req = req;
    this.res = res;
    this.path = path;
    this.peer = peer;
    this.parts = parts;
    this.#began = parts.clock.monotonic();
    this.requestId = newId("req", parts.clock.now());
    parts.underWay.add(this);
    res.once("close", () => this.#end());
  }

  /** The refusal of its path, which leads nowhere. */
  nothingThere(): GatewayError {
    return this.parts.nothingAt(this.path);
  }

  /** Aborts when the caller has gone before the answer was sent, or when it must wait no longer. Made when somebody asks. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.res.destroyed && !this.res.writableFinished) this.#controller.abort();
    return this.#controller.signal;
  }

  /** No further request is taken on its connection. Open requests of HTTP/2 are still answered. */
  endConnection(): void {
    if (this.req.httpVersionMajor === 1) this.res.setHeader("connection", "close");
    else (this.res as unknown as Http2ServerResponse).stream.session?.close();
  }

  /** From now on a stream is the answer. It is stopped when the signal would abort, and needs no signal. */
  answerWith(stream: { stop(): void }): void {
    this.#stream = stream;
    if (this.res.destroyed || this.#controller?.signal.aborted || !this.#mayStream) stream.stop();
  }

  /** Ends the stream that is its answer, or will be. */
  endStream(): void {
    this.#mayStream = false;
    this.#stream?.stop();
  }

  endWait(): void {
    this.#stream?.stop();
    this.#controller ??= new AbortController();
    this.#controller.abort();
  }

  /** It became a WebSocket, and has no answer. */
  handOver(): void {
    this.parts.underWay.delete(this);
    this.res.detachSocket(this.upgrade?.socket as Socket);
  }

  #end(): void {
    const { surface, operation, requestId, caller, error, turnId, res, req, parts } = this;
    parts.underWay.delete(this);
    this.#stream?.stop();
    if (!res.writableFinished) this.#controller?.abort();
    const status = res.writableFinished || res.headersSent ? res.statusCode : GONE;
    const ms = parts.clock.monotonic() - this.#began;
    const traceId = traceIdOf(req.headers.traceparent as string | undefined);
    // Without the path nobody could tell from the line which resource the client looked for.
    const path = operation === "unknown" && status === 404 ? shownPath(this.path) : undefined;
    const line = { surface, operation, path, status, ms, requestId, traceId, caller, error, turnId };
    parts.events.requestHandled(line);
    if (error !== undefined) parts.refusals.note(this, status);
  }
}

/** The status in the access line when the caller left before the answer. Never sent. */
const GONE = 499;

/** The part of an unknown path that the access line shows. A segment as long as a secret may be one, so it is left out. */
function shownPath(path: string): string {
  return path
    .slice(0, PATH_CHARS)
    .split("/")
    .map((part) => (part.length < SECRET_CHARS ? part : "***"))
    .join("/");
}
const PATH_CHARS = 200;
const SECRET_CHARS = 16;

/** The bytes of an unread body that are still taken from a connection that goes on. */
const DISCARD_LIMIT = 4096;

/** Ends an answer that is under way: half of one must not look like a whole. */
const cut: SendLate = (res) => res.destroy();

/** Tells of an error in an answer that is under way. */
export type SendLate = (res: ServerResponse, error: GatewayError) => unknown;

/**
 * Answers with the problem, or in other words. An answer that has begun is cut off, or ended by `sendLate`. An unexpected error is logged
 * whole, and its answer says nothing of the cause.
 */
export function failCall(call: WireCall, thrown: unknown, wording?: Wording, sendLate: SendLate = cut): void {
  const { req, res, requestId } = call;
  const error = GatewayError.from(thrown);
  call.error = error.name;
  call.reason = error.detail;
  call.turnId ??= error.extra.turnId;
  if (error.name === "internal") call.parts.events.unexpectedError({ error: error.cause ?? error, requestId });
  if (res.headersSent || res.destroyed) {
    if (!res.writableEnded) (res.destroyed ? cut : sendLate)(res, error);
    return;
  }
  // Over HTTP/2 the stream ends with the answer, and the connection goes on.
  if (req.httpVersionMajor === 1 && hasUnreadBody(req)) call.endConnection();
  const { status, headers, body } = refusalOf(error, requestId, wording);
  sendBody(res, status, headers, call.parts.hideInJson(body));
}

function hasUnreadBody(req: IncomingMessage): boolean {
  if (req.readableEnded || req.complete) return false;
  return req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > DISCARD_LIMIT;
}

export function sendJson(call: WireCall, status: number, body: unknown, headers?: Record<string, string>): void {
  sendJsonText(call, status, JSON.stringify(body), headers);
}

export function sendJsonText(
  call: WireCall,
  status: number,
  body: string | Buffer,
  headers?: Record<string, string>,
): void {
  const usual = { "content-type": "application/json", "x-request-id": call.requestId };
  sendBody(call.res, status, headers ? { ...usual, ...headers } : usual, body);
}
