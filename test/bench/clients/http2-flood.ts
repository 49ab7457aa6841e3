import { connect } from "node:net";
import { agreed, FLAG, frame, PREFACE, requestBlock, reset, settings, TYPE } from "#test/harness/frames.ts";

// Floods a server over HTTP/2 without a token, from a separate address, until it is ended. It sends a message when it has started.

export type Flood = {
  url: string;
  connections: number;
  /** The number of extra pairs of each head. Each is one byte that refers to the connection's table. */
  pairs: number;
  /** The bytes per second over all connections; 0 is as fast as the server accepts connections. */
  rate: number;
  /** Every request is cancelled at once. */
  isReset: boolean;
};

const { url, connections, pairs, rate, isReset } = JSON.parse(process.argv[2] ?? "{}") as Flood;
const { hostname, port } = new URL(url);
/** More than any server accepts to be cancelled on one connection. */
const STREAMS_OF_A_RESET = 1_200;
const EVERY_MS = 20;
const ENDS = FLAG.endStream | FLAG.endHeaders;

const REQUEST = requestBlock("GET", "/healthz");
/** Adds one pair to the table, as its first dynamic entry. */
const FIRST = Buffer.concat([REQUEST, Buffer.from([0x40, 1, 120, 1, 121])]);
const HEAD = Buffer.concat([REQUEST, Buffer.alloc(pairs, 0x80 | 62)]);

function requestOf(n: number): Buffer {
  const stream = n * 2 + 1;
  const head = frame(TYPE.headers, ENDS, stream, n === 0 ? FIRST : HEAD);
  return isReset ? Buffer.concat([head, reset(stream)]) : head;
}

const RESETS = isReset ? Buffer.concat(Array.from({ length: STREAMS_OF_A_RESET }, (_, n) => requestOf(n))) : undefined;

/** Opens a connection, and another one as soon as it is closed. */
function flood(): void {
  const socket = connect({ host: hostname, port: Number(port), localAddress: "127.0.0.2", noDelay: true });
  let sent = 0;
  const send = () => {
    const parts: Buffer[] = [];
    for (let bytes = 0; bytes < (rate / connections) * (EVERY_MS / 1_000); sent++) {
      const part = requestOf(sent);
      parts.push(part);
      bytes += part.length;
    }
    if (!socket.writableNeedDrain) socket.write(Buffer.concat(parts));
  };
  let timer: NodeJS.Timeout | undefined;
  socket.on("connect", () => {
    socket.write(Buffer.concat([PREFACE, settings, agreed]));
    if (RESETS) socket.write(RESETS);
    else timer = setInterval(send, EVERY_MS);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(timer);
    setTimeout(flood, 1);
  });
  socket.resume();
}

for (let n = 0; n < connections; n++) flood();
process.on("disconnect", () => process.exit());
process.send?.("begun");
