import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { agreed, FLAG, frame, openFrames, PREFACE, requestBlock, TYPE } from "#test/harness/frames.ts";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { CERTIFICATE, OVER_TLS, openHttp2 } from "#test/harness/http2.ts";

import { createHttp2 } from "#wire/http/h2.ts";
import type { Http2Response } from "#wire/http/h2-messages.ts";
import type { ListenOptions } from "#wire/http/listen.ts";
import { BY_CONNECTION, listenHere as listenAnd } from "./listener.ts";

const HEALTH = { method: "GET", path: "/healthz" };
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const json = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };

/** A head that is the complete request. */
const ONLY = FLAG.endStream | FLAG.endHeaders;

/** A listener that answers every request with its version and target. */
function listenHere(options: Partial<ListenOptions> = {}) {
  return listenAnd(() => {}, {
    onRequest: (req, res) => res.writeHead(200).end(`${req.httpVersion} ${req.url}`),
    ...options,
  });
}

async function ask(url: string, bytes: string, until: string): Promise<{ text: string; socket: Socket }> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.setEncoding("latin1").write(bytes);
  let text = "";
  for await (const part of socket.iterator({ destroyOnReturn: false })) {
    text += part;
    if (text.includes(until)) break;
  }
  return { text, socket };
}

function upgrade(protocol: string, more = "") {
  return `GET /there HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n${more}`;
}

describe("a request to upgrade", () => {
  test("is answered without an upgrade if the server does not accept upgrades", async () => {
    const { url } = await listenHere();
    expect((await ask(url, upgrade("websocket"), "/there")).text).toMatch(/^HTTP\/1.1 200 .*1\.1 \/there/s);
  });

  test("to a WebSocket is handed over, with the bytes behind it", async () => {
    const taken: string[] = [];
    const { url } = await listenHere({
      onUpgrade: (req, socket, head) => {
        taken.push(`${req.method} ${req.url} ${head}`);
        socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      },
    });
    expect((await ask(url, upgrade("websocket", "first"), "\r\n\r\n")).text).toMatch(/^HTTP\/1.1 101/);
    expect(taken).toEqual(["GET /there first"]);
  });

  test("to anything else is answered as HTTP/1.1, as are the requests behind it", async () => {
    const refused: string[] = [];
    const { url } = await listenHere({ onUpgrade: ({ headers }) => refused.push(String(headers.upgrade)) });
    const behind = "GET /behind HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const { text, socket } = await ask(url, upgrade("h2c", behind), "/behind");
    expect(text).toMatch(/^HTTP\/1.1 200 .*1\.1 \/there.*HTTP\/1.1 200 .*1\.1 \/behind/s);
    socket.write(behind);
    const [part] = await once(socket, "data");
    expect(part).toContain("1.1 /behind");
    expect(refused).toEqual([]);
  });

  test("to anything else may have a body", async () => {
    const bodies: string[] = [];
    const { url } = await listenHere({
      onUpgrade: () => bodies.push("taken"),
      onRequest: (req, res) => {
        req.on("data", (part) => bodies.push(String(part)));
        req.on("end", () => res.end("got it"));
      },
    });
    const head =
      "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 9\r\n\r\n";
    await ask(url, `${head}some body`, "got it");
    expect(bodies).toEqual(["some body"]);
  });

  test("that was accepted ends when the listener closes", async () => {
    const taken: Socket[] = [];
    const listening = await listenHere({ onUpgrade: (_, socket) => taken.push(socket) && socket.write("taken") });
    const { socket } = await ask(listening.url, upgrade("websocket"), "taken");
    await Promise.all([listening.close(), once(socket, "close")]);
    expect(taken[0]?.destroyed).toBe(true);
  });
});

