import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
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
  /** Takes no new connections, and closes those that wait for nothing. */
  stopAccepting(): void;
  /** Ends what is left. */
  close(): Promise<void>;
};

const HEADER_LIMIT = 16 * 1024;
const HEADER_MS = 10_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 65_000;

/** Opens one address. Throws what the system says, in words, when it cannot be had. */
export const listen = async (options: ListenOptions): Promise<Listening> => {
  const settings = {
    // biome-ignore lint/suspicious/noExplicitAny: Node types these as classes; plain functions are what is fast
    IncomingMessage: Req as any,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    ServerResponse: Res as any,
    maxHeaderSize: HEADER_LIMIT,
    headersTimeout: HEADER_MS,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  };
  const { tls } = options;
  const server: Server | TlsServer = tls
    ? (await import("node:https")).createServer(
        { ...settings, ...tls, minVersion: "TLSv1.2" },
        options.onRequest as RequestListener,
      )
    : createServer(settings, options.onRequest as RequestListener);
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  server.on("clientError", (error, socket) => refuseBytes(error, socket as Socket, options));
  server.on("checkContinue", (req, res) => options.onRequest(req, res));
  const pressure = createPauseReport(options.events);
  server.on("drop", () => pressure("connections"));
  const port = await open(server, options);
  server.on("error", (error: NodeJS.ErrnoException) => pressure(error.code ?? "accept"));
  const shownHost = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    host: options.host,
    port,
    url: `${tls ? "https" : "http"}://${shownHost}:${port}`,
    setTls: (next) => "setSecureContext" in server && server.setSecureContext(next),
    stopAccepting: () => {
      server.close();
      server.closeIdleConnections();
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => (server.listening ? server.close(() => resolve()) : resolve()));
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

const wordsFor = ({ code, message }: NodeJS.ErrnoException, host: string, port: number): string => {
  if (code === "EADDRINUSE")
    return `Port ${port} of ${host} is in use. Stop what listens there, or choose another with --port.`;
  if (code === "EACCES")
    return `Port ${port} of ${host} may not be opened by this user. Choose one above 1023 with --port.`;
  if (code === "EADDRNOTAVAIL") return `${host} is no address of this machine. Choose another with --host.`;
  if (code === "ENOTFOUND") return `${host} is not known. Give an address with --host.`;
  return `${host}:${port} cannot be listened on: ${message}`;
};

const BY_CODE: Record<string, ErrorName> = {
  HPE_HEADER_OVERFLOW: "headers-too-large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "too-large",
  ERR_HTTP_REQUEST_TIMEOUT: "request-timeout",
};

/** Answers bytes that are no HTTP request, as far as the socket still can be answered. */
const refuseBytes = (error: NodeJS.ErrnoException, socket: Socket, { newRequestId }: ListenOptions): void => {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = new GatewayError(BY_CODE[error.code ?? ""] ?? "invalid-request", "The bytes are no HTTP request.");
  const requestId = newRequestId();
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
