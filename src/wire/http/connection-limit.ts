import { readdirSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import { networkOf, plain } from "#wire/call/address.ts";

type ConnectionLimitParts = {
  /** The number of connections that one address may hold, or one /64 of IPv6. */
  limit: () => number;
  /** A proxy of ours is not limited: many clients are behind it. */
  isProxy: (address: string) => boolean;
  events: Events;
  clock: Clock;
};

const REPORT_EVERY_MS = 10_000;

/** Counts the connections of each address, over all listeners and before anything is read. True if one more may stay. */
export function createConnectionLimit({ limit, isProxy, events, clock }: ConnectionLimitParts) {
  const held = new Map<string, number>();
  let reportedAt = -Infinity;

  const giveBack = (network: string): void => {
    const left = (held.get(network) ?? 0) - 1;
    if (left > 0) held.set(network, left);
    else held.delete(network);
  };
  const report = (address: string): void => {
    const logged = clock.monotonic() - reportedAt >= REPORT_EVERY_MS;
    if (logged) reportedAt = clock.monotonic();
    events.connectionRefused({ address, logged });
  };

  return (socket: Socket): boolean => {
    // The connection was closed before it was counted.
    if (socket.remoteAddress === undefined) return true;
    const address = plain(socket.remoteAddress);
    if (isProxy(address)) return true;
    const network = networkOf(address);
    const count = held.get(network) ?? 0;
    if (count >= limit()) {
      report(address);
      return false;
    }
    held.set(network, count + 1);
    socket.once("close", () => giveBack(network));
    return true;
  };
}

/** Kept free for files, the store's and the backends' connections. */
const RESERVE = 24;

/**
 * The number of connections that each listener can accept before the system has no descriptor left for anything else; undefined if the system does
 * not report it.
 */
export function connectionsThatFit(listeners: number): number | undefined {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    if (limit === undefined) return undefined;
    const free = Number(limit) - readdirSync("/proc/self/fd").length - RESERVE;
    return Math.max(1, Math.floor(free / listeners));
  } catch {
    return undefined;
  }
}
