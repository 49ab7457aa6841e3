import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { errors } from "#generated/errors.ts";
import type { ErrorName } from "#kit/errors.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Events } from "#observe/events.ts";
import { PRIVATE, refusalOf } from "#wire/call/problem.ts";
import { answeringOn, lastRequestOn, MOST_AHEAD } from "./pipelined.ts";

export const HEADER_LIMIT = 16 * 1024;

/** The time that a client may take to end its half of a connection that was refused. */
const LINGER_MS = 1_000;

/** Node's error for unreadable bytes, or an error code of the gateway. */
type UnreadBytes = { code?: string; rawPacket?: Buffer; bytesParsed?: number };

export const IS_CONNECT: UnreadBytes = { code: "IS_CONNECT" };
export const TOO_MANY_AHEAD: UnreadBytes = { code: "TOO_MANY_AHEAD" };
const BY_CODE: Record<string, [ErrorName, string]> = {
  IS_CONNECT: ["invalid-request", "The gateway is not a proxy and does not support CONNECT."],
  TOO_MANY_AHEAD: ["invalid-request", `More than ${MOST_AHEAD} requests wait for answers on the connection.`],
  HPE_HEADER_OVERFLOW: ["headers-too-large", `The request's head is larger than ${HEADER_LIMIT} bytes.`],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["too-large", "The chunk extensions are too large."],
  HPE_INVALID_EOF_STATE: ["invalid-request", "The request is incomplete."],
  ERR_HTTP_REQUEST_TIMEOUT: ["request-timeout", "The request did not arrive completely in time."],
};
const NO_REQUEST: [ErrorName, string] = ["invalid-request", "The bytes are not an HTTP request."];
const LONG_TARGET: [ErrorName, string] = ["uri-too-long", `The request target is larger than ${HEADER_LIMIT} bytes.`];

/**
 * Answers bytes that are not an HTTP request, if the socket can still be answered. A complete request before them is answered first, because the refusal could otherwise
 * be mistaken for it, or for a part of it.
 */
export function createByteRefusal({ newRequestId, events }: { newRequestId: () => string; events: Events }) {
  const ending = new WeakSet<Socket>();

  const refuse = (bytes: UnreadBytes, socket: Socket): void => {
    const answering = answeringOn(socket);
    if (answering?.req.complete && socket.writable) {
      if (ending.has(socket)) return;
      ending.add(socket);
      // The parser must not find another request in what follows.
      socket.removeAllListeners("data").on("data", () => {});
      answering.once("close", () => {
        ending.delete(socket);
        refuse(bytes, socket);
      });
      return;
    }
    // A client that never sent anything gets no answer.
    const isSilent = bytes.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.bytesRead === 0;
    // The rest of a body whose request was answered before it arrived: the client waits for no more.
    const isAnswered = answering?.headersSent || (!answering && lastRequestOn(socket)?.complete === false);
    if (bytes.code === "ECONNRESET" || isSilent || !socket.writable || isAnswered) {
      socket.destroy();
      return;
    }
    const refusal = new GatewayError(...reasonOf(bytes));
    if (answering && answering.req.listenerCount("error") > 0) {
      // Its door waits for the rest of the body, and answers when that will not come.
      answering.shouldKeepAlive = false;
      answering.req.emit("error", refusal);
    } else answer(refusal, socket, Boolean(answering));
  };

  /** `isKnown`: a door has the request, and writes its access line. */
  const answer = (refusal: GatewayError, socket: Socket, isKnown: boolean): void => {
    const requestId = newRequestId();
    endWithRefusal(socket, refusal, requestId);
    if (isKnown) return;
    events.requestHandled({
      surface: "public",
      operation: "unknown",
      status: errors[refusal.name].status,
      ms: 0,
      requestId,
      error: refusal.name,
    });
  };

  return refuse;
}

/** Answers on a connection that Node does not answer on, and ends it. */
function endWithRefusal(socket: Socket, error: GatewayError, requestId: string): void {
  const { status, headers, body } = refusalOf(error, requestId);
  const all = { ...PRIVATE, ...headers, "content-length": Buffer.byteLength(body), connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.on("error", () => {});
  endSlowly(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`);
}

/** Ends a connection that Node has released. It is read for a moment: unread data could make it lose the answer. */
export function endSlowly(socket: Socket, last = ""): void {
  socket.end(last);
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function reasonOf(bytes: UnreadBytes): [ErrorName, string] {
  if (bytes.code === "HPE_HEADER_OVERFLOW" && endsInTarget(bytes)) return LONG_TARGET;
  return BY_CODE[bytes.code ?? ""] ?? NO_REQUEST;
}

const LINE_FEED = 10;
/** The longest method, a space, and a first character. */
const LINE_BEGIN = 32;

/** True if the parser was in a request's first line. Only the last read is at hand: a line from before it ends in a version. */
function endsInTarget({ rawPacket, bytesParsed }: UnreadBytes): boolean {
  if (!rawPacket || bytesParsed === undefined) return false;
  const begin = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf(LINE_FEED, bytesParsed - 1) + 1;
  return (
    /^[A-Z-]+ /.test(rawPacket.toString("latin1", begin, begin + LINE_BEGIN)) ||
    (begin === 0 && rawPacket.toString("latin1", bytesParsed, bytesParsed + 8) === " HTTP/1.")
  );
}
