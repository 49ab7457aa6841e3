import { type LookupAddress, lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

type Answer = Parameters<LookupFunction>[2];

/** The addresses at which clouds serve their machines' secrets. A changed host name must not lead there. */
const refused = new BlockList();
refused.addSubnet("169.254.0.0", 16, "ipv4");
refused.addSubnet("fe80::", 10, "ipv6");
/** Alibaba, AWS and Google serve them at these, too. */
refused.addAddress("100.100.100.200", "ipv4");
refused.addSubnet("fd00:ec2::", 32, "ipv6");
refused.addAddress("fd20:ce::254", "ipv6");

function isRefusedAddress(address: string): boolean {
  return refused.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

export const METADATA = "ERR_METADATA_ADDRESS";
export const METADATA_WORDS =
  "its host name leads to a link-local address or to a cloud's metadata address, which is refused: write the address itself if you mean it";

/**
 * Looks up host names, one look-up at a time for each name: a look-up cannot be cancelled and uses one of few threads, so a name that no
 * server answers would block all others. A refused address is not an answer. A literal address needs no look-up and is not refused.
 */
export function createLookup(resolve: typeof lookup = lookup): LookupFunction {
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
      const found = Array.isArray(address) ? address.filter((one) => !isRefusedAddress(one.address)) : address;
      const isRefused = error === null && (typeof found === "string" ? isRefusedAddress(found) : found.length === 0);
      const failure = isRefused ? Object.assign(new Error(METADATA_WORDS), { code: METADATA }) : error;
      for (const each of all) each(failure, isRefused ? "" : found, family);
    };
    resolve(host, options, tell);
  };
}
