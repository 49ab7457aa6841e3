import { fileURLToPath } from "node:url";
import type { Config, Listener, SurfaceName } from "#config/config.ts";
import { GatewayError } from "#kit/errors.ts";
import { type Access, createAccess } from "#wire/call/access.ts";
import { networkOf, plain } from "#wire/call/address.ts";
import { createGuessGuard } from "#wire/call/auth.ts";
import { createFront, createUpgradeFront, type DoorAt } from "#wire/call/front.ts";
import { createHeaderLines, createTokenHider } from "#wire/call/header-lines.ts";
import { createOrigins, type Origins } from "#wire/call/origins.ts";
import { createRefusals } from "#wire/call/refusals.ts";
import { createConnectionLimit } from "#wire/http/connection-limit.ts";
import { createResetLimit } from "#wire/http/reset-limit.ts";
import { createUnderWay } from "#wire/http/under-way.ts";
import { createConsoleDoor } from "#wire/pages/console.ts";
import { createDocsDoor } from "#wire/pages/docs.ts";
import { nothingAt, type Place, servedPlaces } from "#wire/pages/nothing-at.ts";
import { createServedAt } from "#wire/pages/served-at.ts";
import {
  createDocuments,
  createHooks,
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

/** The build, seen from the sources, from `dist/main.js`, and from a chunk beside it. */
const BUILD = import.meta.url.endsWith(".ts") ? "../../dist/" : import.meta.url.includes("/chunks/") ? "../" : "./";

/** Where the build has pages. */
function builtFolder(name: string): string {
  return fileURLToPath(new URL(BUILD + name, import.meta.url));
}

/** One listener, as the configuration has it now. */
type OpenListener = {
  surfaces: SurfaceName[];
  places: Place[];
  doors: DoorAt[];
  hsts: boolean;
  origins: Origins;
};

/** The doors of every listener, kept in step with the configuration. */
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
  const hideTokens = createTokenHider(
    (hash) =>
      core.keys.knows(hash) ||
      access.identifyRpc(hash) !== undefined ||
      access.hooks.identify(hash) !== undefined ||
      access.identifyConsole(hash) !== undefined,
  );
  const headerLines = createHeaderLines((line) => hideTokens(given.hide(line)), clock);
  /** A key that is not known any more loses its streams. */
  const recheckKeys = () =>
    underWay.recheckKeys(
      (hash) => config.gateway.rest.enabled && (core.keys.isGood(hash) || access.identifyConsole(hash) !== undefined),
    );
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
  const ops = createOps(parts, documents, () => isRestReady);
  registry.read("gauge", "gateway_sockets_open", "Open WebSockets.", rpc.socket.count);

  const bySurface: Record<SurfaceName, DoorAt[]> = {
    rest: [
      { prefix: "/api/v1/console/codes/redeem", door: rest.redeem, exact: true },
      { prefix: "/api/v1", door: rest.door },
    ],
    rpc: [rpc.socket.door, rpc.http],
    webhooks: [hooks.door],
    docs: [
      { prefix: "/openapi.json", door: ops.openapi, exact: true },
      { prefix: "/openrpc.json", door: ops.openrpc, exact: true },
      { prefix: "/docs", door: createDocsDoor(builtFolder("docs")) },
    ],
    metrics: [{ prefix: "/metrics", door: ops.metrics, exact: true }],
    console: [{ prefix: "/console", door: createConsoleDoor(builtFolder("console")) }],
  };
  /** Without a listener for the console, sign-in codes are of no use. */
  const withoutConsole: DoorAt = {
    prefix: "/api/v1/console",
    door() {
      throw new GatewayError("not-found", `There is nothing below /api/v1/console: ${whyClosed(config, "console")}.`);
    },
  };
  const openListener = ({ host, tls, surfaces: wanted }: Listener): OpenListener => {
    const surfaces = wanted.filter((surface) => isOn(config, surface));
    const isOpenAi = config.gateway.openai.enabled && surfaces.includes("rest");
    const openAi = isOpenAi ? rest.openAi.open : rest.openAi.closed;
    const index = ops.index({ surfaces, openai: isOpenAi, webhookPath: config.webhooks.path });
    return {
      surfaces,
      places: placesIn(config, surfaces),
      doors: [
        ...openAi.filter(isBelowRest),
        ...(surfaces.includes("rest") && !hasConsole(config) ? [withoutConsole] : []),
        ...surfaces.flatMap((surface) => bySurface[surface]),
        // The path of webhooks may be one of these.
        ...openAi.filter((door) => !isBelowRest(door)),
        { prefix: "/", door: index, exact: true },
        { prefix: "/healthz", door: ops.healthz, exact: true },
        { prefix: "/readyz", door: ops.readyz, exact: true },
      ],
      hsts: tls?.hsts === true,
      origins: createOrigins(config.gateway.allowedOrigins, { loopback: isLoopback(host), tls: tls !== undefined }),
    };
  };
  listeners = config.gateway.listeners.map(openListener);

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
        // Behind a proxy of ours are many: each of its connections counts alone.
        return access.isProxy(address) ? socket : networkOf(address);
      },
    }),
    /** Tells all WebSockets that the gateway restarts, when their calls are answered or after `ms`; resolves when they have gone. */
    closeSockets: rpc.socket.closeAll,
    setListening: (next: typeof listening) => {
      listening = next;
    },
    surfaces: (listener: number): string[] =>
      at(listener).surfaces.flatMap((surface) =>
        surface === "rest" && config.gateway.openai.enabled ? [surface, "openai"] : [surface],
      ),
    underWay,
    /** The surfaces that answer 404, and why. */
    closed: () =>
      (["rest", "rpc", "webhooks", "console"] as const)
        .filter((surface) => !isOn(config, surface))
        .map((surface) => ({ surface, reason: `it has no secret (${SECRET_OF[surface]}), or its enabled is false` })),
    /** Compiles the contract for the REST door: a request that no validator compiled ahead takes waits for it. */
    async open(): Promise<void> {
      await restContract();
      isRestReady = true;
    },
    reconfigure(next: Config): void {
      config = next;
      access = accessOf(next);
      listeners = config.gateway.listeners.map(openListener);
      rpc.socket.recheck();
      recheckKeys();
    },
  };
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

