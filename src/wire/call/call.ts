import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import type { Events } from "#observe/events.ts";
import type { UnderWay } from "#wire/http/under-way.ts";
import { AccessLine } from "./access-line.ts";
import type { Peer } from "./address.ts";
import { COMPRESSED_FROM, sendLarge } from "./compress.ts";
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

/** The connection of a request that asks for a WebSocket, and the bytes that arrived after the request. */
type Upgrade = { socket: Socket; head: Buffer };

/** One HTTP request until it is answered. The doors get it as a `WireCall`, and report to its line. */
export class OpenCall {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly peer: Peer;
  readonly parts: CallParts;
  readonly upgrade: Upgrade | undefined;
  readonly requestId: string;
  readonly began: number;
  readonly line: Readonly<AccessLine> = new AccessLine();
  /** The index of the call among the calls in progress. */
  at = -1;
  /** The hash of the token that it was authenticated with. */
  keyHash: Buffer | undefined = undefined;
  /** The only agents that the token might use then; undefined for all. */
  agents: readonly string[] | undefined = undefined;
  #isRecorded = false;
  #controller: AbortController | undefined = undefined;
  #stream: { stop(): void } | undefined = undefined;
  #mayStream = true;

  constructor(
    parts: CallParts,
    req: IncomingMessage,
    res: ServerResponse,
    path: string,
    peer: Peer,
    upgrade: Upgrade | undefined,
  ) {
    this.req = req;
    this.res = res;
    this.path = path;
    this.peer = peer;
    this.parts = parts;
    this.upgrade = upgrade;
    this.began = parts.clock.monotonic();
    this.requestId = newId("req", parts.clock.now());
    parts.underWay.add(this);
  }

  /** The error for a call whose path is unknown. */
  nothingThere(): GatewayError {
    return this.parts.nothingAt(this.path);
  }

  /** The call ends its streams when this key is no longer valid. */
  useKey(hash: Buffer | undefined): void {
    this.keyHash = hash;
  }

  limitTo(agents: readonly string[] | undefined): void {
    this.agents = agents;
  }

  /** True for the first delivery of the request, which gets the request's id. */
  recordsFirst(): boolean {
    const isFirst = !this.#isRecorded;
    this.#isRecorded = true;
    return isFirst;
  }

  /** Aborts when the caller disconnects before the answer was sent, or must wait no longer. Created when it is first read. */
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

  /** Called when the answer was sent, or the caller has disconnected. */
  end(): void {
    this.parts.underWay.delete(this);
    this.#stream?.stop();
    if (!this.res.writableFinished) this.#controller?.abort();
  }
}

/** A read-only view of a request, for its door. */
export type WireCall = Readonly<OpenCall>;

/** The maximum number of bytes of an unread body that are read from a connection that continues. */
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
  call.line.failed(error);
  if (error.name === "internal") call.parts.events.unexpectedError({ error: error.cause ?? error, requestId });
  if (res.headersSent || res.destroyed) {
    if (!res.writableEnded) (res.destroyed ? cut : sendLate)(res, error);
    return;
  }
  // Over HTTP/2 the stream ends with the answer, and the connection continues.
  if (req.httpVersionMajor === 1 && hasUnreadBody(req)) call.endConnection();
  const { status, headers, body } = refusalOf(error, requestId, wording);
  sendBody(res, status, headers, call.parts.hideInJson(body));
}

function hasUnreadBody(req: IncomingMessage): boolean {
  if (req.readableEnded || req.complete) return false;
  return req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > DISCARD_LIMIT;
}

/** Answers of fewer characters are sent at once: they have too few bytes to be compressed. */
const SMALL = COMPRESSED_FROM / 3;

export function sendJson(
  call: WireCall,
  status: number,
  body: unknown,
  headers?: Record<string, string>,
): void | Promise<void> {
  return sendJsonText(call, status, JSON.stringify(body), headers);
}

/** Returns a promise only for an answer that may be compressed. */
export function sendJsonText(
  call: WireCall,
  status: number,
  body: string | Buffer,
  headers?: Record<string, string>,
): void | Promise<void> {
  const usual = { "content-type": "application/json", "x-request-id": call.requestId };
  const all = headers ? { ...usual, ...headers } : usual;
  return body.length < SMALL ? sendBody(call.res, status, all, body) : sendLarge(call.res, status, all, body);
}
