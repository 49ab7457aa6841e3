import type { IncomingMessage } from "node:http";
import { BlockList, isIP, SocketAddress } from "node:net";
import { GatewayError } from "#kit/errors.ts";

/** A set of addresses and networks (`10.0.0.0/8`, `::1`). */
export function createNetworks(networks: readonly string[]) {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address: string): boolean =>
    networks.length > 0 && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

export type Peer = {
  /** The address of the client: the last hop that is not a trusted proxy. `unknown` if that hop is not an address; it is in no network. */
  address: string;
  /** The network that the client is counted by (`networkOf`). A client without an address counts as the proxy in front of it. */
  network: string;
  /** True if no third party could read the token on its way: TLS, this machine, or a network that the configuration trusts. */
  safe: boolean;
  /** It arrived over TLS, at the gateway or at a trusted proxy. */
  tls: boolean;
};

const UNKNOWN = "unknown";

function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

/** An IPv4 address on an IPv6 socket, in its own form. */
export function plain(address: string): string {
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** Clients are counted by their IPv4 address, or by the /64 of their IPv6 address: one client can use every address of a /64. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [before = [], after = []] = address.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const groups = [...before, ...Array(GROUPS - before.length - after.length).fill("0"), ...after];
  return `${groups.slice(0, NETWORK_GROUPS).join(":")}::/64`;
}

/** Any IPv6 address may be in brackets; only there can a port follow it. */
const BRACKETED = /^\[([^\]]*:[^\]]*)\](?::\d{1,5})?$/;
const WITH_PORT = /^([\d.]+):\d{1,5}$/;

/** The address in a hop of X-Forwarded-For: bare, with a port, in brackets, in quotes. */
function addressIn(hop: string): string {
  const unquoted = hop.trim().replace(/^"(.*)"$/, "$1");
  const address = (BRACKETED.exec(unquoted) ?? WITH_PORT.exec(unquoted))?.[1] ?? unquoted;
  const version = isIP(address);
  if (version === 0) return UNKNOWN;
  // One address can be written in many ways in IPv6.
  return version === 4 ? address : plain(new SocketAddress({ address, family: "ipv6" }).address);
}

/** Finds the origin of a request, as far as the proxies in front can be believed. */
export function createPeerOf(settings: { trustedProxies: readonly string[]; clearTextFrom: readonly string[] }) {
  const isProxy = createNetworks(settings.trustedProxies);
  const isTrustedNetwork = createNetworks(settings.clearTextFrom);

  /** Reads the hops from the right, up to the first that is not a trusted proxy. The client can write everything to the left of it. */
  const addressBehind = (proxy: string, forwarded: string | undefined): string => {
    const hops = forwarded === undefined ? [] : forwarded.split(",");
    let address = proxy;
    while (hops.length > 0 && isProxy(address)) address = addressIn(hops.pop() as string);
    return address;
  };

  return ({ socket, headers }: IncomingMessage): Peer => {
    const remote = plain(socket.remoteAddress ?? "");
    const isForwarded = isProxy(remote);
    const address = isForwarded ? addressBehind(remote, headers["x-forwarded-for"] as string | undefined) : remote;
    const tls = isForwarded ? lastOf(headers["x-forwarded-proto"]) === "https" : "encrypted" in socket;
    return {
      address,
      network: networkOf(address === UNKNOWN ? remote : address),
      safe: tls || isLoopback(address) || isTrustedNetwork(address),
      tls,
    };
  };
}

function lastOf(list: string | string[] | undefined): string | undefined {
  return String(list ?? "")
    .split(",")
    .at(-1)
    ?.trim();
}

/** Refuses a request that would show its token on the way. */
export function requireTls({ safe }: Peer): void {
  if (safe) return;
  const ways = "name the network in gateway.clearTextFrom, or the proxy that ends TLS in gateway.trustedProxies";
  throw new GatewayError(
    "tls-required",
    `The token was sent in clear text from another machine. Use TLS (https), or ${ways}.`,
  );
}
