import type { Server, Socket } from "node:net";

/**
 * Removes Node's own listener for new connections and returns it: Node gives no other way to see a connection before its server does.
 * Tried with Node 20.20. Throws if a version of Node has another number of such listeners.
 */
export function takeOwnListener(server: Server, event: "connection" | "secureConnection"): (socket: Socket) => void {
  const [own, ...others] = server.listeners(event) as ((socket: Socket) => void)[];
  if (own === undefined || others.length > 0)
    throw new Error(
      `Node.js ${process.version} has ${own === undefined ? 0 : others.length + 1} listeners for \`${event}\`, and the gateway knows only servers with 1. Run a version that package.json names in engines.`,
    );
  server.removeAllListeners(event);
  return (socket) => own.call(server, socket);
}
