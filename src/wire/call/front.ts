import { type IncomingMessage, METHODS, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { GatewayError } from "#kit/errors.ts";
import { traceIdOf } from "#kit/traceparent.ts";
import { originForm } from "#wire/http/origin-form.ts";
import { endSlowly, HEADER_LIMIT } from "#wire/http/refuse-bytes.ts";
import { leadsTo } from "#wire/pages/nothing-at.ts";
import type { Peer } from "./address.ts";
import { type CallParts, failCall, OpenCall, type WireCall } from "./call.ts";
import { answerPreflight, isPreflight, type Origins, requireOneOfEach, showToPage } from "./origins.ts";

/** One of the gateway's doors: answers the call, or throws the error that becomes its problem. */
export type Door = (call: WireCall) => void | Promise<void>;

/**
 * A door and the paths that lead to it: the prefix itself and, unless it is `exact`, all below it. `fail` writes its refusals, if
 * they are not problems. Pages of other origins cannot read a door that only `servers` call. One that is for `sockets` gets the
 * requests to upgrade, which no other does.
 */
export type DoorAt = {
  prefix: string;
  door: Door;
  exact?: boolean;
  fail?: (call: WireCall, error: unknown) => void;
  servers?: boolean;
  sockets?: boolean;
};

type FrontParts = CallParts & {
  /** The doors of this listener, as they are now: a reload may open or close one. */
  doors: () => readonly DoorAt[];
  peerOf: (req: IncomingMessage) => Peer;
  /** Answers over this listener's own TLS have `Strict-Transport-Security`. */
  hsts: () => boolean;
  origins: () => Origins;
};

const URL_LIMIT = 8 * 1024;
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** The entry of every request: it finds the sender and the door, and answers every error behind the door. */
export function createFront(parts: FrontParts) {
  return (req: IncomingMessage, res: ServerResponse, upgrade?: OpenCall["upgrade"]): void => {
    const url = originForm(req);
    const query = url.indexOf("?");
    const path = query < 0 ? url : url.slice(0, query);
    const call = new OpenCall(parts, req, res, path, parts.peerOf(req), upgrade);
    res.on("close", () => {
      call.end();
      writeAccessLine(call);
    });
    const doors = parts.doors();
    const found = doorAt(doors, path, upgrade !== undefined);
    const { isPage, guardHost } = parts.origins();
    const fromPage = req.headers.origin !== undefined && found?.servers !== true && isPage(req);
    if (fromPage) showToPage(call);
    if (parts.hsts() && !isThisMachine(req.headers.host)) res.setHeader("strict-transport-security", HSTS);
    try {
      // Node's parser of HTTP/1.1 has refused it already.
      if (!KNOWN_METHODS.has(req.method ?? ""))
        throw new GatewayError("invalid-request", "The request's method is not an HTTP method.");
      if (req.headers.host === undefined && req.httpVersion === "1.1")
        throw new GatewayError("invalid-request", "The request has no Host.");
      if (url.length > URL_LIMIT)
        throw new GatewayError("uri-too-long", `A request target has at most ${URL_LIMIT} characters.`);
      if (req.httpVersionMajor === 2 && headBytesOf(req) > HEADER_LIMIT)
        throw new GatewayError("headers-too-large", `The request's head is larger than ${HEADER_LIMIT} bytes.`);
      requireOneOfEach(req);
      if (fromPage && isPreflight(req)) {
        guardHost(req);
        answerPreflight(call);
        return;
      }
      if (!found) throw (upgrade && noSocket(doors)) || call.nothingThere();
      if (!PUBLIC.has(path) && !path.startsWith("/docs/")) guardHost(req);
      found.door(call)?.catch((error: unknown) => fail(found, call, error));
    } catch (error) {
      fail(found, call, error);
    }
  };
}

/** Writes the line of a request that was answered, or whose caller has closed the connection. Records a refusal. */
function writeAccessLine(call: WireCall): void {
  const { req, res, requestId, parts } = call;
  const { surface, operation, caller, error, turnId } = call.line;
  const status = isAnswered(call) ? res.statusCode : CLIENT_CLOSED;
  const ms = parts.clock.monotonic() - call.began;
  const traceId = traceIdOf(req.headers.traceparent as string | undefined);
  // Without the path, the line would not show which resource the client requested.
  const path = operation === "unknown" && status === 404 ? shownPath(call.path) : undefined;
  parts.events.requestHandled({ surface, operation, path, status, ms, requestId, traceId, caller, error, turnId });
  if (error !== undefined) parts.refusals.note(call, status);
}

/** True if the whole answer was sent, or the answer is a stream, which its caller may leave. */
function isAnswered({ req, res }: WireCall): boolean {
  if (!res.writableEnded) return res.headersSent;
  // Over HTTP/1.1, Node reports an answer as finished even if its connection breaks. After a sent answer, the connection is still open.
  return req.httpVersionMajor === 1 ? !req.socket.destroyed : res.writableFinished;
}

/** The status in the access line if the caller left before the whole answer was sent. Never sent. */
const CLIENT_CLOSED = 499;

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

function doorAt(doors: readonly DoorAt[], path: string, forSocket: boolean): DoorAt | undefined {
  for (const door of doors) {
    const leadsHere = door.exact ? path === door.prefix : leadsTo(path, door.prefix);
    if (leadsHere && (door.sockets || !forSocket)) return door;
  }
  return undefined;
}

function fail(door: DoorAt | undefined, call: WireCall, error: unknown): void {
  if (door?.fail) door.fail(call, error);
  else failCall(call, error);
}

/** Half a year. If an operator turns TLS off, earlier browsers refuse clear text for that long. */
const HSTS = "max-age=15768000";
/** The name covers every port of the machine, and so every project on it. */
function isThisMachine(host = ""): boolean {
  return /^(?:[^:]*\.)?localhost(?::\d+)?$/i.test(host);
}

/** The entry of a request that asks for a WebSocket. Node answers none of these, so that an answer is a refusal here, and ends the connection. */
export function createUpgradeFront(onRequest: ReturnType<typeof createFront>) {
  return (req: IncomingMessage, socket: Socket, head: Buffer): void => {
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    res.once("finish", () => {
      res.detachSocket(socket);
      res.emit("close");
      endSlowly(socket);
    });
    onRequest(req, res, { socket, head });
  };
}

function noSocket(doors: readonly DoorAt[]): GatewayError | undefined {
  const door = doors.find(({ sockets }) => sockets);
  return door && new GatewayError("not-found", `WebSocket connections are accepted only at ${door.prefix}.`);
}

/** As HTTP/1.1 would write it, whose parser has measured it already. */
function headBytesOf({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length + SEPARATOR, 0);
}
/** `: ` or a line's end. */
const SEPARATOR = 2;

// A health probe uses the address, not a name; and the contract is public, also for tools in pages.
const PUBLIC = new Set(["/", "/healthz", "/readyz", "/openapi.json", "/openrpc.json", "/docs"]);
