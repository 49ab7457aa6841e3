import type { IncomingMessage } from "node:http";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { HOPS_HEADER, hopsIn } from "#kit/hops.ts";
import { hashOf } from "#kit/secrets.ts";
import { authenticate, bearerOf } from "#wire/call/auth.ts";
import type { WireCall } from "#wire/call/call.ts";
import type { DoorAt } from "#wire/call/front.ts";
import { mayCall, type RpcCaller } from "#wire/rpc/rpc.ts";
import { failRpc } from "#wire/rpc/rpc-http.ts";
import { CLOSE, Connection, type ConnectionParts } from "./connection.ts";
import { createSocketServer } from "./server-socket.ts";
import { DELIVERIES_PERMISSION, GATEWAY_PERMISSION, SESSION_PERMISSION } from "./socket-calls.ts";
import { createSubscriptions, type SubscriptionsParts } from "./subscriptions.ts";

export type SocketTimes = {
  /** The time between two pings of a connection; 30 s by default. */
  pingMs?: number | undefined;
  /** The time that something may be kept back from a connection before it is cut; 30 s by default. */
  stuckMs?: number | undefined;
};

type SocketDoorParts = SubscriptionsParts &
  Omit<ConnectionParts, "subscriptions" | "onClosed" | "onIdle"> & {
    /** The owner of a token, by its hash. */
    identify(hash: Buffer): RpcCaller | undefined;
    /** The address at which the caller finds RPC, as it came here itself. */
    servedAt(call: WireCall): string;
    messageLimit(): number;
    socketsPerAddress(): number;
    isDraining(): boolean;
    times?: SocketTimes | undefined;
  };

/** The protocol of the socket; the server selects it where it is offered. */
const PROTOCOL = "agent-gateway.v1";
const BEARER = "bearer.";
const PATH = "/rpc/ws";
const TAKES =
  "`/rpc/ws` takes an RPC token: `Authorization: Bearer <token>` or, from a browser, the subprotocol `bearer.<base64url of the token>`.";
const OPERATION = "rpc.socket";
const UPGRADE_ADVICE =
  "This path opens a WebSocket: send Connection: Upgrade and Upgrade: websocket, as WebSocket clients do. Calls over plain HTTP go to POST /rpc.";
const FRAGMENTS = 1_024;
/** A message may come in parts no smaller than this on the average. */
const PART_BYTES = 256;
const CLOSE_MS = 5_000;
const RETRY_MS = { least: 500, most: 5_000 };

/** Another moment for each: clients that were sent away together shall not come back together. */
function someTime(): number {
  return Math.round(RETRY_MS.least + Math.random() * (RETRY_MS.most - RETRY_MS.least));
}

