import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errors } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import { HOPS_HEADER } from "#kit/hops.ts";
import { bearerOf } from "#wire/call/auth.ts";
import { headersOf, problemOf } from "#wire/call/problem.ts";
import { failureText } from "#wire/rpc/envelope.ts";

/** The protocol of the socket; the server selects it where it is offered. */
export const PROTOCOL = "agent-gateway.v1";
const BEARER = "bearer.";

/** The token of a request to upgrade: in Authorization or, from a browser, as a subprotocol. */
export const tokenOf = (req: IncomingMessage): string | undefined => {
  const inHeader = bearerOf(req);
  if (inHeader !== undefined) return inHeader;
  const offered = protocolsOf(req).find((protocol) => protocol.startsWith(BEARER));
  return offered === undefined
    ? undefined
    : Buffer.from(offered.slice(BEARER.length), "base64url").toString() || undefined;
};

const protocolsOf = ({ headers }: IncomingMessage): string[] =>
  (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());

/** The headers of a connection that identify its client and its cause: no secret, and nothing of the handshake. */
const TELLING = new Set(["host", "origin", "user-agent", "x-forwarded-for", "traceparent", HOPS_HEADER]);

export const tellingHeaders = ({ rawHeaders: raw }: IncomingMessage): string[] =>
  raw.filter((_, n) => TELLING.has((raw[n - (n % 2)] as string).toLowerCase()));

/** The time that a refused connection is still read: its unread data could make it lose the refusal. */
const LINGER_MS = 1_000;

/** Answers a request to upgrade with the reason of its refusal: as RPC does at the path of the socket, as a problem elsewhere. */
export const refuseUpgrade = (
  socket: Duplex,
  error: GatewayError,
  { requestId, isRpc, after }: { requestId: string; isRpc: boolean; after: (ms: number, fire: () => void) => void },
): void => {
  const { status } = errors[error.name];
  const body = isRpc ? failureText(error, requestId, "null") : JSON.stringify(problemOf(error, requestId));
  const headers = {
    "content-type": isRpc ? "application/json" : "application/problem+json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestId,
    ...headersOf(error),
    ...(error.name === "invalid-request" && { "sec-websocket-version": "13" }),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (!socket.writable) return void socket.destroy();
  socket.on("error", () => {});
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`);
  socket.resume();
  after(LINGER_MS, () => socket.destroy());
};
