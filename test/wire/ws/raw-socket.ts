import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";

/** The headers of an upgrade request; an undefined header is omitted. */
export type Upgrade = { path?: string; headers?: Record<string, string | undefined>; method?: string };

type UpgradeAnswer = {
  status: number;
  headers: Record<string, string>;
  body: string;
  socket: Socket;
  rest: Buffer;
};

const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

/** Requests an upgrade, byte by byte, and reads the complete answer. */
export function upgrade(
  url: string,
  { path = "/rpc/ws", headers = {}, method = "GET" }: Upgrade = {},
): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    const all = {
      host,
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": KEY,
      ...headers,
    };
    const lines = Object.entries(all).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}: ${value}\r\n`],
    );
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
    let read = Buffer.alloc(0);
    const look = () => {
      const end = read.indexOf("\r\n\r\n");
      if (end < 0) return;
      const [line = "", ...fields] = read.subarray(0, end).toString("latin1").split("\r\n");
      const found = Object.fromEntries(
        fields.map((field) => [
          field.slice(0, field.indexOf(":")).toLowerCase(),
          field.slice(field.indexOf(":") + 1).trim(),
        ]),
      );
      const rest = read.subarray(end + 4);
      if (rest.length < Number(found["content-length"] ?? 0)) return;
      socket.off("data", onData);
      socket.pause();
      resolve({ status: Number(line.split(" ")[1]), headers: found, body: rest.toString(), socket, rest });
    };
    const onData = (data: Buffer) => {
      read = Buffer.concat([read, data]);
      look();
    };
    socket.on("data", onData);
    socket.on("error", reject);
  });
}

type FrameOptions = { opcode?: number; fin?: boolean; rsv?: number; mask?: boolean; length?: number };

/** A client's frame, as invalid as a test needs it. */
export function clientFrame(
  payload: string | Buffer,
  { opcode = 1, fin = true, rsv = 0, mask = true, length }: FrameOptions = {},
): Buffer {
  const data = Buffer.from(payload as Buffer);
  const said = length ?? data.length;
  const first = (fin ? 0x80 : 0) | rsv | opcode;
  const bit = mask ? 0x80 : 0;
  const head =
    said <= 125
      ? Buffer.from([first, bit | said])
      : said <= 65_535
        ? Buffer.from([first, bit | 126, said >> 8, said & 255])
        : Buffer.concat([Buffer.from([first, bit | 127]), bigEndian(said)]);
  if (!mask) return Buffer.concat([head, data]);
  const key = randomBytes(4);
  return Buffer.concat([head, key, data.map((byte, n) => byte ^ (key[n & 3] as number))]);
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** The code of the close frame, after any other frames; undefined if the connection ends without one. */
export function closeCode(socket: Socket, rest: Buffer = Buffer.alloc(0)): Promise<number | undefined> {
  return new Promise((resolve) => {
    let read = rest;
    const look = () => {
      for (;;) {
        if (read.length < 2) return;
        const short = (read[1] as number) & 127;
        const head = short === 126 ? 4 : short === 127 ? 10 : 2;
        const length = short === 126 ? read.readUInt16BE(2) : short === 127 ? Number(read.readBigUInt64BE(2)) : short;
        if (read.length < head + length) return;
        if (((read[0] as number) & 15) === 8) resolve(read.readUInt16BE(head));
        read = read.subarray(head + length);
      }
    };
    socket.on("data", (data) => {
      read = Buffer.concat([read, data]);
      look();
    });
    socket.on("end", () => resolve(undefined));
    socket.on("error", () => resolve(undefined));
    socket.on("close", () => resolve(undefined));
    socket.resume();
    look();
  });
}
