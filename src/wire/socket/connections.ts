import type { Clock } from "#kit/clock.ts";
import { CLOSE, type Connection } from "./connection.ts";

export type SocketTimes = {
  /** Between two pings of a connection; 30 s unless told. */
  pingMs?: number | undefined;
  /** How long a connection may be kept from what it is to be told; 30 s unless told. */
  stuckMs?: number | undefined;
};

const PING_MS = 30_000;
const STUCK_MS = 30_000;
/** Pings go in so many parts, so that ten thousand of them do not come at once. */
const SLOTS = 30;
/** How long a connection has to end after it was told to. */
const CLOSE_MS = 1_000;

/** All connections, with one timer for the pings of all of them. */
export const createConnections = (clock: Clock, { pingMs = PING_MS, stuckMs = STUCK_MS }: SocketTimes) => {
  const slots = Array.from({ length: SLOTS }, () => new Set<Connection>());
  const slotOf = new WeakMap<Connection, Set<Connection>>();
  const held = new Set<Connection>();
  let count = 0;
  let slot = 0;
  let stopTimer: (() => void) | undefined;
  let whenNone: (() => void) | undefined;
  let hint: (() => string) | undefined;

  const tick = (): void => {
    stopTimer = count > 0 ? clock.after(pingMs / SLOTS, tick) : undefined;
    slot = (slot + 1) % SLOTS;
    for (const connection of slots[slot] ?? []) connection.ping();
    const now = clock.monotonic();
    for (const connection of held) {
      if (connection.heldSince === 0 || !connection.isOpen) held.delete(connection);
      else if (now - connection.heldSince >= stuckMs) connection.cut();
    }
  };
  const closeForRestart = (connection: Connection): void => connection.close(CLOSE.restart, hint?.() ?? "");

  return {
    count: () => count,
    *[Symbol.iterator](): Iterator<Connection> {
      for (const slot of slots) yield* slot;
    },

    add(connection: Connection): void {
      const own = slots[count % SLOTS] as Set<Connection>;
      own.add(connection);
      slotOf.set(connection, own);
      count++;
      stopTimer ??= clock.after(pingMs / SLOTS, tick);
    },

    delete(connection: Connection): void {
      if (slotOf.get(connection)?.delete(connection) !== true) return;
      held.delete(connection);
      count--;
      if (count === 0) whenNone?.();
    },

    hold(connection: Connection): void {
      held.add(connection);
    },

    /** The last call of a connection was answered. */
    idle(connection: Connection): void {
      if (hint) closeForRestart(connection);
    },

    /** Tells each that the gateway goes, when its calls are answered or after `ms`. Resolves when all have gone. */
    async closeAll(ms: number, reason: () => string): Promise<void> {
      hint = reason;
      for (const connection of this) if (connection.isIdle) closeForRestart(connection);
      if (count === 0) return;
      await new Promise<void>((resolve) => {
        whenNone = resolve;
        const end = () => {
          for (const connection of this) connection.terminate();
        };
        const closeRest = () => {
          for (const connection of this) closeForRestart(connection);
          clock.after(CLOSE_MS, end);
        };
        clock.after(ms, closeRest);
      });
      stopTimer?.();
    },
  };
};

export type Connections = ReturnType<typeof createConnections>;
