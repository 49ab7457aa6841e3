import type { WireCall } from "#wire/call/call.ts";

/** One address that the gateway listens on. */
type Place = { url: string; host: string; port: number; surfaces: readonly string[] };

/** A Host header that can stand in a URL: a name or an address, and perhaps a port. No user, no path, nothing to break a page with. */
const HOST = /^(?:[a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

type ServedRequest = Pick<WireCall, "peer"> & { req: Pick<WireCall["req"], "headers" | "socket"> };

/**
 * The address of a surface for a caller: the one that it used itself, because the configured one (0.0.0.0, behind a proxy, in a container) may be
 * useless for it. If that is unknown because the Host is malformed or foreign, the configured address.
 */
export function createServedAt({
  places,
  isOwnHost,
}: {
  places: () => readonly Place[];
  isOwnHost: (host: string, place: number) => boolean;
}) {
  return (asked: ServedRequest | undefined, surface: string): string => {
    const all = places();
    const place = all.find(({ surfaces }) => surfaces.includes(surface)) ?? all[0];
    if (asked === undefined) return place ? reachable(place) : "/";
    const { req, peer } = asked;
    const here = all.findIndex(({ port }) => port === req.socket.localPort);
    const { host = "" } = req.headers;
    const used = `${peer.tls ? "https" : "http"}://${host}`;
    const isGood = HOST.test(host) && URL.canParse(used) && isOwnHost(host, here);
    if (isGood && all[here]?.surfaces.includes(surface)) return used;
    if (place === undefined) return "/";
    // On another port, which no proxy's Host names: only a listener of all addresses can be reached by any name.
    return isGood && isAny(place.host) ? withHost(place.url, new URL(used).hostname) : reachable(place);
  };
}

/** Listens on every address of the machine, and names none that a caller could use. */
function isAny(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** An address of the listener that works on this machine at least. */
export function reachable({ url, host }: Pick<Place, "url" | "host">): string {
  return isAny(host) ? withHost(url, host === "::" ? "[::1]" : "127.0.0.1") : url;
}

function withHost(url: string, host: string): string {
  const { protocol, port } = new URL(url);
  return `${protocol}//${host}${port === "" ? "" : `:${port}`}`;
}
