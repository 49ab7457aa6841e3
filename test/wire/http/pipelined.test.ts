import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPipelined } from "#wire/http/pipelined.ts";
import { listenHere, open } from "./listener.ts";

type Begun = { url: string; res: ServerResponse };

/** A server whose answers the test gives, and a connection to it. */
async function serve() {
  const begun: Begun[] = [];
  const server = createServer(createPipelined(({ url = "" }, res) => void begun.push({ url, res })));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").setEncoding("latin1");
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (part) => {
    text += part;
  });
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  const ask = (from: number, to: number) => {
    const all = Array.from({ length: to - from }, (_, n) => `GET /${from + n} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    socket.write(all.join(""));
  };
  return { begun, socket, ask, bodies: () => text.match(/(?<=<)\d+(?=>)/g)?.map(Number) ?? [] };
}
function answer({ url, res }: Begun) {
  return res.end(`<${url.slice(1)}>`);
}
function upTo(count: number) {
  return Array.from({ length: count }, (_, n) => n);
}

test("F12: a request that is sent ahead is begun when the one before it is answered", async () => {
  const { begun, ask, bodies } = await serve();
  ask(0, 100);
  for (const n of upTo(100)) {
    await expect.poll(() => begun.length).toBe(n + 1);
    answer(begun[n] as Begun);
    if (n === 50) ask(100, 101);
  }
  await expect.poll(() => begun.length).toBe(101);
  answer(begun[100] as Begun);
  await expect.poll(() => bodies()).toEqual(upTo(101));
});

test("one that comes when all before it are answered is begun at once", async () => {
  const { begun, ask, bodies } = await serve();
  for (const n of upTo(10)) {
    ask(n, n + 1);
    await expect.poll(() => begun.length).toBe(n + 1);
    answer(begun[n] as Begun);
    await expect.poll(() => bodies().length).toBe(n + 1);
  }
});

test("F12: a connection with more requests waiting than any client sends ahead is cut", async () => {
  const { begun, ask, socket } = await serve();
  ask(0, 1_000);
  await once(socket, "close");
  expect(begun.length).toBe(1);
});

describe("F37: an upgrade that is sent behind another request", () => {
  const get = "GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const options = (to: string, more = "") =>
    `GET /second HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${to}\r\n${more}\r\n`;
  /** Answers the first request when the test says so. */
  const listenSlowly = async () => {
    const waiting: (() => void)[] = [];
    const upgraded: string[] = [];
    const listening = await listenHere(() => {}, {
      onRequest(req, res) {
        const answer = () => res.writeHead(200).end(`<${req.url}>`);
        if (req.url === "/first") waiting.push(answer);
        else answer();
      },
      onUpgrade(req, socket) {
        upgraded.push(req.url ?? "");
        socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      },
    });
    return { ...listening, waiting, upgraded };
  };

  test("waits for the answer ahead of it", async () => {
    const { port, waiting, upgraded } = await listenSlowly();
    const { socket, until } = await open(port);
    socket.write(get + options("websocket"));
    await expect.poll(() => waiting.length).toBe(1);
    expect(upgraded).toEqual([]);
    waiting[0]?.();
    expect(await until(" 101 ")).toMatch(/^HTTP\/1.1 200 [\s\S]*<\/first>[\s\S]*HTTP\/1.1 101 /);
  });

  test("is answered as any other request when it is ignored", async () => {
    const { port, waiting } = await listenSlowly();
    const { socket, until } = await open(port);
    socket.write(get + get + options("h2c"));
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    await expect.poll(() => waiting.length).toBe(2);
    waiting[1]?.();
    expect(await until("</second>")).toMatch(/<\/first>[\s\S]*<\/first>[\s\S]*HTTP\/1.1 200 [\s\S]*<\/second>/);
    socket.write(get);
    await expect.poll(() => waiting.length).toBe(3);
  });

  test("is not carried out when the answer ahead ends the connection", async () => {
    const { port, waiting, upgraded } = await listenSlowly();
    const { socket, until, read } = await open(port);
    socket.write(get.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n") + options("websocket"));
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    await until("</first>");
    await once(socket, "close");
    expect(read()).not.toContain(" 101 ");
    expect(upgraded).toEqual([]);
  });

  test("is cut with the connection when the answer ahead can never go on", async () => {
    const parts: (() => boolean)[] = [];
    const { port } = await listenHere(() => {}, {
      onRequest: (_req, res) => void parts.push(() => res.write(Buffer.alloc(8_000_000))),
      onUpgrade: (_req, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    });
    const { socket, read } = await open(port);
    socket.write(get + options("websocket"));
    await expect.poll(() => parts.length).toBe(1);
    expect(parts[0]?.()).toBe(false);
    await once(socket, "close");
    expect(read()).not.toContain(" 101 ");
  });
});
