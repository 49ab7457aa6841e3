import { type LookupAddress, lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

type Answer = Parameters<LookupFunction>[2];

/** Where machines of a cloud are told their secrets: no name leads there, else a changed name could send a client there. */
const linkLocal = new BlockList();
linkLocal.addSubnet("169.254.0.0", 16, "ipv4");
linkLocal.addSubnet("fe80::", 10, "ipv6");

const isLinkLocal = (address: string): boolean => linkLocal.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

export const LINK_LOCAL = "ERR_LINK_LOCAL";
export const LINK_LOCAL_WORDS =
  "its host name leads to a link-local address, which is refused: write the address itself if that is meant";

/**
 * Looks host names up, one at a time for each name: a look-up cannot be stopped and has few threads to run on, so that one name which
 * nobody answers for would hold up all others. A link-local address is no answer; whoever writes one as an address asks for no look-up.
 */
export const createLookup = (resolve: typeof lookup = lookup): LookupFunction => {
  const waiting = new Map<string, Answer[]>();
  return (host, options, answer) => {
    const key = `${options.family ?? 0} ${options.all === true} ${host}`;
    const others = waiting.get(key);
    if (others) {
      others.push(answer);
      return;
    }
    const all = [answer];
    waiting.set(key, all);
    const tell = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => {
      waiting.delete(key);
      const found = Array.isArray(address) ? address.filter((one) => !isLinkLocal(one.address)) : address;
      const isRefused = error === null && (typeof found === "string" ? isLinkLocal(found) : found.length === 0);
      const failure = isRefused ? Object.assign(new Error(LINK_LOCAL_WORDS), { code: LINK_LOCAL }) : error;
      for (const each of all) each(failure, isRefused ? "" : found, family);
    };
    resolve(host, options, tell);
  };
};
