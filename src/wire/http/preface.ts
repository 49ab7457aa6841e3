import type { Socket } from "node:net";

/** The first bytes of an HTTP/2 client. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

type Takers = {
  http1: (socket: Socket) => void;
  /** Gets the socket paused, and the bytes that were read from it. */
  http2: (socket: Socket, read: Buffer) => void;
};

/** Tells HTTP/1.1 from HTTP/2 in clear text by the first bytes of a connection. Costs a connection something, a request nothing. */
export function createPrefaceReader({ http1, http2 }: Takers) {
  const waiting = new Map<Socket, number>();

  const read = (socket: Socket): void => {
    let seen: Buffer | undefined;
    const onData = (part: Buffer) => {
      seen = seen ? Buffer.concat([seen, part]) : part;
      const isHttp2 = startsAlike(seen);
      if (isHttp2 && seen.length < PREFACE.length) return;
      release();
      if (isHttp2) {
        socket.pause();
        http2(socket, seen);
      } else {
        http1(socket);
        // The parser reads the socket now, and gets the bytes that were read before.
        socket.unshift(seen);
      }
    };
    const give = () => socket.destroy();
    const release = () => {
      waiting.delete(socket);
      socket.off("data", onData).off("end", give).off("error", give).off("close", release);
    };
    waiting.set(socket, performance.now());
    socket.on("data", onData).on("end", give).on("error", give).on("close", release);
  };

  return {
    read,
    /** Ends the connections that opened before `before` and have sent nothing yet, or too little. */
    endWaiting(before: number): void {
      for (const [socket, since] of waiting) {
        if (since > before) break;
        socket.destroy();
      }
    },
  };
}

function startsAlike(seen: Buffer): boolean {
  const length = Math.min(seen.length, PREFACE.length);
  return PREFACE.compare(seen, 0, length, 0, length) === 0;
}
