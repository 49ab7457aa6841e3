import type { IncomingMessage } from "node:http";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { HOPS_HEADER, hopsIn } from "#kit/hops.ts";
import { hashOf } from "#kit/secrets.ts";
import { authenticate, bearerOf } from "#wire/call/auth.ts";
import type { WireCall } from "#wire/call/call.ts";
import type { DoorAt } from "#wire/call/front.ts";
import type { RpcCaller } from "#wire/rpc/rpc.ts";
import { failRpc } from "#wire/rpc/rpc-http.ts";
import { CLOSE, Connection, type ConnectionParts } from "./connection.ts";
import { createSocketServer } from "./server-socket.ts";
import { setCaller } from "./socket-calls.ts";
import { subscribers } from "./subscriber.ts";

export type SocketTimes = {
  /** The time between two pings of a connection; 30 s by default. */
  pingMs?: number | undefined;
  /** The longest time for which pushes may be held back from a full connection before it is closed; 30 s by default. */
  stuckMs?: number | undefined;
};

type SocketDoorParts = Parameters<typeof subscribers>[0] &
  Omit<ConnectionParts, "createSubscriber" | "onClosed" | "onIdle"> & {
    /** The owner of a token, by its hash. */
    identify(hash: Buffer): RpcCaller | undefined;
    /** The URL of RPC as the caller reaches it, derived from its own request. */
    servedAt(call: WireCall): string;
    messageLimit(): number;
    socketsPerAddress(): number;
    isDraining(): boolean;
    times?: SocketTimes | undefined;
  };

/** The subprotocol. The server selects it if the client offers it. */
const PROTOCOL = "agent-gateway.v1";
const BEARER = "bearer.";
const PATH = "/rpc/ws";
const TOKEN_ADVICE =
  "`/rpc/ws` takes an RPC token: `Authorization: Bearer <token>` or, from a browser, the subprotocol `bearer.<base64url of the token>`.";
const OPERATION = "rpc.socket";
const UPGRADE_ADVICE =
  "This path opens a WebSocket: send Connection: Upgrade and Upgrade: websocket, as WebSocket clients do. Calls over plain HTTP go to POST /rpc.";
const FRAGMENTS = 1_024;
/** The smallest average size of the fragments of a message. */
const PART_BYTES = 256;
const CLOSE_MS = 5_000;
const RETRY_MS = { least: 500, most: 5_000 };

/** A random delay, so that clients that are disconnected together do not reconnect together. */
function randomRetryMs(): number {
  return Math.round(RETRY_MS.least + Math.random() * (RETRY_MS.most - RETRY_MS.least));
}

/** The WebSocket transport. It accepts or rejects upgrade requests, and manages the connections. The dispatcher handles the calls. */
export function createRpcSocketDoor(parts: SocketDoorParts) {
  const { clock, events } = parts;
  const server = createSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxFragments: FRAGMENTS,
    closeTimeout: CLOSE_MS,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });
  const connections = createConnections(clock, parts.times ?? {});
  const connectionParts = {
    ...parts,
    createSubscriber: subscribers(parts),
    onIdle: connections.idle,
    onClosed(connection: Connection) {
      const { origin, caller, since, closing } = connection;
      connections.delete(connection);
      connection.subscriber?.leave();
      const by = closing === 0 ? "peer" : String(closing);
      const ms = Math.round(clock.monotonic() - since);
      events.socketClosed({ requestId: origin.requestId, caller: caller.name, by, ms });
    },
  };
  const callOfRequest = new WeakMap<IncomingMessage, WireCall>();
  server.on("wsClientError", (error, _socket, req) =>
    fail(callOfRequest.get(req) as WireCall, new GatewayError("invalid-request", `${error.message}.`)),
  );

  const open = (call: WireCall, { socket, head }: NonNullable<WireCall["upgrade"]>): void => {
    const { req, requestId, peer } = call;
    const { address, network } = peer;
    const caller = authenticate(call, parts.identify, TOKEN_ADVICE, { hashIn });
    const retry = { retryAfterMs: randomRetryMs() };
    if (parts.isDraining()) throw new GatewayError("shutting-down", undefined, retry);
    if (connections.countOf(network) >= parts.socketsPerAddress())
      throw new GatewayError(
        "gateway-busy",
        "This address has reached its limit of open WebSockets (gateway.rpc.socketsPerAddress).",
        retry,
      );
    const limit = parts.messageLimit();
    Object.assign(server.options, { maxPayload: limit, maxBufferedChunks: Math.ceil(limit / PART_BYTES) });
    callOfRequest.set(req, call);
    server.handleUpgrade(req, socket, head, (ws) => {
      call.handOver();
      const tokenHash = call.keyHash as Buffer;
      const headers = call.parts.headerLines(recordedHeaders(req));
      const servedAt = parts.servedAt(call);
      const origin = { requestId, tokenHash, address, network, headers, hops: hopsIn(req.headers), servedAt };
      connections.add(new Connection(ws, socket, connectionParts, caller, origin));
      events.socketOpened({ requestId, caller: caller.name, address });
    });
  };

  /** Upgrades the connection. A request without an upgrade fails with `upgrade-required`. */
  const door = (call: WireCall): void => {
    call.line.entered("rpc");
    call.line.reached(OPERATION);
    if (call.upgrade) return void open(call, call.upgrade);
    call.res.setHeader("upgrade", "websocket");
    throw new GatewayError("upgrade-required", UPGRADE_ADVICE);
  };

  return {
    door: { prefix: PATH, door, exact: true, sockets: true, fail } satisfies DoorAt,

    /** Closes connections whose token was removed, or has lost an agent or a permission that their subscriptions need. The others get the token's new permissions. */
    recheck(): void {
      for (const connection of connections.list()) {
        const caller = parts.identify(connection.origin.tokenHash);
        if (!caller) {
          connection.close(CLOSE.tokenRevoked, "the token is no longer valid");
          continue;
        }
        setCaller(connection, caller);
      }
    },

    /** Closes each connection with the code for a restart, once its calls have been answered or after `ms`. */
    closeAll: (ms: number): Promise<void> =>
      connections.closeAll(ms, () => `the gateway restarts; retry-after-ms=${randomRetryMs()}`),
    count: connections.count,
  };
}

