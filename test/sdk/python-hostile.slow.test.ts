import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { event } from "./answers.ts";
import { type Form, forms, runForm } from "./python.ts";
import { forever, rawServer } from "./raw-server.ts";

function head(...lines: string[]): string {
  return ["HTTP/1.1 200 OK", ...lines, "", ""].join("\r\n");
}
function jsonHead(...lines: string[]): string {
  return head("Content-Type: application/json", ...lines);
}
function run(form: Form, python: string, url: string, code: string) {
  return runForm(
    form,
    python,
    `gateway = AsyncGateway(url="${url}", key="k", rpc_token="r", max_retries=0, timeout=20)\n${code}\nawait gateway.close()`,
  );
}
const READ = "show(await failing(lambda: gateway.skills.list()))";

const ANSWERS: [string, (socket: Socket) => void, RegExp][] = [
  [
    "a head without an end",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      forever(socket, Buffer.from(`X: ${"y".repeat(60_000)}\r\n`));
    },
    /header|head of the answer/,
  ],
  [
    "a header without an end",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nX: ");
      forever(socket, Buffer.alloc(60_000, "y"));
    },
    /line|head of the answer/,
  ],
  [
    "half a chunk",
    (socket) => socket.end(`${jsonHead("Transfer-Encoding: chunked")}ff\r\n{"a`),
    /The answer from .* is broken/,
  ],
  [
    "a chunk without a size",
    (socket) => socket.end(`${jsonHead("Transfer-Encoding: chunked")}zz\r\n{}\r\n`),
    /The answer from .* is broken/,
  ],
  ["half a body", (socket) => socket.end(`${jsonHead("Content-Length: 99")}{`), /The answer from .* is broken/],
  ["bytes that are not HTTP", (socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n\r\n"), /The answer from .* is broken/],
  ["nothing", (socket) => socket.end(), /No answer came/],
  [
    "JSON that is too deep",
    (socket) => socket.end(`${jsonHead("Connection: close")}${"[".repeat(200_000)}`),
    /not valid JSON/,
  ],
  [
    "a body without an end",
    (socket) => {
      socket.write(jsonHead("Connection: close"));
      forever(socket, Buffer.alloc(1 << 20, " "));
    },
    /larger than 64 MiB/,
  ],
  [
    "chunks without an end",
    (socket) => {
      socket.write(jsonHead("Transfer-Encoding: chunked"));
      forever(socket, Buffer.from(`100000\r\n${" ".repeat(1 << 20)}\r\n`));
    },
    /larger than 64 MiB/,
  ],
];

describe.concurrent.each(forms)("%s for Python %s, when the server is hostile", (form, _, python) => {
  test.each(ANSWERS)("raises an error with a description at %s", async (_, answer, words) => {
    await using server = await rawServer((socket) => answer(socket));
    const [failure] = await run(form, python, server.url, READ);
    expect(failure).toMatchObject({ class: "ConnectionFailedError", detail: expect.stringMatching(words) });
  });

  test("ends a stream with an endless event, and a stream that is not from a turn", async () => {
    const sse = head("Content-Type: text/event-stream", "Connection: close");
    const answers = [
      (socket: Socket) => {
        socket.write(`${sse}data: `);
        forever(socket, Buffer.alloc(1 << 20, "x"));
      },
      (socket: Socket) => socket.end(`${sse}event: turn.started\nid: 1\ndata: [1]\n\n`),
      (socket: Socket) => socket.end(sse + event("turn.completed", "2")),
    ];
    await using server = await rawServer((socket) => answers.shift()?.(socket));
    const shown = await run(
      form,
      python,
      server.url,
      `
async def read():
    return [one["id"] async for one in gateway.turns.events("turn_1")]
for _ in range(3):
    show(await failing(read))
`,
    );
    expect(shown).toEqual([
      expect.objectContaining({ class: "ConnectionFailedError" }),
      expect.objectContaining({ class: "ConnectionFailedError" }),
      { answered: ["2"] },
    ]);
  });

  test("closes a WebSocket that breaks the protocol", async () => {
    const frames = [
      Buffer.from([0x81, 0x80, 0, 0, 0, 0]),
      Buffer.from([0x80, 0x01, 0x41]),
      Buffer.from([0x09, 0x00]),
      Buffer.from([0x81, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0]),
      Buffer.from([0x81, 0x03, 0x7b, 0x7b, 0x7b]),
      Buffer.from([0x82, 0x02, 0xff, 0xfe]),
    ];
    const left = [...frames];
    await using server = await rawServer((socket, request) => {
      const key = /sec-websocket-key: (\S+)/i.exec(request)?.[1] ?? "";
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      socket.write(
        `HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      socket.write(left.shift() as Buffer);
    });
    const shown = await run(
      form,
      python,
      server.url,
      `
for _ in range(${frames.length}):
    socket = gateway.rpc.connect()
    show(await failing(lambda: socket.agent.list()))
    await socket.close()
`,
    );
    expect(shown).toMatchObject(frames.map(() => ({ class: "ConnectionFailedError", operation: "rpc.agent.list" })));
  });
});
