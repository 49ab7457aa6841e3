import { isIP, isIPv4 } from "node:net";
import { type CheckedConfig, surfacesSecured } from "./config.ts";
import { type Findings, valueAt } from "./problems.ts";

/** The paths that are served in addition to the webhooks. */
const OTHER_PATHS = [
  "/api/v1",
  "/rpc",
  "/console",
  "/docs",
  "/openapi.json",
  "/openrpc.json",
  "/healthz",
  "/readyz",
  "/metrics",
];

/** Checks of addresses, paths and doors beyond the schema. `written` is the configuration before its defaults. */
export function checkDoors(config: CheckedConfig, written: unknown, { refuse, warn }: Findings): void {
  const { gateway, webhooks } = config;
  for (const [section, key, networks] of [
    ["gateway", "trustedProxies", gateway.trustedProxies],
    ["gateway", "clearTextFrom", gateway.clearTextFrom],
    ["webhooks", "allowedIps", webhooks.allowedIps ?? []],
  ] as const) {
    for (const [index, network] of networks.entries()) {
      if (!isNetwork(network))
        refuse([section, key, index], "must be an IP address or a network, for example `10.0.0.0/8` or `fd00::/8`.");
    }
  }
  for (const [index, origin] of gateway.allowedOrigins.entries()) {
    const message = "must be an origin, `https://host` or `https://host:port` with nothing after it.";
    if (!isOrigin(origin)) refuse(["gateway", "allowedOrigins", index], message);
  }

  const { path } = webhooks;
  const met = [
    ...OTHER_PATHS,
    ...(gateway.openai.enabled ? ["/v1"] : []),
    ...(gateway.mcp.enabled ? ["/mcp"] : []),
  ].find((other) => isUnder(path, other) || isUnder(other, path));
  if (met !== undefined)
    refuse(
      ["webhooks", "path"],
      `overlaps with \`${met}\`, which is taken: choose another path, for example \`/hooks\`.`,
    );
  if (/\/\.{1,2}(\/|$)/.test(path))
    refuse(["webhooks", "path"], "has `.` or `..` between its slashes, which no request has: remove it.");

  const listeners = gateway.listeners ?? [];
  for (const [index, { host, port }] of listeners.entries()) {
    const isTaken = listeners.slice(0, index).some((other) => other.host === host && other.port === port);
    if (port !== 0 && isTaken)
      refuse(["gateway", "listeners", index], "has the host and port of another listener: give it a port of its own.");
  }
  for (const key of ["host", "port"]) {
    const message = "is not read, because gateway.listeners says where to listen: remove one of them.";
    if (listeners.length > 0 && valueAt(written, ["gateway", key]) !== undefined)
      warn(["gateway", key], message, "key");
  }
}

/** Refuses a surface that is switched on without a secret. */
export function checkSurfaces(config: CheckedConfig, { refuse }: Findings): void {
  const { gateway, webhooks } = config;
  const secured = surfacesSecured(config);
  const refuseUnless = (good: boolean, enabled: boolean | undefined, path: string, hint: string) => {
    if (enabled && !good) refuse([...path.split("."), "enabled"], `is true, but ${hint}`);
  };
  const { rest, openai, mcp, rpc, console } = gateway;
  const noKey = "there is no key: add one to gateway.rest.auth.keys, or set gateway.console.token.";
  const restOff = "it uses the keys of REST, which is off: add one to gateway.rest.auth.keys.";
  refuseUnless(secured.rest, rest.enabled, "gateway.rest", noKey);
  refuseUnless(secured.rest && rest.enabled !== false, openai.enabled, "gateway.openai", restOff);
  refuseUnless(secured.rest && rest.enabled !== false, mcp.enabled, "gateway.mcp", restOff);
  refuseUnless(secured.rpc, rpc.enabled, "gateway.rpc", "there is no token: add one to gateway.rpc.auth.tokens.");
  const noToken = "there is no token: set gateway.console.token.";
  refuseUnless(secured.console, console.enabled, "gateway.console", noToken);
  const noSecret = "there is no secret: set webhooks.token, or `verify` of a mapping.";
  refuseUnless(secured.webhooks, webhooks.enabled, "webhooks", noSecret);
}

function isUnder(path: string, other: string): boolean {
  return path === other || path.startsWith(`${other}/`);
}

function isNetwork(text: string): boolean {
  const [address = "", bits, more] = text.split("/");
  if (isIP(address) === 0 || more !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv4(address) ? 32 : 128));
}

/** The origin of a page of an app or a browser extension, such as `app://chat` or `chrome-extension://<id>`. */
const APP_ORIGIN = /^(?!https?:|wss?:|ftp:|file:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+$/;

function isOrigin(text: string): boolean {
  return APP_ORIGIN.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

/** True if only this machine can reach the address. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}
