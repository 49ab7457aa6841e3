import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import type { Config, SurfaceName } from "#config/config.ts";
import type { Core } from "#core/core.ts";
import type { Reloads } from "#core/reload.ts";
import type { ConfigState } from "#handlers/rest/config.ts";
import { restHandlers } from "#handlers/rest/table.ts";
import type { Clock } from "#kit/clock.ts";
import { createLatch } from "#kit/latch.ts";
import type { Events } from "#observe/events.ts";
import type { LoopLag } from "#observe/loop-lag.ts";
import { METRICS_TYPE, type Registry } from "#observe/metrics.ts";
import { type Access, createAccess } from "#wire/call/access.ts";
import { networkOf, plain } from "#wire/call/address.ts";
import { createGuessGuard } from "#wire/call/auth.ts";
import { createFront, type DoorAt } from "#wire/call/front.ts";
import { createLineHider, createTokenHider } from "#wire/call/known-tokens.ts";
import { createOrigins, type Origins } from "#wire/call/origins.ts";
import { rateLimitOf } from "#wire/call/rate-limit.ts";
import { createRefusals } from "#wire/call/refusals.ts";
import { createConnectionLimit } from "#wire/http/connection-limit.ts";
import { createResetLimit } from "#wire/http/reset-limit.ts";
import { createUnderWay } from "#wire/http/under-way.ts";
import type { OnUpgrade } from "#wire/http/upgrades.ts";
import { createConsoleDoor } from "#wire/pages/console.ts";
import { type Documents, serveDocuments } from "#wire/pages/documents.ts";
import { nothingAt, type Place } from "#wire/pages/nothing-at.ts";
import { createOpsDoors } from "#wire/pages/ops.ts";
import { createServedAt } from "#wire/pages/served-at.ts";
import { createRestDoor } from "#wire/rest/rest.ts";
import { holdHot, type ValidateRequest } from "#wire/rest/rest-validation.ts";
import type { RpcMethods } from "#wire/rpc/rpc.ts";
import type { SocketTimes } from "#wire/socket/connections.ts";
import { createRpcSocketDoor } from "#wire/socket/rpc-ws.ts";
import { withSocketCalls } from "#wire/socket/socket-calls.ts";
import { createHooksSurface } from "./hooks-surface.ts";
import { createInfo } from "./info.ts";
import { closedSurfaces, isOn, placesIn } from "./open-surfaces.ts";
import { createOpenAiDoor, type WithRestKeys } from "./openai-door.ts";
import { readinessOf } from "./process-health.ts";
import { restContract } from "./rest-contract.ts";
import { createRpcSurface } from "./rpc-surface.ts";

type DoorsParts = {
  config: Config;
  core: Core;
  reloads: Reloads;
  configState: () => ConfigState;
  clock: Clock;
  events: Events;
  registry: Registry;
  version: string;
  began: number;
  /** A text without the secrets that the logs hide. */
  hideSecrets: (text: string) => string;
  isDraining: () => boolean;
  socketTimes?: SocketTimes | undefined;
  isShort: () => boolean;
  lag: LoopLag;
  extraMethods: RpcMethods | undefined;
};

/** From the sources, from `dist/main.js`, and from a chunk beside it. */
const consolePlace = import.meta.url.endsWith(".ts")
  ? "../../dist/console"
  : import.meta.url.includes("/chunks/")
    ? "../console"
    : "./console";

/** Where the build has the console's pages. */
const consoleFiles: string = fileURLToPath(new URL(consolePlace, import.meta.url));

/** One listener, as the configuration has it now. */
type OpenListener = {
  surfaces: SurfaceName[];
  places: Place[];
  doors: DoorAt[];
  origins: Origins;
};

