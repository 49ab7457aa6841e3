import type { Config } from "#config/config.ts";
import { isNarrowed } from "#kit/reach.ts";
import { type Access, createAccess } from "#wire/call/access.ts";
import { networkOf, plain } from "#wire/call/address.ts";
import { createGuessGuard } from "#wire/call/auth.ts";
import { createFront, createUpgradeFront } from "#wire/call/front.ts";
import { createHeaderLines, createTokenHider } from "#wire/call/header-lines.ts";
import { createRefusals } from "#wire/call/refusals.ts";
import { createConnectionLimit } from "#wire/http/connection-limit.ts";
import { createResetLimit } from "#wire/http/reset-limit.ts";
import { createUnderWay } from "#wire/http/under-way.ts";
import { MCP_PATH } from "#wire/mcp/mcp.ts";
import { nothingAt } from "#wire/pages/nothing-at.ts";
import { createServedAt } from "#wire/pages/served-at.ts";
import { closedSurfaces, doorsBySurface, type OpenListener, openListener, servedWithRest } from "./listeners.ts";
import {
  createDocuments,
  createHooks,
  createMcp,
  createOps,
  createRest,
  createRpc,
  restContract,
  type SurfaceParts,
} from "./surfaces.ts";

type DoorsParts = Omit<SurfaceParts, "config" | "access" | "recordBodies" | "refusals" | "isServed" | "servedAt"> & {
  config: Config;
  /** A text without the secrets that the logs hide. */
  hide: (text: string) => string;
};

/** The doors of every listener, updated with the configuration. */
export function createDoors(given: DoorsParts) {
  const { core, clock, events, registry } = given;
  let { config } = given;
  let access: Access = accessOf(config);
  let listening: readonly { url: string; host: string; port: number }[] = [];
  let listeners: OpenListener[] = [];
  let isRestReady = false;
  const at = (listener: number) => listeners[listener] as OpenListener;
  const guard = createGuessGuard(clock, events);
  const recordBodies = () => config.recorder.bodies;
  const refusals = createRefusals({ record: core.deliveries.record, clock });
  const underWay = createUnderWay();
  const headerLines = createHeaderLines(
    hidingOf(given, () => access),
    clock,
  );
  /** A key that is not known any more, or has lost an agent, loses its streams, and so do the clients of a surface that was switched off. */
  const recheckKeys = () =>
    underWay.recheckKeys((hash, { agents, path }) => {
      if (path === MCP_PATH && !config.gateway.mcp.enabled) return false;
      const key = config.gateway.rest.enabled ? (core.keys.good(hash) ?? access.identifyConsole(hash)) : undefined;
      return key !== undefined && !isNarrowed({ agents }, key);
    });
  core.keys.onChange(recheckKeys);

  const parts: SurfaceParts = {
    ...given,
    recordBodies,
    refusals,
    config: () => config,
    access: () => access,
    isServed: (surface) => listeners.some(({ surfaces }) => surfaces.includes(surface)),
    servedAt: createServedAt({
      places: () => listening.map((place, n) => ({ ...place, surfaces: at(n).surfaces })),
      isOwnHost: (host, place) => listeners[place]?.origins.isOwnHost(host) ?? false,
    }),
  };
  const documents = createDocuments(config.webhooks.path);
  const hooks = createHooks(parts);
  const rest = createRest(parts, hooks);
  const rpc = createRpc(parts, documents);
  const mcp = createMcp(parts, rest, rpc);
  core.skills.onChange(mcp.changed);
  const ops = createOps(parts, documents, () => isRestReady);
  registry.read("gauge", "gateway_sockets_open", "Open WebSockets.", rpc.socket.count);

  const bySurface = doorsBySurface({ rest, mcp, rpc, hooks, ops });
  const listenersOf = (config: Config) =>
    config.gateway.listeners.map((listener) => openListener(config, listener, { rest, mcp, ops }, bySurface));
  listeners = listenersOf(config);

  return {
    /** The entry of a listener's requests, and of those that ask for a WebSocket. */
    front: (listener: number) => {
      const onRequest = createFront({
        underWay,
        guard,
        headerLines,
        recordBodies,
        refusals,
        events,
        clock,
        hideInJson: given.hideInJson,
        doors: () => at(listener).doors,
        peerOf: (req) => access.peerOf(req),
        hsts: () => at(listener).hsts,
        origins: () => at(listener).origins,
        nothingAt: (path) => nothingAt(path, at(listener).places),
      });
      return { onRequest, onUpgrade: createUpgradeFront(onRequest) };
    },
    /** True if a new connection may stay. */
    admits: createConnectionLimit({
      limit: () => config.gateway.connectionsPerAddress,
      isProxy: (address) => access.isProxy(address),
      events,
      clock,
    }),
    resets: createResetLimit({
      clock,
      keyOf(socket) {
        const address = plain(socket.remoteAddress ?? "");
        // Many clients are behind a proxy of ours: each of its connections is counted separately.
        return access.isProxy(address) ? socket : networkOf(address);
      },
    }),
    /** Notifies all WebSockets that the gateway restarts, when their calls are answered or after `ms`; resolves when they have closed. */
    closeSockets: rpc.socket.closeAll,
    setListening: (next: typeof listening) => {
      listening = next;
    },
    surfaces: (listener: number): string[] =>
      at(listener).surfaces.flatMap((surface) =>
        surface === "rest" ? [surface, ...servedWithRest(config, [surface])] : [surface],
      ),
    underWay,
    closed: () => closedSurfaces(config),
    /** Compiles the contract for REST: a request that no precompiled validator accepts waits for it. */
    async open(): Promise<void> {
      await restContract();
      isRestReady = true;
    },
    /** The configuration in force. */
    config: () => config,
    reconfigure(next: Config): void {
      config = next;
      access = accessOf(next);
      listeners = listenersOf(next);
      rpc.socket.recheck();
      recheckKeys();
      mcp.changed();
    },
  };
}

/** A line of a request's head without the secrets of the configuration, and without tokens that are valid here. */
function hidingOf({ core, hide }: DoorsParts, access: () => Access): (line: string) => string {
  const hideTokens = createTokenHider((hash) => {
    const { identifyRpc, identifyConsole, hooks } = access();
    return Boolean(core.keys.knows(hash) || identifyRpc(hash) || hooks.identify(hash) || identifyConsole(hash));
  });
  return (line) => hideTokens(hide(line));
}

function accessOf({ gateway, webhooks }: Config): Access {
  return createAccess({
    trustedProxies: gateway.trustedProxies,
    clearTextFrom: gateway.clearTextFrom,
    consoleToken: gateway.console.enabled ? gateway.console.token : undefined,
    rpcTokens: gateway.rpc.auth.tokens,
    webhooks,
  });
}
