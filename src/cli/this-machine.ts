import { BlockList, isIPv4, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * Whether an address is one of this machine: loopback, an interface's, the wildcard, or `localhost`. Any other name is not, whatever it
 * resolves to: its owner can change that at any moment.
 */
export function isOfThisMachine(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  if (!isIPv4(host) && !isIPv6(host)) return false;
  const own = new BlockList();
  own.addSubnet("127.0.0.0", 8, "ipv4");
  own.addAddress("0.0.0.0", "ipv4");
  own.addAddress("::1", "ipv6");
  own.addAddress("::", "ipv6");
  for (const { address, family } of Object.values(networkInterfaces()).flatMap((found) => found ?? []))
    own.addAddress(address.replace(/%.*/, ""), family === "IPv4" ? "ipv4" : "ipv6");
  return !host.includes("%") && own.check(host, isIPv4(host) ? "ipv4" : "ipv6");
}