/** The doors of every listener, kept in step with the configuration. */
export const createDoors = (parts: DoorsParts) => {
  const { core, clock, events, registry, version } = parts;
  let { config } = parts;
  let access: Access = accessOf(config);
  let served: Documents | undefined;
  let listening: readonly { url: string; host: string; port: number }[] = [];
  const guard = createGuessGuard(clock, events);
  const refusals = createRefusals({ record: core.deliveries.record, clock });
  const validation = createLatch<ValidateRequest>();
  const underWay = createUnderWay();
  const hideTokens = createTokenHider(
    (hash) =>
      core.keys.knows(hash) ||
      access.identifyRpc(hash) !== undefined ||
      access.hooks.identify(hash) !== undefined ||
      access.identifyConsole(hash) !== undefined,
  );
  const hideSecrets = createLineHider((line) => hideTokens(parts.hideSecrets(line)), clock);
  const admits = createConnectionLimit({
    limit: () => config.gateway.connectionsPerAddress,
    isProxy: (address) => access.isProxy(address),
    events,
    clock,
  });
  const resets = createResetLimit({
    clock,
    keyOf(socket) {
      const address = plain(socket.remoteAddress ?? "");
      // Behind a proxy of ours are many: each of its connections counts alone.
      return access.isProxy(address) ? socket : networkOf(address);
    },
  });
  /** A key that is not known any more loses its streams. */
  const recheckKeys = () =>
    underWay.recheckKeys(
      (hash) => config.gateway.rest.enabled && (core.keys.isGood(hash) || access.identifyConsole(hash) !== undefined),
    );
  core.keys.onChange(recheckKeys);
  const documents = () => Promise.all([import("#generated/openapi.json"), import("#generated/openrpc.json")]);

  const withRestKeys: WithRestKeys = {
    identify: (hash) => {
      const key = core.keys.use(hash);
      if (!key) return access.identifyConsole(hash);
      const { name, scopes, keyId: tokenId = `config:${name}` } = key;
      return { surface: "rest", tokenId, name, scopes };
    },
    guard,
    rateLimit: rateLimitOf(core.store, "rest", clock, () => config.gateway.rest.rateLimit).count,
    bodyLimit: () => config.limits.restBody,
    recordBodies: () => config.recorder.bodies,
    events,
    clock,
  };
  const rest = createRestDoor({
    ...withRestKeys,
    surface: "rest",
    handlers: restHandlers(core, {
      callHook: async (place, raw, ctx) => hooks.call(place, raw, ctx),
      recordBodies: () => config.recorder.bodies,
      configState: parts.configState,
      hooksUse: () => hooks.use(),
    }),
    hold: holdHot(async (...request) => (await validation.promise)(...request)),
  });
  const openAi = createOpenAiDoor(core, withRestKeys);
  const uptimeMs = () => clock.monotonic() - parts.began;
  const servedDocuments = async () => {
    const [openapi, openrpc] = await documents();
    served ??= serveDocuments({ openapi: openapi.default, openrpc: openrpc.default }, config.webhooks.path);
    return served;
  };
  const servedAt = createServedAt({
    places: () => listening.map((place, n) => ({ ...place, surfaces: at(n).surfaces })),
    isOwnHost: (host, place) => listeners[place]?.origins.isOwnHost(host) ?? false,
  });
  const identifyRpc = (hash: Buffer) => access.identifyRpc(hash);
  const isServed = (surface: SurfaceName) => listeners.some(({ surfaces }) => surfaces.includes(surface));
  const startedAt = clock.now() - uptimeMs();
  const infoOf = createInfo({ version, node: core.runner.node, startedAt, isServed });
  const rpc = createRpcSurface({
    core,
    reloads: parts.reloads,
    config: () => config,
    clock,
    events,
    version,
    uptimeMs,
    info: () => infoOf(config),
    documents: servedDocuments,
    servedAt: (call) => servedAt(call, "rpc"),
    identify: identifyRpc,
    guard,
    extraMethods: parts.extraMethods,
  });
  const hooks = createHooksSurface({
    core,
    config: () => config,
    access: () => access.hooks,
    guard,
    refusals,
    clock,
    events,
  });
  const ops = createOpsDoors({
    version,
    uptimeMs,
    readiness: () => readinessOf(parts, validation.value() !== undefined),
    documents: servedDocuments,
    reference: async () => (await import("#generated/reference.js")).reference,
    servedAt,
    metrics: registry.text,
    metricsType: METRICS_TYPE,
    identifyRpc,
    guard,
  });
  const socket = createRpcSocketDoor({
    dispatch: rpc.dispatchOf(withSocketCalls(rpc.methods)),
    store: core.store,
    gatewayStream: core.gatewayStream,
    deliveryFeed: core.deliveryFeed,
    live: core.live,
    requireAgent: (name) => void core.agents.get(name),
    peerOf: (req) => access.peerOf(req),
    identify: (hash) => (config.gateway.rpc.enabled ? access.identifyRpc(hash) : undefined),
    guard,
    servedAt: (asked) => servedAt(asked, "rpc"),
    messageLimit: () => config.limits.rpcBody,
    socketsPerAddress: () => config.gateway.rpc.socketsPerAddress,
    recordBodies: () => config.recorder.bodies,
    hideSecrets,
    isDraining: parts.isDraining,
    refusals,
    times: parts.socketTimes,
    clock,
    events,
  });
  registry.read("gauge", "gateway_sockets_open", "WebSockets that are open.", socket.count);
  const bySurface: Record<SurfaceName, DoorAt[]> = {
    rest: [{ prefix: "/api/v1", door: rest }],
    rpc: [{ ...rpc.http, prefix: "/rpc/ws", door: socket.plain, exact: true }, rpc.http],
    webhooks: [hooks.door],
    docs: [
      { prefix: "/openapi.json", door: ops.openapi, exact: true },
      { prefix: "/openrpc.json", door: ops.openrpc, exact: true },
      { prefix: "/docs", door: ops.docs, exact: true },
    ],
    metrics: [{ prefix: "/metrics", door: ops.metrics, exact: true }],
    console: [{ prefix: "/console", door: createConsoleDoor(consoleFiles) }],
  };
  const always: DoorAt[] = [
    { prefix: "/healthz", door: ops.healthz, exact: true },
    { prefix: "/readyz", door: ops.readyz, exact: true },
  ];
  const openListener = ({ host, tls, surfaces: wanted }: Config["gateway"]["listeners"][number]): OpenListener => {
    const surfaces = wanted.filter((surface) => isOn(config, surface));
    const isOpenAi = config.gateway.openai.enabled && surfaces.includes("rest");
    const index = ops.index({ surfaces, openai: isOpenAi, webhookPath: config.webhooks.path });
    return {
      surfaces,
      places: placesIn(config, surfaces),
      doors: [
        ...surfaces.flatMap((surface) => bySurface[surface]),
        isOpenAi ? openAi.open : openAi.closed,
        { prefix: "/", door: index, exact: true },
        ...always,
      ],
      origins: createOrigins(config.gateway.allowedOrigins, { loopback: isLoopback(host), tls: tls !== undefined }),
    };
  };
  let listeners = config.gateway.listeners.map(openListener);
  const at = (listener: number) => listeners[listener] as OpenListener;

  return {
    front: (listener: number): ((req: IncomingMessage, res: ServerResponse) => void) =>
      createFront({
        doors: () => at(listener).doors,
        peerOf: (req) => access.peerOf(req),
        origins: () => at(listener).origins,
        nothingAt: (path) => nothingAt(path, at(listener).places),
        underWay,
        hideSecrets,
        refusals,
        events,
        clock,
      }),
    /** Whether a new connection may stay. */
    admits,
    resets,
    /** Takes over the connection of a request to upgrade. */
    upgrade:
      (listener: number): OnUpgrade =>
      (req, connection, head) =>
        socket.upgrade(req, connection, head, {
          isServed: at(listener).surfaces.includes("rpc"),
          guardHost: at(listener).origins.guardHost,
          nothingAt: (path) => nothingAt(path, at(listener).places),
        }),
    /** Tells all WebSockets that the gateway restarts, when their calls are answered or after `ms`; resolves when they have gone. */
    closeSockets: socket.closeAll,
    setListening: (next: typeof listening) => {
      listening = next;
    },
    surfaces: (listener: number): string[] =>
      at(listener).surfaces.flatMap((surface) =>
        surface === "rest" && config.gateway.openai.enabled ? [surface, "openai"] : [surface],
      ),
    underWay,
    /** The surfaces that answer 404, and why. */
    closed: () => closedSurfaces(config),
    /** Compiles the contract for the REST door: what no validator compiled ahead takes waits for it. */
    async open(): Promise<void> {
      validation.open(await restContract());
    },
    reconfigure(next: Config): void {
      config = next;
      access = accessOf(next);
      served = undefined;
      listeners = config.gateway.listeners.map(openListener);
      socket.recheck();
      recheckKeys();
    },
  };
};

const accessOf = ({ gateway, webhooks }: Config): Access =>
  createAccess({
    trustedProxies: gateway.trustedProxies,
    clearTextFrom: gateway.clearTextFrom,
    consoleToken: gateway.console.enabled ? gateway.console.token : undefined,
    rpcTokens: gateway.rpc.auth.tokens,
    webhooks,
  });

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || host.startsWith("127.");
