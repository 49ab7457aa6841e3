import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** So many requests of a connection are answered at once, beside the one whose turn it is. */
const AT_ONCE = 3;
/** A connection that has more requests waiting than any client sends ahead is cut. */
const LONGEST = 256;

type Asked = { req: IncomingMessage; res: ServerResponse };
type Line = { begun: number; waiting: Asked[] };

/**
 * Begins requests that were sent ahead of their predecessors' answers only a few at a time. Node begins all that come in one read, and
 * holds their answers until it is their turn: 64 KiB of requests would cost hundreds of MiB of answers that nobody takes.
 */
export const createPipelined = (onRequest: RequestListener): RequestListener => {
  const lines = new WeakMap<Socket, Line>();

  const begin = (line: Line, { req, res }: Asked): void => {
    line.begun++;
    res.once("close", () => {
      line.begun--;
      const next = line.waiting.shift();
      if (next && !next.req.destroyed) begin(line, next);
    });
    onRequest(req, res);
  };

  return (req, res) => {
    // It is its turn, as it always is where nobody sends ahead.
    if (res.socket !== null) return onRequest(req, res);
    const { socket } = req;
    let line = lines.get(socket);
    if (!line) {
      line = { begun: 0, waiting: [] };
      lines.set(socket, line);
    }
    if (line.begun < AT_ONCE) begin(line, { req, res });
    else if (line.waiting.push({ req, res }) > LONGEST) socket.destroy();
  };
};
