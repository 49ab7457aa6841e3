import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { FrameCounter, maskedFrame } from "./clients/frames.ts";
import { openSocket } from "./clients/open-socket.ts";

/** A server's frame, as `ws` writes it. */
const frame = (text: string, opcode = 1): Buffer => {
  const { length } = Buffer.from(text);
  const head = length <= 125 ? [0x80 | opcode, length] : [0x80 | opcode, 126, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), Buffer.from(text)]);
};
const long = "x".repeat(300);
const ALL = Buffer.concat([
  frame('{"jsonrpc":"2.0","result":{},"id":1}'),
  frame("", 9),
  frame('{"jsonrpc":"2.0","error":{"code":-32601},"id":1}'),
  frame(`{"jsonrpc":"2.0","result":{"text":"${long}"},"id":1}`),
]);

test("frames are counted by what they are, whatever the pieces that they come in", () => {
  for (const size of [1, 2, 3, 7, 64, 301, ALL.length]) {
    const counter = new FrameCounter();
    // One buffer is read into again and again, as the client does it.
    const scratch = Buffer.alloc(size);
    for (let at = 0; at < ALL.length; at += size)
      counter.take(scratch.subarray(0, ALL.copy(scratch, 0, at, Math.min(at + size, ALL.length))));
    expect(counter.counts, `pieces of ${size}`).toEqual({ answers: 2, errors: 1, closed: false });
  }
});

test("a close is told", () => {
  const counter = new FrameCounter();
  counter.take(frame("", 8));
  expect(counter.counts.closed).toBe(true);
});

test("a frame that the bench does not expect is an error", () => {
  expect(() => new FrameCounter().take(Buffer.from([0x81, 127, 0, 0]))).toThrow("none of the bench's");
  expect(() => maskedFrame("x".repeat(70_000))).toThrow("at most 65 535");
});

test("a WebSocket server reads the frames, and its answers come back", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  const heard: string[] = [];
  server.on("connection", (socket) => {
    socket.on("message", (data: Buffer) => {
      heard.push(data.toString());
      socket.send(data.toString());
    });
  });
  const texts = ['{"jsonrpc":"2.0","result":1}', `{"jsonrpc":"2.0","result":"${"ü".repeat(200)}"}`];
  const counter = new FrameCounter();
  const answered = new EventEmitter();
  const both = once(answered, "both");
  const { port } = server.address() as AddressInfo;
  const socket = await openSocket(`http://127.0.0.1:${port}`, "a-token", (bytes) => {
    counter.take(bytes);
    if (counter.counts.answers === 2) answered.emit("both");
  });
  socket.write(Buffer.concat(texts.map(maskedFrame)));
  await both;
  expect(heard).toEqual(texts);
  expect(counter.counts).toMatchObject({ answers: 2 });
  socket.destroy();
  server.close();
});

test("an upgrade that is refused is an error, with its status", async () => {
  const server = createServer((_, res) => res.writeHead(401).end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await expect(openSocket(url, "a-token", () => {})).rejects.toThrow("HTTP/1.1 401");
  server.closeAllConnections();
  server.close();
});
