import { fileURLToPath } from "node:url";
import type { Config, Listener, SurfaceName } from "#config/config.ts";
import { GatewayError } from "#kit/errors.ts";
import type { DoorAt } from "#wire/call/front.ts";
import { createOrigins, type Origins } from "#wire/call/origins.ts";
import { createConsoleDoor } from "#wire/pages/console.ts";
import { createDocsDoor } from "#wire/pages/docs.ts";
import { type Place, servedPlaces } from "#wire/pages/nothing-at.ts";
import type { createHooks, createMcp, createOps, createRest, createRpc } from "./surfaces.ts";

/** The build, seen from the sources, from `dist/main.js`, and from a chunk in `dist/chunks/`. */
const BUILD = import.meta.url.endsWith(".ts") ? "../../dist/" : import.meta.url.includes("/chunks/") ? "../" : "./";

/** The folder of the build that contains the pages. */
function builtFolder(name: string): string {
  return fileURLToPath(new URL(BUILD + name, import.meta.url));
}

/** The surfaces of the gateway, whether or not a listener serves them. */
type Surfaces = {
  rest: ReturnType<typeof createRest>;
  mcp: ReturnType<typeof createMcp>;
  rpc: ReturnType<typeof createRpc>;
  hooks: ReturnType<typeof createHooks>;
  ops: ReturnType<typeof createOps>;
};
type DoorsBySurface = Record<SurfaceName, readonly DoorAt[]>;

/** The doors of each surface that a listener can serve. */
export function doorsBySurface({ rest, mcp, rpc, hooks, ops }: Surfaces): DoorsBySurface {
  return {
    rest: [
      { prefix: "/api/v1/console/codes/redeem", door: rest.redeem, exact: true },
      { prefix: "/api/v1/identity", door: rest.identity, exact: true },
      { prefix: "/api/v1", door: rest.door },
    ],
    rpc: [rpc.socket.door, rpc.http],
    webhooks: [hooks.door],
    docs: [
      { prefix: "/openapi.json", door: ops.openapi, exact: true },
      { prefix: "/openrpc.json", door: ops.openrpc, exact: true },
      { prefix: "/docs", door: createDocsDoor(builtFolder("docs"), mcp.at) },
    ],
    metrics: [{ prefix: "/metrics", door: ops.metrics, exact: true }],
    console: [{ prefix: "/console", door: createConsoleDoor(builtFolder("console")) }],
  };
}

/** One listener, as the configuration has it now. */
export type OpenListener = {
  surfaces: SurfaceName[];
  places: Place[];
  doors: DoorAt[];
  hsts: boolean;
  origins: Origins;
};

/** A listener with the doors that the configuration gives it. */
export function openListener(
  config: Config,
  { host, tls, surfaces: wanted }: Listener,
  { rest, mcp, ops }: Pick<Surfaces, "rest" | "mcp" | "ops">,
  bySurface: DoorsBySurface,
): OpenListener {
  const surfaces = wanted.filter((surface) => isOn(config, surface));
  const withRest = servedWithRest(config, surfaces);
  const openAi = withRest.includes("openai") ? rest.openAi.open : rest.openAi.closed;
  const index = ops.index({ surfaces: [...surfaces, ...withRest], webhookPath: config.webhooks.path });
  return {
    surfaces,
    places: placesIn(config, surfaces),
    doors: [
      ...openAi.filter(isBelowRest),
      ...(surfaces.includes("rest") && !hasConsole(config) ? [withoutConsole(config)] : []),
      ...surfaces.flatMap((surface) => bySurface[surface]),
      // The path of webhooks may be one of these.
      ...openAi.filter((door) => !isBelowRest(door)),
      withRest.includes("mcp") ? mcp.open : mcp.closed,
      { prefix: "/", door: index, exact: true },
      { prefix: "/healthz", door: ops.healthz, exact: true },
      { prefix: "/readyz", door: ops.readyz, exact: true },
    ],
    hsts: tls?.hsts === true,
    origins: createOrigins(config.gateway.allowedOrigins, { loopback: isLoopback(host), tls: tls !== undefined }),
  };
}

/** The surfaces that a listener serves in addition to REST, because they use REST's keys. */
export function servedWithRest({ gateway }: Config, surfaces: readonly string[]): ("openai" | "mcp")[] {
  return surfaces.includes("rest") ? (["openai", "mcp"] as const).filter((surface) => gateway[surface].enabled) : [];
}

/** Without a listener for the console, sign-in codes are of no use. */
function withoutConsole(config: Config): DoorAt {
  return {
    prefix: "/api/v1/console",
    door() {
      throw new GatewayError("not-found", `There is nothing below /api/v1/console: ${whyClosed(config, "console")}.`);
    },
  };
}

/** The surfaces that answer 404, and why. */
export function closedSurfaces(config: Config): { surface: SurfaceName; reason: string }[] {
  return (["rest", "rpc", "webhooks", "console"] as const)
    .filter((surface) => !isOn(config, surface))
    .map((surface) => ({ surface, reason: `it has no secret (${SECRET_OF[surface]}), or its enabled is false` }));
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

/** The key of the configuration with the secret that opens a surface. */
const SECRET_OF = {
  rest: "gateway.rest.auth.keys",
  rpc: "gateway.rpc.auth.tokens",
  webhooks: "webhooks.token",
  console: "gateway.console.token",
} as const;

/** The reason why a listener serves nothing below a surface's prefix. */
function whyClosed(config: Config, surface: SurfaceName): string {
  if (isOn(config, surface)) return `\`${surface}\` is not among the \`surfaces\` of this listener (gateway.listeners)`;
  const opening = surface === "metrics" ? "rpc" : (surface as keyof typeof SECRET_OF);
  const key = opening === "webhooks" ? "webhooks" : `gateway.${opening}`;
  return `\`${surface}\` is off. A secret in ${SECRET_OF[opening]} opens it, unless ${key}.enabled is false`;
}

/** The places of a listener with these open surfaces, for the error for an unknown path. */
function placesIn(config: Config, surfaces: readonly SurfaceName[]): Place[] {
  const open = ["always", ...surfaces, ...servedWithRest(config, surfaces)];
  return servedPlaces(config.webhooks.path).map(({ surface, prefix, paths }) => {
    if (open.includes(surface)) return { prefix, paths, closed: undefined };
    // The door that replaces a closed one explains this in its answer.
    const explains = surface === "openai" || surface === "mcp";
    return { prefix, paths: [], closed: explains ? undefined : whyClosed(config, surface as SurfaceName) };
  });
}

function isBelowRest({ prefix }: DoorAt): boolean {
  return prefix.startsWith("/api/v1/");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}