describe("connections", () => {
  test("share one limit, whether silent or of either kind", async () => {
    const { url, port } = await listenHere({ maxConnections: 3 });
    const quiet = connect(port, "127.0.0.1");
    await once(quiet, "connect");
    await using client = await openHttp2(url.replace("127.0.0.1", "localhost"));
    const reply = await client.exchange({ method: "GET", path: "/one" });
    expect(reply.text).toBe("2.0 /one");
    const { socket } = await ask(url, "GET /two HTTP/1.1\r\nHost: localhost\r\n\r\n", "/two");
    const fourth = connect(port, "127.0.0.1").on("error", () => {});
    await once(fourth, "close");
    quiet.destroy();
    socket.destroy();
  });

  test("that are idle get a notice, and are closed", async () => {
    const listening = await listenHere();
    const { url, port } = listening;
    const quiet = connect(port, "127.0.0.1");
    await once(quiet, "connect");
    await using client = await openHttp2(url);
    await client.exchange(HEALTH);
    const told = once(client.session, "goaway");
    const stopped = listening.stopAccepting();
    // A request in progress is still answered.
    const [code, lastStream] = await told;
    expect([code, lastStream]).toEqual([0, 2 ** 31 - 1]);
    await Promise.all([stopped, client.closed, once(quiet, "close")]);
  });

  const TIMES = { headersMs: 10_000, requestMs: 10_000, idleMs: 10_000, stuckMs: 10_000, lastRequestsMs: 0 };
  /** Only connections of HTTP/2, checked every few milliseconds. */
  const listenForHttp2 = async (times: Partial<typeof TIMES>, onRequest: (res: Http2Response) => void) => {
    const http2 = createHttp2({ ...TIMES, ...times, resets: BY_CONNECTION, onRequest: (_, res) => onRequest(res) });
    const server = createServer((socket) => http2.take(socket)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const checks = setInterval(() => http2.check(), 5);
    onTestFinished(() => {
      clearInterval(checks);
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  test("over HTTP/2 are ended after a time without requests, but after the last answer", async () => {
    const waiting: Http2Response[] = [];
    const url = await listenForHttp2({ idleMs: 500 }, (res) => waiting.push(res));
    await using client = await openHttp2(url);
    const reply = client.exchange(HEALTH);
    await expect.poll(() => waiting.length).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 600));
    waiting[0]?.end("late");
    expect((await reply).text).toBe("late");
    await client.closed;
  });

  test("over HTTP/2 are closed if they accept none of the waiting bytes", async () => {
    const url = await listenForHttp2({ stuckMs: 50 }, (res) => res.writeHead(200).end("x".repeat(100_000)));
    await using connection = await openFrames(url);
    const noWindow = frame(TYPE.settings, FLAG.none, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    connection.write(PREFACE, noWindow, agreed, frame(TYPE.headers, ONLY, 1, requestBlock("GET", "/")));
    await connection.closed;
    expect(connection.frames.some(({ type, stream }) => type === TYPE.headers && stream === 1)).toBe(true);
    expect(connection.frames.some(({ type }) => type === TYPE.data)).toBe(false);
  });

  test.each([
    ["are not closed", 50_000, 20],
    ["are closed if it reads almost nothing", 100, 20_000],
  ])("of HTTP/2 whose client reads slowly %s", async (_, step, steps) => {
    const url = await listenForHttp2({ stuckMs: 4_000 }, (res) => res.writeHead(200).end("x".repeat(step * steps)));
    await using connection = await openFrames(url);
    const noWindow = frame(TYPE.settings, FLAG.none, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    connection.write(PREFACE, noWindow, agreed, frame(TYPE.headers, ONLY, 1, requestBlock("GET", "/")));
    const more = Buffer.alloc(4);
    more.writeUInt32BE(step);
    const update = (stream: number) => frame(TYPE.windowUpdate, FLAG.none, stream, more);
    const taking = setInterval(() => connection.write(update(0), update(1)), 30);
    onTestFinished(() => clearInterval(taking));
    const end = connection.until(({ type, flags }) => type === TYPE.data && flags === FLAG.endStream);
    if (step > 1_000) await end;
    else await Promise.all([expect(end).rejects.toThrow(), connection.closed]);
  });
});

test("one that never starts its TLS handshake does not delay the end", async () => {
  const { cert, key } = { cert: CERTIFICATE, key: readFileSync("test/config/tls/key.pem", "utf8") };
  const listening = await listenHere({ tls: { cert, key } });
  const silent = connect(listening.port, "127.0.0.1").on("error", () => {});
  await once(silent, "connect");
  await Promise.all([listening.close(), once(silent.resume(), "close")]);
});

describe.each([
  ["in clear text", {}],
  ["over TLS", OVER_TLS],
])("HTTP/2 %s while the gateway drains", (_, config) => {
  test("F22: started requests are answered, and no accepted work is lost", async () => {
    const agents = { main: { backend: "echo" as const, echo: { delayMs: 50 } } };
    await using gateway = await startGateway({ config: { ...config, agents } });
    const clients = await Promise.all(Array.from({ length: 5 }, () => openHttp2(gateway.url)));
    const replies: number[] = [];
    const load = clients.map(async (client) => {
      while (!client.session.closed && !client.session.destroyed) {
        const bodies = Array.from({ length: 10 }, (_, n) => JSON.stringify({ message: String(n) }));
        const answered = await Promise.allSettled(bodies.map((body) => client.send(CHAT, json, body)));
        for (const outcome of answered) if (outcome.status === "fulfilled") replies.push(outcome.value.status);
      }
    });
    await expect.poll(() => replies.length).toBeGreaterThan(100);
    await gateway.gateway.drain("SIGTERM", 5_000);
    await Promise.all(load);
    for (const client of clients) await client[Symbol.asyncDispose]();
    expect(replies.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    // A caller got every answer in the gateway's log.
    await gateway.until(() => gateway.linesOf("request", { operation: "chat.send" }).length === replies.length);
    expect(gateway.linesOf("request", { operation: "chat.send", status: 499 })).toEqual([]);
  });
});
