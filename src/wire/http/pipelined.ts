import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The number of requests of a connection that are answered at once, beside the one whose turn it is. */
const AT_ONCE = 3;
/** A connection that has more requests waiting than any client sends ahead is cut. */
const LONGEST = 256;

type Asked = { req: IncomingMessage; res: ServerResponse };

/** The requests of one connection of HTTP/1.1 that are not answered yet. */
type Line = {
  /** The answers that are not out yet, in the order of their requests. An answer that is out is removed with the next look. */
  answers: ServerResponse[];
  lastRequest: IncomingMessage;
  /** The number of requests that were sent ahead and have begun. */
  begun: number;
  waiting: Asked[];
};

const lines = new WeakMap<Socket, Line>();

/** The answer whose turn it is on this connection; undefined where all are out. */
export const answeringOn = (socket: Socket): ServerResponse | undefined => {
  const answers = lines.get(socket)?.answers ?? [];
  while (answers[0]?.writableFinished || answers[0]?.destroyed) answers.shift();
  return answers[0];
};

/** The request that came last on this connection. */
export const lastRequestOn = (socket: Socket): IncomingMessage | undefined => lines.get(socket)?.lastRequest;

/** Goes on after the answers to all earlier requests of this connection; not at all if the connection ends with them. */
export const afterAnswers = (socket: Socket, goOn: () => void): void => {
  const last = lines.get(socket)?.answers.at(-1);
  if (!last || last.closed) return void goOn();
  socket.on("error", () => {});
  // Node has let go of the connection, and would never tell an answer that waits for room to go on.
  socket.on("drain", cutBlocked);
  last.once("close", () => {
    socket.off("drain", cutBlocked);
    if (socket.writable) goOn();
  });
};

function cutBlocked(this: Socket): void {
  if (answeringOn(this)?.writableNeedDrain) this.destroy();
}

/**
 * Begins requests that were sent ahead of their predecessors' answers only a few at a time. Node begins all that come in one read, and
 * holds their answers until it is their turn: 64 KiB of requests would cost hundreds of MiB of answers that nobody takes.
 */
export const createPipelined = (onRequest: RequestListener): RequestListener => {
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
    const { socket } = req;
    const line = lineOf(socket, req);
    const isItsTurn = answeringOn(socket) === undefined;
    line.answers.push(res);
    if (isItsTurn) onRequest(req, res);
    else if (line.begun < AT_ONCE) begin(line, { req, res });
    else if (line.waiting.push({ req, res }) > LONGEST) socket.destroy();
  };
};

const lineOf = (socket: Socket, lastRequest: IncomingMessage): Line => {
  let line = lines.get(socket);
  if (line) line.lastRequest = lastRequest;
  else {
    line = { answers: [], lastRequest, begun: 0, waiting: [] };
    lines.set(socket, line);
  }
  return line;
};