/** A surface is on when the configuration has the keys that it needs and does not switch it off. */
function isOn({ gateway, webhooks }: Config, surface: SurfaceName): boolean {
  if (surface === "webhooks") return webhooks.enabled;
  if (surface === "rest" || surface === "rpc" || surface === "console") return gateway[surface].enabled;
  return surface !== "metrics" || gateway.rpc.enabled;
}

function hasConsole(config: Config): boolean {
  return isOn(config, "console") && config.gateway.listeners.some(({ surfaces }) => surfaces.includes("console"));
}

/** Where the configuration has the secret that opens a surface. */
const SECRET_OF = {
  rest: "gateway.rest.auth.keys",
  rpc: "gateway.rpc.auth.tokens",
  webhooks: "webhooks.token",
  console: "gateway.console.token",
} as const;

/** Why a listener has nothing below a surface's prefix. */
function whyClosed(config: Config, surface: SurfaceName): string {
  if (isOn(config, surface)) return `\`${surface}\` is not among the \`surfaces\` of this listener (gateway.listeners)`;
  const opening = surface === "metrics" ? "rpc" : (surface as keyof typeof SECRET_OF);
  const key = opening === "webhooks" ? "webhooks" : `gateway.${opening}`;
  return `\`${surface}\` is off. A secret in ${SECRET_OF[opening]} opens it, unless ${key}.enabled is false`;
}

/** The places of a listener that has these surfaces open, for a caller who asks where nothing is. */
function placesIn(config: Config, surfaces: readonly SurfaceName[]): Place[] {
  const isOpenAi = config.gateway.openai.enabled && surfaces.includes("rest");
  const open = ["always", ...surfaces, ...(isOpenAi ? ["openai"] : [])];
  return servedPlaces(config.webhooks.path).map(({ surface, prefix, paths }) => {
    if (open.includes(surface)) return { prefix, paths, closed: undefined };
    // The door that replaces a closed OpenAI door says so itself.
    return { prefix, paths: [], closed: surface === "openai" ? undefined : whyClosed(config, surface as SurfaceName) };
  });
}

function isBelowRest({ prefix }: DoorAt): boolean {
  return prefix.startsWith("/api/v1/");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}
