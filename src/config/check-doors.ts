import { isIP, isIPv4 } from "node:net";
import type { CheckedConfig } from "./conform.ts";
import type { Findings } from "./problems.ts";

/** The paths that are served beside the webhooks. */
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

  for (const [key, networks] of Object.entries({
    "gateway.trustedProxies": gateway.trustedProxies,
    "gateway.clearTextFrom": gateway.clearTextFrom,
    "webhooks.allowedIps": webhooks.allowedIps ?? [],
  })) {
    networks.forEach((network, index) => {
      if (isNetwork(network)) return;
      refuse([...key.split("."), index], "must be an IP address or a network, for example `10.0.0.0/8` or `fd00::/8`.");
    });
  }
  gateway.allowedOrigins.forEach((origin, index) => {
    if (isOrigin(origin)) return;
    refuse(
      ["gateway", "allowedOrigins", index],
      "must be an origin, `https://host` or `https://host:port` with nothing after it.",
    );
  });

  const { path } = webhooks;
  const met = [...OTHER_PATHS, ...(gateway.openai.enabled ? ["/v1"] : [])].find(
    (other) => under(path, other) || under(other, path),
  );
  if (met !== undefined)
    refuse(
      ["webhooks", "path"],
      `overlaps with \`${met}\`, which is taken: choose another path, for example \`/hooks\`.`,
    );
  if (/\/\.{1,2}(\/|$)/.test(path))
    refuse(["webhooks", "path"], "has `.` or `..` between its slashes, which no request has: remove it.");

  const listeners = gateway.listeners ?? [];
  const addresses = listeners.map(({ host, port }) => `${host}:${port}`);
  listeners.forEach(({ port }, index) => {
    if (port === 0 || addresses.indexOf(addresses[index] as string) === index) return;
    refuse(["gateway", "listeners", index], "has the host and port of another listener: give it a port of its own.");
  });
  const alone = ["host", "port"].filter((key) => hasKey(written, ["gateway", key]));
  if (listeners.length > 0 && alone.length > 0) {
    const message = "is not read, because gateway.listeners says where to listen: remove one of them.";
    for (const key of alone) warn(["gateway", key], message, "key");
  }
}

/** Checks the addresses that announcements go to. They may be secret: none is repeated. */
export function checkChannels({ channels }: CheckedConfig, { refuse, warn }: Findings): void {
  for (const [name, { url: written }] of Object.entries(channels)) {
    const path = ["channels", name, "url"];
    const url = URL.canParse(written) ? new URL(written) : undefined;
    if (url === undefined) {
      refuse(path, "must be an address, for example `https://example.com/path`.");
    } else if (url.username !== "" || url.password !== "") {
      refuse(
        path,
        "has a user name or a password in it, which is not sent: remove it. A webhook is signed with `secret`.",
      );
    } else if (url.protocol === "http:" && !isLoopback(url.hostname)) {
      warn(path, "begins with `http:`, so replies go there in clear text: use `https:`.");
    }
  }
}

const under = (path: string, other: string): boolean => path === other || path.startsWith(`${other}/`);

function isNetwork(text: string): boolean {
  const [address = "", bits, more] = text.split("/");
  if (isIP(address) === 0 || more !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv4(address) ? 32 : 128));
}

/** The origin of a page that an app or a browser's extension brings along, as `app://chat` or `chrome-extension://<id>`. */
const APP_ORIGIN = /^(?!https?:|wss?:|ftp:|file:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+$/;

function isOrigin(text: string): boolean {
  return APP_ORIGIN.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

function hasKey(value: unknown, path: readonly string[]): boolean {
  let node = value;
  for (const step of path) {
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, step)) return false;
    node = (node as Record<string, unknown>)[step];
  }
  return true;
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}
