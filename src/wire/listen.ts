import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Server as TlsServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ErrorName } from "#core/errors.ts";
import { GatewayError } from "#core/errors.ts";
import { errors } from "#generated/errors.ts";
import type { Events } from "#observe/events.ts";
import { problemOf } from "./problem.ts";
import { Req, Res } from "./prototypes.ts";

export type ListenOptions = {
  host: string;
  port: number;
  tls: { cert: string; key: string } | undefined;
  /** How many connections it takes at once; further ones are closed at once. */
  maxConnections: number | undefined;
  /** How long a request may take to arrive whole; 30 s unless told. */
  requestMs?: number | undefined;
  onRequest: (req: IncomingMessage, res: ServerResponse) => void;
  newRequestId: () => string;
  events: Events;
};

export type Listening = {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** Takes a new certificate; connections that are open keep theirs. */
  setTls(tls: { cert: string; key: string }): void;
  /**
   * Takes no new connections; resolves when the last one has gone. Those that wait for nothing are closed a little later, as a request
   * may be on its way.
   */
  stopAccepting(): Promise<void>;
  /** Ends what is left. */
  close(): Promise<void>;
};

const HEADER_LIMIT = 16 * 1024;
const HEADER_MS = 10_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 65_000;
/** While it drains, what a connection that waits for nothing still has for its next request. */
const IDLE_MS = 1_000;
/** How long connections are taken that the system has opened before it was told to stop. */
const LAST_ACCEPTS_MS = 500;

/** Opens one address. Throws what the system says, in words, when it cannot be had. */
export const listen = async (options: ListenOptions): Promise<Listening> => {
  const { tls, requestMs = REQUEST_MS } = options;
  const settings = {
    // biome-ignore lint/suspicious/noExplicitAny: Node types these as classes; plain functions are what is fast
    IncomingMessage: Req as any,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    ServerResponse: Res as any,
    maxHeaderSize: HEADER_LIMIT,
    // The front asks for it, and answers as we answer.
    requireHostHeader: false,
    headersTimeout: Math.min(HEADER_MS, requestMs),
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(1_000, requestMs),
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  };
  const server: Server | TlsServer = tls
    ? (await import("node:https")).createServer(
        { ...settings, ...tls, minVersion: "TLSv1.2" },
        options.onRequest as RequestListener,
      )
    : createServer(settings, options.onRequest as RequestListener);
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  server.on("clientError", (error, socket) => refuseBytes(error, socket as Socket, options));
  // Who reads a body asks for it; any other expectation may be ignored.
  server.on("checkContinue", options.onRequest);
  server.on("checkExpectation", options.onRequest);
  const pressure = createPauseReport(options.events);
  server.on("drop", () => pressure("connections"));
  const port = await open(server, options);
  server.on("error", (error: NodeJS.ErrnoException) => pressure(error.code ?? "accept"));
  let idleTimer: NodeJS.Timeout | undefined;
  const shownHost = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    host: options.host,
    port,
    url: `${tls ? "https" : "http"}://${shownHost}:${port}`,
    setTls: (next) => "setSecureContext" in server && server.setSecureContext(next),
    stopAccepting: async () => {
      await takeWaiting(server);
      if (!server.listening) return;
      const gone = new Promise<unknown>((resolve) => server.once("close", resolve));
      // HTTP's own `close` ends idle connections at once: a request that is on its way would find no answer.
      NetServer.prototype.close.call(server);
      idleTimer ??= setInterval(() => server.closeIdleConnections(), IDLE_MS).unref();
      await gone;
    },
    close: async () => {
      clearInterval(idleTimer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
};

const open = (server: Server | TlsServer, { host, port }: ListenOptions): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(new Error(wordsFor(error, host, port), { cause: error })),
    );
    server.listen({ host, port, backlog: 1024 }, () => {
      server.removeAllListeners("error");
      resolve((server.address() as AddressInfo).port);
    });
  });

/** Takes the connections that wait at the system's door, one in each turn of the loop: closing it would cut them. */
const takeWaiting = async (server: NetServer): Promise<void> => {
  let taken = 0;
  const count = () => taken++;
  server.on("connection", count);
  for (const until = performance.now() + LAST_ACCEPTS_MS; performance.now() < until; ) {
    const before = taken;
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    if (taken === before) break;
  }
  server.off("connection", count);
};

const wordsFor = ({ code, message }: NodeJS.ErrnoException, host: string, port: number): string => {
  if (code === "EADDRINUSE")
    return `Port ${port} of ${host} is in use. Stop what listens there, or choose another with --port.`;
  if (code === "EACCES")
    return `Port ${port} of ${host} may not be opened by this user. Choose one above 1023 with --port.`;
  if (code === "EADDRNOTAVAIL") return `${host} is no address of this machine. Choose another with --host.`;
  if (code === "ENOTFOUND") return `${host} is not known. Give an address with --host.`;
  return `${host}:${port} cannot be listened on: ${message}`;
};

const BY_CODE: Record<string, [ErrorName, string]> = {
  HPE_HEADER_OVERFLOW: ["headers-too-large", `The request's head is larger than ${HEADER_LIMIT} bytes.`],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["too-large", "The chunk extensions are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["request-timeout", "The request did not arrive whole in time."],
};
const NO_REQUEST: [ErrorName, string] = ["invalid-request", "The bytes are no HTTP request."];

const ending = new WeakSet<Socket>();

/**
 * Answers bytes that are no HTTP request, as far as the socket still can be answered. A request that came whole before them gets its
 * answer first: theirs would be taken for it, or for a part of it.
 */
const refuseBytes = (error: NodeJS.ErrnoException, socket: Socket, options: ListenOptions): void => {
  const { _httpMessage: answering } = socket as { _httpMessage?: ServerResponse };
  if (answering?.req.complete && socket.writable) {
    if (ending.has(socket)) return;
    ending.add(socket);
    answering.once("close", () => {
      ending.delete(socket);
      refuseBytes(error, socket, options);
    });
    return;
  }
  if (error.code === "ECONNRESET" || !socket.writable || answering?.headersSent) {
    socket.destroy();
    return;
  }
  const refusal = new GatewayError(...(BY_CODE[error.code ?? ""] ?? NO_REQUEST));
  const requestId = options.newRequestId();
  const body = JSON.stringify(problemOf(refusal, requestId));
  const { status } = errors[refusal.name];
  const head = `HTTP/1.1 ${status} \r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}`;
  socket.end(`${head}\r\nx-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`);
};

const REPORT_EVERY_MS = 10_000;

/** Tells once, not for each connection, that none are taken; and once that they are again. */
const createPauseReport = (events: Events) => {
  let since: number | undefined;
  let quiet: NodeJS.Timeout | undefined;
  return (reason: string): void => {
    if (since === undefined) {
      since = performance.now();
      events.acceptPaused({ reason });
    }
    clearTimeout(quiet);
    quiet = setTimeout(() => {
      events.acceptResumed({ ms: Math.round(performance.now() - (since as number)) });
      since = undefined;
    }, REPORT_EVERY_MS).unref();
  };
};
