import type { IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";
import type * as Ws from "ws";
import type { GatewayStream } from "#core/gateway-stream.ts";
import type { DeliveryFeed } from "#core/recorder/delivery-feed.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import { errors } from "#generated/errors.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newId } from "#kit/ids.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import { type Peer, requireTls } from "#wire/call/address.ts";
import { adviceOf, type GuessGuard } from "#wire/call/auth.ts";
import type { WireCall } from "#wire/call/call.ts";
import { requireOneOfEach } from "#wire/call/origins.ts";
import type { Refusals } from "#wire/call/refusals.ts";
import { originForm } from "#wire/http/origin-form.ts";
import { mayCall, type RpcCaller, type RpcDispatch } from "#wire/rpc/rpc.ts";
import { CLOSE, Connection, type ConnectionParts, type TokenUse } from "./connection.ts";
import { createConnections, type SocketTimes } from "./connections.ts";
import { PROTOCOL, refuseUpgrade, tellingHeaders, tokenOf } from "./handshake.ts";
import { DELIVERIES_PERMISSION, GATEWAY_PERMISSION, SESSION_PERMISSION } from "./socket-calls.ts";
import { createSubscriptions } from "./subscriptions.ts";

export type SocketDoorParts = {
  /** Over the methods of the API and the two that are a socket's own: see `withSocketCalls`. */
  dispatch: RpcDispatch;
  store: Store;
  gatewayStream: GatewayStream;
  deliveryFeed: DeliveryFeed;
  live: LiveReplies;
  /** Throws where there is none of this name. */
  requireAgent(name: string): void;
  peerOf(req: IncomingMessage): Peer;
  /** The owner of a token, by its hash. */
  identify(hash: Buffer): RpcCaller | undefined;
  guard: GuessGuard;
  /** The address at which the caller finds RPC, as it came here itself. */
  servedAt(asked: { req: IncomingMessage; peer: Peer }): string;
  messageLimit(): number;
  socketsPerAddress(): number;
  recordBodies(): boolean;
  /** Hides secrets in the parts of the request to upgrade that are kept. */
  hideSecrets(text: string): string;
  isDraining(): boolean;
  refusals: Refusals;
  times?: SocketTimes | undefined;
  clock: Clock;
  events: Events;
};

/** The rules of a listener for a request to upgrade. */
export type UpgradePlace = {
  isServed: boolean;
  guardHost: (req: IncomingMessage) => void;
  nothingAt: (path: string) => GatewayError;
};

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
const someTime = (): number => Math.round(RETRY_MS.least + Math.random() * (RETRY_MS.most - RETRY_MS.least));

// Loaded as CommonJS: Node would first read an imported package through for its names, which takes five times as long.
const { WebSocketServer } = createRequire(import.meta.url)("ws") as typeof Ws;

/** The WebSocket door: it decides on each request to open one, and keeps it open. The dispatcher handles the calls. */
export const createRpcSocketDoor = (parts: SocketDoorParts) => {
  const { clock, events, guard } = parts;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxFragments: FRAGMENTS,
    closeTimeout: CLOSE_MS,
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  } as ConstructorParameters<typeof WebSocketServer>[0]);
  const connections = createConnections(clock, parts.times ?? {});
  const tokens = new Map<string, TokenUse>();
  const networks = new Map<string, number>();
  const subscriptions = createSubscriptions(parts);

  const connectionParts: ConnectionParts = {
    dispatch: parts.dispatch,
    subscriptions,
    clock,
    events,
    recordBodies: parts.recordBodies,
    refusals: parts.refusals,
    onIdle: connections.idle,
    onGone(connection) {
      const { origin, token, since, closing } = connection;
      connections.delete(connection);
      connection.subscriber?.leave();
      token.connections.delete(connection);
      const left = (networks.get(origin.network) ?? 1) - 1;
      if (left > 0) networks.set(origin.network, left);
      else networks.delete(origin.network);
      const by = closing === 0 ? "peer" : String(closing);
      const ms = Math.round(clock.monotonic() - since);
      events.socketClosed({ requestId: origin.requestId, caller: token.caller.name, by, ms });
    },
  };

  const authenticate = (req: IncomingMessage, peer: Peer, requestId: string): { hash: string; caller: RpcCaller } => {
    const token = tokenOf(req);
    const hash = token === undefined ? undefined : hashOf(token);
    const caller = hash && parts.identify(hash);
    if (hash && caller) return { hash: hash.toString("base64"), caller };
    throw guard({ surface: "rpc", peer, path: PATH, requestId }, adviceOf(TAKES, req));
  };

  const useOf = (hash: string, caller: RpcCaller): TokenUse => {
    const known = tokens.get(hash);
    if (known) return known;
    const use: TokenUse = { caller, connections: new Set() };
    tokens.set(hash, use);
    return use;
  };

  const requirePlace = (network: string): void => {
    const retry = { retryAfterMs: someTime() };
    if (parts.isDraining()) throw new GatewayError("shutting-down", undefined, retry);
    if ((networks.get(network) ?? 0) < parts.socketsPerAddress()) return;
    throw new GatewayError("gateway-busy", "This address holds gateway.rpc.socketsPerAddress WebSockets.", retry);
  };

  const admit = (req: IncomingMessage, place: UpgradePlace, path: string, requestId: string) => {
    if (!place.isServed) throw place.nothingAt(path);
    if (path !== PATH) throw new GatewayError("not-found", `A WebSocket opens at ${PATH}, and nowhere else.`);
    if (req.headers.host === undefined) throw new GatewayError("invalid-request", "The request has no Host.");
    requireOneOfEach(req);
    place.guardHost(req);
    const peer = parts.peerOf(req);
    requireTls(peer);
    const { hash, caller } = authenticate(req, peer, requestId);
    requirePlace(peer.network);
    return { peer, token: useOf(hash, caller), servedAt: parts.servedAt({ req, peer }) };
  };

  const refuse = (
    socket: Duplex,
    thrown: unknown,
    { req, requestId, began, isRpc }: { req: IncomingMessage; requestId: string; began: number; isRpc: boolean },
  ): void => {
    const error = GatewayError.from(thrown);
    if (error.name === "internal") events.unexpectedError({ error: error.cause ?? error, requestId });
    const { status } = errors[error.name];
    refuseUpgrade(socket, error, { requestId, isRpc, after: clock.after });
    const ms = clock.monotonic() - began;
    events.requestHandled({ surface: "rpc", operation: OPERATION, status, ms, requestId, error: error.name });
    const refused = {
      surface: "rpc",
      operation: OPERATION,
      path: PATH,
      peer: parts.peerOf(req),
      requestId,
      hideSecrets: parts.hideSecrets,
      req,
    } as const;
    parts.refusals.note(
      { ...refused, caller: undefined, turnId: undefined, error: error.name, reason: error.detail },
      status,
    );
  };
  server.on("wsClientError", (error, socket, req) => {
    const { requestId, began } = req as unknown as { requestId: string; began: number };
    refuse(socket, new GatewayError("invalid-request", `${error.message}.`), { req, requestId, began, isRpc: true });
  });

  return {
    /** Takes over the connection of a request to upgrade, or refuses it with a reason. */
    upgrade(req: IncomingMessage, socket: Duplex, head: Buffer, place: UpgradePlace): void {
      const began = clock.monotonic();
      const requestId = newId("req", clock.now());
      const path = originForm(req).replace(/[?#].*$/s, "");
      try {
        const { peer, token, servedAt } = admit(req, place, path, requestId);
        const limit = parts.messageLimit();
        Object.assign(server.options, { maxPayload: limit, maxBufferedChunks: Math.ceil(limit / PART_BYTES) });
        Object.assign(req, { requestId, began });
        const { address, network } = peer;
        server.handleUpgrade(req, socket, head, (ws) => {
          const origin = { requestId, address, network, headers: parts.hideSecrets(tellingHeaders(req)), servedAt };
          const connection = new Connection(ws, socket, connectionParts, token, origin);
          networks.set(network, (networks.get(network) ?? 0) + 1);
          token.connections.add(connection);
          connections.add(connection);
          events.socketOpened({ requestId, caller: token.caller.name, address });
        });
      } catch (error) {
        const isRpc = path === PATH && place.isServed;
        refuse(socket, error, { req, requestId, began, isRpc });
      }
    },

    /** For a request that did not ask to upgrade. */
    plain(call: WireCall): void {
      call.surface = "rpc";
      call.operation = OPERATION;
      call.res.setHeader("upgrade", "websocket");
      throw new GatewayError("upgrade-required", UPGRADE_ADVICE);
    },

    /** Closes sockets whose token is gone, or has lost a permission that they need. Others get the token's new permissions. */
    recheck(): void {
      for (const [hash, use] of tokens) {
        const caller = parts.identify(Buffer.from(hash, "base64"));
        if (!caller)
          for (const connection of use.connections)
            connection.close(CLOSE.tokenGone, "the token is not known any more");
        if (!caller || use.connections.size === 0) tokens.delete(hash);
        if (!caller) continue;
        use.caller = caller;
        for (const connection of use.connections) {
          const lost = lostPermission(connection, caller);
          if (lost !== undefined) connection.close(CLOSE.permissionGone, `the token lacks ${lost} now`);
        }
      }
    },

    /** Tells all that the gateway restarts, when their calls are answered or after `ms`. */
    closeAll: (ms: number): Promise<void> =>
      connections.closeAll(ms, () => `the gateway restarts; retry-after-ms=${someTime()}`),
    count: connections.count,
  };
};

/** The permission that a connection needs for its subscriptions and has lost. */
const lostPermission = ({ subscriber }: Connection, caller: RpcCaller): string | undefined => {
  if (!subscriber) return undefined;
  const { readers, agents, gateway, deliveries } = subscriber;
  if (readers.size + agents.size > 0 && !mayCall(caller, SESSION_PERMISSION)) return SESSION_PERMISSION;
  if (deliveries && !mayCall(caller, DELIVERIES_PERMISSION)) return DELIVERIES_PERMISSION;
  return gateway && !mayCall(caller, GATEWAY_PERMISSION) ? GATEWAY_PERMISSION : undefined;
};
