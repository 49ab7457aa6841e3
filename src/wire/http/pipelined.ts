import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The most requests of a connection without an answer: the one that runs, and those that were sent ahead. */
export const MOST_AHEAD = 256;

type Exchange = { req: IncomingMessage; res: ServerResponse };

/** The requests of each connection of HTTP/1.1, in their order: the first was started, the others wait for its answer. */
const lines = new WeakMap<Socket, Exchange[]>();
/** The connections on which a request was refused because too many were sent ahead. */
const full = new WeakSet<Socket>();

function isOpen({ res }: Exchange): boolean {
  return !res.writableFinished && !res.destroyed;
}

/** The answer that this connection sends now; undefined if all answers were sent. */
export function answeringOn(socket: Socket): ServerResponse | undefined {
  return lines.get(socket)?.find(isOpen)?.res;
}

/** The latest request of this connection. */
export function lastRequestOn(socket: Socket): IncomingMessage | undefined {
  return lines.get(socket)?.at(-1)?.req;
}

/** Calls `callback` after the answers to all earlier requests of this connection, unless the connection ends with them. */
export function afterAnswers(socket: Socket, callback: () => void): void {
  const last = lines.get(socket)?.at(-1)?.res;
  if (!last || last.closed) return void callback();
  socket.on("error", () => {});
  // Node has released the connection, and would never report to a blocked answer that it can continue.
  socket.on("drain", cutBlocked);
  last.once("close", () => {
    socket.off("drain", cutBlocked);
    if (socket.writable && !full.has(socket)) callback();
  });
}

function cutBlocked(this: Socket): void {
  if (answeringOn(this)?.writableNeedDrain) this.destroy();
}

/**
 * Starts a pipelined request only after the answer to the request before it. Node starts all requests of one read, and holds their answers
 * until it is their turn: a client could otherwise fill the memory with answers. A request is not started if its answer could not be sent, because
 * the client or an earlier answer has ended the connection.
 */
export function createPipelined(onRequest: RequestListener, refuseMore: (socket: Socket) => void): RequestListener {
  return (req, res) => {
    const { socket } = req;
    if (!socket.writable) return;
    const line = lines.get(socket);
    if (!line?.some(isOpen)) {
      lines.set(socket, [{ req, res }]);
      onRequest(req, res);
      return;
    }
    if (line.length === MOST_AHEAD) {
      full.add(socket);
      refuseMore(socket);
      return;
    }
    line.push({ req, res });
    const next = (): void => {
      line.shift();
      const [first, second] = line;
      if (!first || !socket.writable) return;
      if (second) first.res.once("close", next);
      onRequest(first.req, first.res);
    };
    if (line.length === 2) line[0]?.res.once("close", next);
  };
}