/** The WebSocket door: it decides on each request to open one, and keeps it open. The dispatcher handles the calls. */
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
    subscriptions: createSubscriptions(parts),
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
  const asking = new WeakMap<IncomingMessage, WireCall>();
  server.on("wsClientError", (error, _socket, req) =>
    fail(asking.get(req) as WireCall, new GatewayError("invalid-request", `${error.message}.`)),
  );

  const open = (call: WireCall, { socket, head }: NonNullable<WireCall["upgrade"]>): void => {
    const { req, requestId, peer } = call;
    const { address, network } = peer;
    const caller = authenticate(call, parts.identify, TAKES, { hashIn });
    const retry = { retryAfterMs: someTime() };
    if (parts.isDraining()) throw new GatewayError("shutting-down", undefined, retry);
    if (connections.countOf(network) >= parts.socketsPerAddress())
      throw new GatewayError("gateway-busy", "This address holds gateway.rpc.socketsPerAddress WebSockets.", retry);
    const limit = parts.messageLimit();
    Object.assign(server.options, { maxPayload: limit, maxBufferedChunks: Math.ceil(limit / PART_BYTES) });
    asking.set(req, call);
    server.handleUpgrade(req, socket, head, (ws) => {
      call.handOver();
      const tokenHash = call.keyHash as Buffer;
      const headers = call.parts.headerLines(tellingHeaders(req));
      const servedAt = parts.servedAt(call);
      const origin = { requestId, tokenHash, address, network, headers, hops: hopsIn(req.headers), servedAt };
      connections.add(new Connection(ws, socket, connectionParts, caller, origin));
      events.socketOpened({ requestId, caller: caller.name, address });
    });
  };

  /** Takes over the connection of a request to upgrade. Any other request is told to ask for that. */
  const door = (call: WireCall): void => {
    call.line.entered("rpc");
    call.line.reached(OPERATION);
    if (call.upgrade) return void open(call, call.upgrade);
    call.res.setHeader("upgrade", "websocket");
    throw new GatewayError("upgrade-required", UPGRADE_ADVICE);
  };

  return {
    door: { prefix: PATH, door, exact: true, sockets: true, fail } satisfies DoorAt,

    /** Closes sockets whose token is gone, or has lost a permission that they need. Others get the token's new permissions. */
    recheck(): void {
      for (const connection of connections.list()) {
        const caller = parts.identify(connection.origin.tokenHash);
        const lost = caller && lostPermission(connection, caller);
        if (!caller) connection.close(CLOSE.tokenRevoked, "the token is no longer valid");
        else if (lost) connection.close(CLOSE.permissionRevoked, `the token lacks ${lost} now`);
        else connection.caller = caller;
      }
    },

    /** Tells all that the gateway restarts, when their calls are answered or after `ms`. */
    closeAll: (ms: number): Promise<void> =>
      connections.closeAll(ms, () => `the gateway restarts; retry-after-ms=${someTime()}`),
    count: connections.count,
  };
}

function fail(call: WireCall, thrown: unknown): void {
  call.line.reached(OPERATION);
  if (GatewayError.from(thrown).name === "invalid-request") call.res.setHeader("sec-websocket-version", "13");
  failRpc(call, thrown);
}

/** The permission that a connection needs for its subscriptions and has lost. */
function lostPermission({ subscriber }: Connection, caller: RpcCaller): string | undefined {
  if (!subscriber) return undefined;
  if (subscriber.hasSessions && !mayCall(caller, SESSION_PERMISSION)) return SESSION_PERMISSION;
  if (subscriber.deliveries && !mayCall(caller, DELIVERIES_PERMISSION)) return DELIVERIES_PERMISSION;
  return subscriber.gateway && !mayCall(caller, GATEWAY_PERMISSION) ? GATEWAY_PERMISSION : undefined;
}

const PING_MS = 30_000;
const STUCK_MS = 30_000;
/** The number of times that all connections are checked between two pings of one. */
const CHECKS_A_PING = 30;
/** The time in which a connection must end after it was told to. */
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
      if (connection.heldSince !== 0 && now - connection.heldSince >= stuckMs) connection.cut();
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
      // Ten thousand that come at once are not pinged at once.
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

    /** The last call of a connection was answered. */
    idle(connection: Connection): void {
      if (hint) closeForRestart(connection);
    },

    /** Tells each that the gateway goes, when its calls are answered or after `ms`. Resolves when all have gone. */
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

/** The hash of the token of a request to upgrade: in Authorization or, from a browser, as a subprotocol. */
function hashIn(req: IncomingMessage): Buffer | undefined {
  const protocols = (req.headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  const offered = protocols.find((protocol) => protocol.startsWith(BEARER)) ?? BEARER;
  const token = bearerOf(req) ?? Buffer.from(offered.slice(BEARER.length), "base64url").toString();
  return token === "" ? undefined : hashOf(token);
}

/** The headers of a connection that identify its client and its cause: no secret, and nothing of the handshake. */
const TELLING = new Set(["host", "origin", "user-agent", "x-forwarded-for", "traceparent", HOPS_HEADER]);

function tellingHeaders({ rawHeaders: raw }: IncomingMessage): string[] {
  return raw.filter((_, n) => TELLING.has((raw[n - (n % 2)] as string).toLowerCase()));
}
