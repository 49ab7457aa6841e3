import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Server as TlsServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import { createHttp2, type Http2Parts } from "./h2.ts";
import { takeOwnListener } from "./own-listener.ts";
import { afterAnswers, createPipelined } from "./pipelined.ts";
import { createPrefaceReader } from "./preface.ts";
import { createByteRefusal, HEADER_LIMIT, IS_CONNECT, TOO_MANY_AHEAD } from "./refuse-bytes.ts";
import type { ResetLimit } from "./reset-limit.ts";
import { createSlowReaders } from "./slow-readers.ts";

/** Takes over a connection that asks to be a WebSocket, with all later events: the taker handles its errors and its end. */
export type OnUpgrade = (req: IncomingMessage, socket: Socket, head: Buffer) => void;

export type ListenOptions = {
  host: string;
  port: number;
  tls: { cert: string; key: string } | undefined;
  /** The number of connections that may be open at a time; further ones are closed at once. */
  maxConnections: number | undefined;
  /** The time in which a request must arrive whole; 30 s by default. */
  requestMs?: number | undefined;
  /** The time for which answers may wait for a reader that reads almost nothing; 30 s by default. */
  stuckMs?: number | undefined;
  /** True if a new connection may stay; by default any may. Other connections are closed before anything is read. */
  admits?: ((socket: Socket) => boolean) | undefined;
  resets: ResetLimit;
  /** Over HTTP/2 it gets the request and the response of `h2`. */
  onRequest: (req: IncomingMessage, res: ServerResponse) => void;
  /** Without it a request to upgrade is ignored. */
  onUpgrade?: OnUpgrade | undefined;
  newRequestId: () => string;
  events: Events;
  clock: Clock;
};

export type Listening = {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** Takes a new certificate; connections that are open keep theirs. */
  setTls(tls: { cert: string; key: string }): void;
  /**
   * Accepts no new connections; resolves when the last one has closed. Idle connections are closed a little later, because a request may be in
   * transit.
   */
  stopAccepting(): Promise<void>;
  close(): Promise<void>;
};

const HEADER_MS = 10_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 65_000;
const STUCK_MS = 30_000;
/** The time that an idle connection has for its next request while the listener drains. */
const IDLE_MS = 1_000;
/** The time in which the last connections are accepted: the system opened them before the stop. */
const LAST_ACCEPTS_MS = 500;

/**
 * Opens one address, for HTTP/1.1 and HTTP/2: over TLS the client chooses by ALPN, in clear text by its first bytes. Throws the
 * system's error, in words, if it cannot open the address.
 */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { tls, events, clock, requestMs = REQUEST_MS, stuckMs = STUCK_MS, admits } = options;
  const onRequest = options.onRequest as RequestListener;
  const refuse = createByteRefusal(options);
  const pipelined = createPipelined(onRequest, (socket) => refuse(TOO_MANY_AHEAD, socket));
  const headersMs = Math.min(HEADER_MS, requestMs);
  const checkMs = Math.min(1_000, requestMs, stuckMs);
  const settings = {
    maxHeaderSize: HEADER_LIMIT,
    // The front asks for it, and answers as we answer.
    requireHostHeader: false,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  };
  const overTls = tls && { ...(await tlsOptions()), ALPNProtocols: ["h2", "http/1.1"], handshakeTimeout: headersMs };
  const server: Server | TlsServer = tls
    ? (await import("node:https")).createServer({ ...settings, ...overTls, cert: tls.cert, key: tls.key }, pipelined)
    : createServer(settings, pipelined);
  if (options.maxConnections !== undefined) server.maxConnections = options.maxConnections;
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => refuse(error, socket as Socket));
  server.on("connect", (_, socket) => afterAnswers(socket as Socket, () => refuse(IS_CONNECT, socket as Socket)));
  // A reader of the body asks for it; any other expectation may be ignored.
  server.on("checkContinue", pipelined);
  server.on("checkExpectation", pipelined);

  const asHttp1 = takeOwnListener(server, tls ? "secureConnection" : "connection");
  const slowReaders = createSlowReaders(stuckMs);
  const http1 = (socket: Socket) => {
    slowReaders.add(socket);
    asHttp1(socket);
  };
  const times = { headersMs, requestMs, idleMs: KEEP_ALIVE_MS, stuckMs, lastRequestsMs: IDLE_MS };
  const http2 = createHttp2({
    onRequest: onRequest as unknown as Http2Parts["onRequest"],
    resets: options.resets,
    ...times,
  });
  const prefaces = createPrefaceReader({ http1, http2: http2.take });
  const { open, enters } = createEntrance(admits);
  if (tls) {
    const asTls = takeOwnListener(server, "connection");
    server.on("connection", (socket) => enters(socket) && asTls(socket));
    server.on("secureConnection", (socket) => (socket.alpnProtocol === "h2" ? http2.take(socket) : http1(socket)));
  } else server.on("connection", (socket) => enters(socket) && prefaces.read(socket));
  const { onUpgrade } = options;
  if (onUpgrade) {
    server.on("upgrade", (req, duplex, head) => {
      const socket = duplex as Socket;
      afterAnswers(socket, () => {
        slowReaders.remove(socket);
        takeUpgrade({ req, socket, head }, onUpgrade, http1);
      });
    });
  }

  const pressure = createPauseReport(events);
  server.on("drop", () => pressure("connections"));
  const port = await openPort(server, options);
  server.on("error", (error: NodeJS.ErrnoException) => pressure(error.code ?? "accept"));
  const stopChecks = everyMs(clock, checkMs, () => {
    prefaces.endWaiting(performance.now() - headersMs);
    http2.check();
    slowReaders.check();
  });
  let stopIdleChecks: (() => void) | undefined;
  const shownHost = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    host: options.host,
    port,
    url: `${tls ? "https" : "http"}://${shownHost}:${port}`,
    setTls: ({ cert, key }) => "setSecureContext" in server && server.setSecureContext({ ...overTls, cert, key }),
    stopAccepting: async () => {
      await takeWaiting(server);
      if (!server.listening) return;
      const closed = new Promise<unknown>((resolve) => server.once("close", resolve));
      // HTTP's own `close` ends idle connections at once: a request that is on its way would find no answer.
      NetServer.prototype.close.call(server);
      http2.drain();
      stopIdleChecks ??= everyMs(clock, IDLE_MS, () => {
        server.closeIdleConnections();
        prefaces.endWaiting(performance.now() - IDLE_MS);
      });
      await closed;
    },
    close: async () => {
      stopIdleChecks?.();
      stopChecks();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      http2.destroy();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** TLS 1.3 as in Node. TLS 1.2 only with forward secrecy and authenticated encryption; no renegotiation. */
async function tlsOptions() {
  const [{ DEFAULT_CIPHERS }, { constants }] = await Promise.all([import("node:tls"), import("node:crypto")]);
  const ofTls13 = DEFAULT_CIPHERS.split(":").filter((suite) => suite.startsWith("TLS_"));
  return {
    minVersion: "TLSv1.2",
    ciphers: [...ofTls13, ...TLS12_CIPHERS].join(":"),
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  } as const;
}
const TLS12_CIPHERS = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].flatMap((cipher) => [
  `ECDHE-ECDSA-${cipher}`,
  `ECDHE-RSA-${cipher}`,
]);

