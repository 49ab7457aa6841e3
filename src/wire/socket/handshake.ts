import type { IncomingMessage } from "node:http";
import { HOPS_HEADER } from "#kit/hops.ts";
import { bearerOf } from "#wire/call/auth.ts";

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
