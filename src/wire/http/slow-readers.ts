import type { Socket } from "node:net";

/** The bytes that a reader must take in each span of time, of the data that waits for it. */
export const LEAST_TAKEN = 16 * 1024;

/**
 * Closes the connections of HTTP/1.1 whose answers wait in our memory while their readers read almost nothing: Node would hold them forever. One that
 * reads very slowly is treated like one that does not read.
 */
export function createSlowReaders(stuckMs: number) {
  const open = new Set<Socket>();
  const behind = new Map<Socket, { taken: number; since: number }>();
  function forget(this: Socket): void {
    remove(this);
  }
  const remove = (socket: Socket): void => {
    open.delete(socket);
    behind.delete(socket);
  };
  return {
    add(socket: Socket): void {
      open.add(socket);
      socket.once("close", forget);
    },
    /** Another part owns the socket from here on. */
    remove(socket: Socket): void {
      remove(socket);
      socket.off("close", forget);
    },
    /** Must be called every second, because connections have no timers. */
    check(): void {
      const now = performance.now();
      for (const socket of open) {
        if (socket.writableLength === 0) {
          behind.delete(socket);
          continue;
        }
        const taken = takenFrom(socket);
        const last = behind.get(socket);
        if (!last || taken - last.taken >= LEAST_TAKEN) behind.set(socket, { taken, since: now });
        else if (now - last.since >= stuckMs) socket.destroy();
      }
    },
  };
}

type Handle = { bytesWritten: number; writeQueueSize: number; _parent?: Handle | null };

/**
 * The bytes that the system has accepted. Node also counts bytes as written that it has only offered to the system, and only its handle has the
 * difference. Tested with Node 20.20. `slow-readers.slow.test.ts` fails if a version of Node has no such counts.
 */
function takenFrom(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle: Handle | null };
  // TLS stands on the one that counts.
  const own = handle?._parent ?? handle;
  return own ? own.bytesWritten - own.writeQueueSize : 0;
}
