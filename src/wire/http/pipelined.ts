import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** So many requests of a connection are answered at once, beside the one whose turn it is. */
const AT_ONCE = 3;
/** A connection that has more requests waiting than any client sends ahead is cut. */
const LONGEST = 256;

/** The answer to the last request that came on a connection. */
const lastAnswers = new WeakMap<Socket, ServerResponse>();

type Blocked = Socket & { _httpMessage?: ServerResponse | null };

/** Goes on once all that was asked before on this connection is answered; not at all when the connection ends with that. */
export const afterAnswers = (socket: Socket, goOn: () => void): void => {
  const last = lastAnswers.get(socket);
  if (!last || last.closed) return void goOn();
  socket.on("error", () => {});
  // Node has let go of the connection, and would never tell an answer that waits for room to go on.
  socket.on("drain", cutBlocked);
  last.once("close", () => {
    socket.off("drain", cutBlocked);
    if (socket.writable) goOn();
  });
};

function cutBlocked(this: Blocked): void {
  if (this._httpMessage?.writableNeedDrain) this.destroy();
}

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
    lastAnswers.set(req.socket, res);
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