/**
 * Checks connections every `ms` until the returned function is called, after the data that has arrived on them was read. When the process has stood still its timers
 * run first, and would take a connection for idle that has sent a request meanwhile.
 */
function everyMs(clock: Clock, ms: number, check: () => void): () => void {
  const next = () =>
    clock.after(ms, () => {
      stop = next();
      setImmediate(check);
    });
  let stop = next();
  return () => stop();
}

/** Tracks the open connections, and closes new ones that are not admitted. */
function createEntrance(admits: (socket: Socket) => boolean = () => true) {
  const open = new Set<Socket>();
  function forget(this: Socket): void {
    open.delete(this);
  }
  return {
    open: open as ReadonlySet<Socket>,
    /** True if the connection is admitted. Called before its TLS handshake. */
    enters(socket: Socket): boolean {
      if (!admits(socket)) {
        socket.destroy();
        return false;
      }
      open.add(socket);
      socket.once("close", forget);
      return true;
    },
  };
}

function openPort(server: Server | TlsServer, { host, port }: ListenOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(new Error(wordsFor(error, host, port), { cause: error })),
    );
    server.listen({ host, port, backlog: 1024 }, () => {
      server.removeAllListeners("error");
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Takes the connections that wait at the system's door, one in each turn of the loop: closing it would cut them. */
async function takeWaiting(server: NetServer): Promise<void> {
  let taken = 0;
  const count = () => taken++;
  server.on("connection", count);
  for (const until = performance.now() + LAST_ACCEPTS_MS; performance.now() < until; ) {
    const before = taken;
    for (let turn = 0; turn < 3; turn++) await yieldToOthers();
    if (taken === before) break;
  }
  server.off("connection", count);
}

function wordsFor({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === "EADDRINUSE")
    return `Port ${port} of ${host} is in use. Stop what listens there, or choose another with --port.`;
  if (code === "EACCES")
    return `Port ${port} of ${host} may not be opened by this user. Choose one above 1023 with --port.`;
  if (code === "EADDRNOTAVAIL") return `${host} is not an address of this machine. Choose another with --host.`;
  if (code === "ENOTFOUND") return `${host} is not known. Give an address with --host.`;
  return `${host}:${port} cannot be listened on: ${message}`;
}

const REPORT_EVERY_MS = 10_000;

/** Logs once, not for each connection, that none are accepted; and once that they are again. */
function createPauseReport(events: Events) {
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
}

/**
 * Hands on a request that asks for a WebSocket. Any other upgrade is ignored, as HTTP permits: such a request is read again without the
 * headers that ask for it, because Node gives no other way to answer it.
 */
function takeUpgrade(
  { req, socket, head }: { req: IncomingMessage; socket: Socket; head: Buffer },
  onUpgrade: OnUpgrade,
  http1: (socket: Socket) => void,
): void {
  if (tokensOf(req.headers.upgrade).includes("websocket")) {
    socket.on("error", () => {});
    onUpgrade(req, socket, head);
  } else {
    http1(socket);
    socket.unshift(Buffer.concat([Buffer.from(headWithout(req), "latin1"), head]));
  }
}

function tokensOf(header: string | undefined): string[] {
  return (header ?? "").split(",").map((token) => token.trim().toLowerCase());
}

const UPGRADE_HEADERS = new Set(["upgrade", "http2-settings"]);

function headWithout({ method, url, httpVersion, rawHeaders }: IncomingMessage): string {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const [name, value] = [rawHeaders[n] as string, rawHeaders[n + 1] as string];
    const isConnection = name.toLowerCase() === "connection";
    const remaining = isConnection ? tokensOf(value).filter((token) => !UPGRADE_HEADERS.has(token)) : [value];
    if (remaining.length > 0 && !UPGRADE_HEADERS.has(name.toLowerCase()))
      head += `${name}: ${remaining.join(", ")}\r\n`;
  }
  return `${head}\r\n`;
}
