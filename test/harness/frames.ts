import { connect } from "node:net";

// HTTP/2 byte by byte, for requests that no client sends.

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const TYPE = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const FLAG = { none: 0, endStream: 1, ack: 1, endHeaders: 4 } as const;

export type Frame = { type: number; flags: number; stream: number; payload: Buffer };

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export const settings = frame(TYPE.settings, FLAG.none, 0);
/** Acknowledges our settings. */
export const agreed = frame(TYPE.settings, FLAG.ack, 0);
export function reset(stream: number, code = 8): Buffer {
  return frame(TYPE.reset, FLAG.none, stream, number(code));
}

/** A text in HPACK, without Huffman coding. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  const length = bytes.length < 127 ? [bytes.length] : [127];
  if (bytes.length >= 127) {
    let rest = bytes.length - 127;
    for (; rest >= 128; rest >>>= 7) length.push((rest % 128) + 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Headers as a block without a table. */
export function block(headers: Record<string, string> | readonly (readonly [string, string])[]): Buffer {
  const pairs = Array.isArray(headers) ? headers : Object.entries(headers);
  return Buffer.concat(pairs.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** The block of a request. */
export function requestBlock(method: string, path: string, headers: Record<string, string> = {}): Buffer {
  return block({ ":method": method, ":path": path, ":scheme": "http", ":authority": "localhost", ...headers });
}

/** A connection to which a test writes frames or other bytes. */
export async function openFrames(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true }).on("error", () => {});
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  const look = () => {
    for (const wake of waiting) wake();
  };
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (part) => {
    rest = Buffer.concat([rest, part]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const length = rest.readUIntBE(0, 3);
      const [type, flags] = [rest[3] as number, rest[4] as number];
      frames.push({ type, flags, stream: rest.readUInt32BE(5), payload: rest.subarray(9, 9 + length) });
      rest = rest.subarray(9 + length);
    }
    look();
  });
  const closed = new Promise<void>((resolve) =>
    socket.on("close", () => {
      resolve();
      look();
    }),
  );
  await new Promise<void>((resolve) => socket.once("connect", resolve).once("close", resolve));
  return {
    socket,
    /** All complete frames so far. */
    frames: frames as readonly Frame[],
    closed,
    write: (...bytes: Uint8Array[]) => void socket.write(Buffer.concat(bytes)),
    /** Resolves with the first matching frame; rejects if the connection ends without one. */
    until: (fits: (frame: Frame) => boolean): Promise<Frame> =>
      new Promise((resolve, reject) => {
        const wake = () => {
          const found = frames.find(fits);
          if (!found && !socket.closed) return;
          waiting.delete(wake);
          if (found) resolve(found);
          else reject(new Error(`the connection closed after frames of the types ${frames.map(({ type }) => type)}`));
        };
        waiting.add(wake);
        wake();
      }),
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await closed;
    },
  };
}
