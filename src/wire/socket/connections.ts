import type { Clock } from "#kit/clock.ts";
import { CLOSE, type Connection } from "./connection.ts";

export type SocketTimes = {
  /** The time between two pings of a connection; 30 s by default. */
  pingMs?: number | undefined;
  /** The time that something may be kept back from a connection before it is cut; 30 s by default. */
  stuckMs?: number | undefined;
};

const PING_MS = 30_000;
const STUCK_MS = 30_000;
/** The number of times that all connections are checked between two pings of one. */
const LOOKS = 30;
/** The time in which a connection must end after it was told to. */
const CLOSE_MS = 1_000;

/** All connections, with one timer for all of them. */
export const createConnections = (clock: Clock, { pingMs = PING_MS, stuckMs = STUCK_MS }: SocketTimes) => {
  const all = new Set<Connection>();
  const byNetwork = new Map<string, number>();
  let stopTimer: (() => void) | undefined;
  let whenNone: (() => void) | undefined;
  let hint: (() => string) | undefined;

  const look = (): void => {
    stopTimer = all.size > 0 ? clock.after(pingMs / LOOKS, look) : undefined;
    const now = clock.monotonic();
    for (const connection of all) {
      if (connection.heldSince !== 0 && now - connection.heldSince >= stuckMs) connection.cut();
      if (now < connection.pingAt) continue;
      connection.pingAt = now + pingMs;
      connection.ping();
    }
  };
  const closeForRestart = (connection: Connection): void => connection.close(CLOSE.restart, hint?.() ?? "");

  return {
    count: () => all.size,
    countOf: (network: string): number => byNetwork.get(network) ?? 0,
    list: (): readonly Connection[] => [...all],

    add(connection: Connection): void {
      const { network } = connection.origin;
      all.add(connection);
      byNetwork.set(network, (byNetwork.get(network) ?? 0) + 1);
      // Ten thousand that come at once are not pinged at once.
      connection.pingAt = clock.monotonic() + Math.random() * pingMs;
      stopTimer ??= clock.after(pingMs / LOOKS, look);
    },

    delete(connection: Connection): void {
      const { network } = connection.origin;
      all.delete(connection);
      const left = (byNetwork.get(network) ?? 1) - 1;
      if (left > 0) byNetwork.set(network, left);
      else byNetwork.delete(network);
      if (all.size === 0) whenNone?.();
    },

    /** The last call of a connection was answered. */
    idle(connection: Connection): void {
      if (hint) closeForRestart(connection);
    },

    /** Tells each that the gateway goes, when its calls are answered or after `ms`. Resolves when all have gone. */
    async closeAll(ms: number, reason: () => string): Promise<void> {
      hint = reason;
      for (const connection of all) if (connection.isIdle) closeForRestart(connection);
      if (all.size === 0) return;
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        clock.after(ms, () => {
          for (const connection of all) closeForRestart(connection);
          clock.after(CLOSE_MS, () => {
            for (const connection of all) connection.terminate();
          });
        });
      });
      stopTimer?.();
    },
  };
};
