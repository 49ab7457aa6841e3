import type { Socket } from "node:net";
import type { Clock } from "#kit/clock.ts";

type ResetLimitParts = {
  clock: Clock;
  /** The key that a connection is counted by: its network, or the connection itself. */
  keyOf: (socket: Socket) => string | Socket;
};

/** A client may reset 500 requests at once, and one more every 20 ms. */
const AT_ONCE = 500;
const EACH_MS = 20;
const LIMIT_MS = AT_ONCE * EACH_MS;
/** The longest that a client has to wait. */
const LONGEST_MS = 60_000;
/** The time between two removals of entries that have nothing left to count. */
const SWEEP_MS = 1_000;

/**
 * Counts the requests that each network cancels over HTTP/2, on all of its connections together: they cost their sender nothing, and a new connection
 * does not restart the count.
 */
export function createResetLimit({ clock, keyOf }: ResetLimitParts) {
  /** The time at which all resets of an address are forgotten. */
  const forgottenAt = new Map<string | Socket, number>();
  let sweptAt = clock.monotonic();

  const sweep = (now: number): void => {
    if (now - sweptAt < SWEEP_MS) return;
    sweptAt = now;
    for (const [key, at] of forgottenAt) if (at <= now) forgottenAt.delete(key);
  };
  const isOver = (at: number | undefined, now: number): boolean => at !== undefined && at - now > LIMIT_MS;

  return {
    /** Counts one reset. True if it is one too many. */
    count(socket: Socket): boolean {
      const key = keyOf(socket);
      const now = clock.monotonic();
      sweep(now);
      const at = Math.min(Math.max(now, forgottenAt.get(key) ?? now) + EACH_MS, now + LONGEST_MS);
      forgottenAt.set(key, at);
      return isOver(at, now);
    },
    /** True while the client has to wait. */
    isReached(socket: Socket): boolean {
      return isOver(forgottenAt.get(keyOf(socket)), clock.monotonic());
    },
    /** The number of addresses that are counted. */
    size: () => forgottenAt.size,
  };
}

export type ResetLimit = ReturnType<typeof createResetLimit>;