function fail(call: WireCall, thrown: unknown): void {
  call.line.reached(OPERATION);
  if (GatewayError.from(thrown).name === "invalid-request") call.res.setHeader("sec-websocket-version", "13");
  failRpc(call, thrown);
}

const PING_MS = 30_000;
const STUCK_MS = 30_000;
/** All connections are checked this many times in the interval between two pings of a connection. */
const CHECKS_A_PING = 30;
/** The time after which a closing connection is terminated. */
const LAST_MS = 1_000;

/** All connections, with one timer for all of them. */
function createConnections(clock: Clock, { pingMs = PING_MS, stuckMs = STUCK_MS }: SocketTimes) {
  const all = new Set<Connection>();
  const byNetwork = new Map<string, number>();
  let stopTimer: (() => void) | undefined;
  let whenNone: (() => void) | undefined;
  let hint: (() => string) | undefined;

  const checkConnections = (): void => {
    stopTimer = all.size > 0 ? clock.after(pingMs / CHECKS_A_PING, checkConnections) : undefined;
    const now = clock.monotonic();
    for (const connection of all) {
      if (connection.heldSince !== 0 && now - connection.heldSince >= stuckMs) connection.closeTooSlow();
      if (now < connection.pingAt) continue;
      connection.pingAt = now + pingMs;
      connection.ping();
    }
  };
  const closeForRestart = (connection: Connection): void => connection.close(CLOSE.restart, hint?.() ?? "");

  return {
    count: () => all.size,
    countOf: (network: string): number => byNetwork.get(network) ?? 0,
    list: (): readonly Connection[] => [...all],

    add(connection: Connection): void {
      const { network } = connection.origin;
      all.add(connection);
      byNetwork.set(network, (byNetwork.get(network) ?? 0) + 1);
      // The first ping is at a random time, so that connections that were opened together are not pinged together.
      connection.pingAt = clock.monotonic() + Math.random() * pingMs;
      stopTimer ??= clock.after(pingMs / CHECKS_A_PING, checkConnections);
    },

    delete(connection: Connection): void {
      const { network } = connection.origin;
      all.delete(connection);
      const left = (byNetwork.get(network) ?? 1) - 1;
      if (left > 0) byNetwork.set(network, left);
      else byNetwork.delete(network);
      if (all.size === 0) whenNone?.();
    },

    /** Called when the last pending call of a connection has been answered. */
    idle(connection: Connection): void {
      if (hint) closeForRestart(connection);
    },

    /** Closes each connection once its calls have been answered, or after `ms`. Resolves when all are closed. */
    async closeAll(ms: number, reason: () => string): Promise<void> {
      hint = reason;
      for (const connection of all) if (connection.isIdle) closeForRestart(connection);
      if (all.size === 0) return;
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        clock.after(ms, () => {
          for (const connection of all) closeForRestart(connection);
          clock.after(LAST_MS, () => {
            for (const connection of all) connection.terminate();
          });
        });
      });
      stopTimer?.();
    },
  };
}

/** The hash of the token of an upgrade request. The token is in `Authorization` or, from a browser, in a subprotocol. */
function hashIn(req: IncomingMessage): Buffer | undefined {
  const protocols = (req.headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  const offered = protocols.find((protocol) => protocol.startsWith(BEARER)) ?? BEARER;
  const token = bearerOf(req) ?? Buffer.from(offered.slice(BEARER.length), "base64url").toString();
  return token === "" ? undefined : hashOf(token);
}

/** The headers that are recorded with the deliveries of a connection: they identify the client and the cause, and contain no secrets. */
const RECORDED_HEADERS = new Set(["host", "origin", "user-agent", "x-forwarded-for", "traceparent", HOPS_HEADER]);

function recordedHeaders({ rawHeaders: raw }: IncomingMessage): string[] {
  return raw.filter((_, n) => RECORDED_HEADERS.has((raw[n - (n % 2)] as string).toLowerCase()));
}
