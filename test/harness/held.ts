import { channel } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { onTestFinished } from "vitest";

/** The gateway's ends of all connections from now on. */
export function watchAccepted(): Socket[] {
  const accepted: Socket[] = [];
  const note = (message: unknown) => accepted.push((message as { socket: Socket }).socket);
  channel("net.server.socket").subscribe(note);
  onTestFinished(() => void channel("net.server.socket").unsubscribe(note));
  return accepted;
}
/**
 * Checks at each call how many bytes wait for each connection. Returns the number of connections that ever had waiting bytes, and the largest number
 * of bytes.
 */
export function watchHeld(sockets: readonly Socket[]) {
  const held = new Set<Socket>();
  let most = 0;
  return () => {
    for (const socket of sockets) {
      if (socket.writableLength > 0) held.add(socket);
      most = Math.max(most, socket.writableLength);
    }
    return { held: held.size, most };
  };
}
