import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { GatewayError } from "#core/errors.ts";

/** A set of addresses and networks (`10.0.0.0/8`, `::1`). */
export const createNetworks = (networks: readonly string[]) => {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address: string): boolean =>
    networks.length > 0 && list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
};

export type Peer = {
  /** Who sent it: the last hop that is no proxy of ours. */
  address: string;
  /** Nobody on the way could read the token: TLS, this machine, or a network that the configuration trusts. */
  safe: boolean;
  /** It came over TLS, to us or to a proxy of ours. */
  tls: boolean;
};

const isLoopback = (address: string): boolean => address.startsWith("127.") || address === "::1";

/** An IPv4 address that came in through an IPv6 socket, as itself. */
export const plain = (address: string): string => (address.startsWith("::ffff:") ? address.slice(7) : address);

/** Tells where a request comes from, as far as the proxies in front can be believed. */
export const createPeerOf = (settings: { trustedProxies: readonly string[]; clearTextFrom: readonly string[] }) => {
  const isProxy = createNetworks(settings.trustedProxies);
  const isTrustedNetwork = createNetworks(settings.clearTextFrom);
  return (req: IncomingMessage): Peer => {
    const remote = plain(req.socket.remoteAddress ?? "");
    const encrypted = "encrypted" in req.socket;
    if (!isProxy(remote)) {
      return { address: remote, safe: encrypted || isLoopback(remote) || isTrustedNetwork(remote), tls: encrypted };
    }
    const hops = String(req.headers["x-forwarded-for"] ?? "").split(",");
    const address =
      hops
        .reverse()
        .map((hop) => plain(hop.trim()))
        .find((hop) => isIP(hop) !== 0 && !isProxy(hop)) ?? remote;
    const proto = String(req.headers["x-forwarded-proto"] ?? "")
      .split(",")
      .at(-1)
      ?.trim();
    const tls = proto === "https";
    return { address, safe: tls || isLoopback(address) || isTrustedNetwork(address), tls };
  };
};

/** Refuses a request that would show its token on the way. */
export const requireTls = ({ safe }: Peer): void => {
  if (!safe) throw new GatewayError("tls-required", "Tokens are taken over TLS, or from this machine.");
};
