import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { yieldToOthers } from "#kit/yield.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { createPipelined } from "#wire/http/pipelined.ts";
import { listenHere, open } from "./listener.ts";

type Begun = { url: string; res: ServerResponse };

/** A server whose answers the test controls, and a connection to it. */
async function serve() {
  const begun: Begun[] = [];
  const server = createServer(
    createPipelined(
      ({ url = "" }, res) => void begun.push({ url, res }),
      () => {},
    ),
  );
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

const HEALTH = { method: "GET", path: "/healthz" };
const FIRST = "GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n";
function optionsFor(to: string): string {
  return `GET /second HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${to}\r\n\r\n`;
}

/** Answers the first request at the test's command. */
async function listenSlowly() {
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
}

test("F12: a request that is sent ahead starts when the one before it is answered", async () => {
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

test("one that arrives after all answers starts at once", async () => {
  const { begun, ask, bodies } = await serve();
  for (const n of upTo(10)) {
    ask(n, n + 1);
    await expect.poll(() => begun.length).toBe(n + 1);
    answer(begun[n] as Begun);
    await expect.poll(() => bodies().length).toBe(n + 1);
  }
});

describe("F12: more requests than a connection may send ahead", async () => {
  const gateway = await shareGateway();
  const linesOf = (status: number) => gateway.linesOf("request", { status }).length;

  test("are refused after the answers to the others", async () => {
    const [answered, refused] = [linesOf(200), linesOf(400)];
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(HEALTH).toString().repeat(3_000));
    for (const _ of upTo(256)) expect((await connection.reply(HEALTH)).status).toBe(200);
    const { requestId, status, error } = await connection.reply({ method: "GET", path: "/nowhere" });
    expect([status, error]).toEqual([400, "invalid-request"]);
    expect(await gateway.logged("request", { requestId })).toMatchObject({ surface: "public", status, error });
    await connection.closed;
    expect([linesOf(200) - answered, linesOf(400) - refused]).toEqual([256, 1]);
  });

  test("are not read while the others wait, whatever parts they are sent in", async () => {
    const urls: string[] = [];
    let answerFirst = () => {};
    const { port } = await listenHere(() => {}, {
      onRequest(req, res) {
        if (urls.push(req.url ?? "") > 1) res.end();
        else answerFirst = () => void res.end();
      },
      onUpgrade: (_, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    });
    const { socket, until } = await open(port);
    socket.write(FIRST.repeat(256));
    for (const n of upTo(100)) {
      socket.write(n % 2 ? optionsFor("websocket") : FIRST.repeat(50));
      await yieldToOthers();
    }
    await expect.poll(() => urls.length).toBe(1);
    answerFirst();
    expect(await until(" 400 ")).not.toContain(" 101 ");
    await once(socket, "close");
    expect(urls.length).toBe(256);
  });
});

test("a request is not started after the client has ended the connection", async () => {
  const { begun, ask, socket, bodies } = await serve();
  ask(0, 2);
  await expect.poll(() => begun.length).toBe(1);
  socket.end();
  await once(socket, "close");
  answer(begun[0] as Begun);
  expect(bodies()).toEqual([]);
  expect(begun.length).toBe(1);
});

test("an answer that its client did not read is logged as closed", async () => {
  await using gateway = await startGateway();
  const contract = { method: "GET", path: "/openapi.json" };
  await using connection = await openConnection(gateway.url);
  connection.socket.pause();
  connection.write(requestText(contract).toString().repeat(200));
  await gateway.logged("request", { status: 200 });
  const count = () => gateway.linesOf("request").length;
  // Until the buffers of the system are full.
  for (let before = -1; before !== count(); await sleep(200)) before = count();
  const answered = count();
  connection.socket.destroy();
  expect(await gateway.logged("request", { status: 499 })).toMatchObject({ operation: "ops.openapi" });
  expect(count()).toBe(answered + 1);
  for (const { requestId } of gateway.linesOf("request")) noteChecked(String(requestId));
});

describe("F37: an upgrade that is sent behind another request", () => {
  test("waits for the answer ahead of it", async () => {
    const { port, waiting, upgraded } = await listenSlowly();
    const { socket, until } = await open(port);
    socket.write(FIRST + optionsFor("websocket"));
    await expect.poll(() => waiting.length).toBe(1);
    expect(upgraded).toEqual([]);
    waiting[0]?.();
    expect(await until(" 101 ")).toMatch(/^HTTP\/1.1 200 [\s\S]*<\/first>[\s\S]*HTTP\/1.1 101 /);
  });

  test("is answered like any other request if its upgrade is ignored", async () => {
    const { port, waiting } = await listenSlowly();
    const { socket, until } = await open(port);
    socket.write(FIRST + FIRST + optionsFor("h2c"));
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    await expect.poll(() => waiting.length).toBe(2);
    waiting[1]?.();
    expect(await until("</second>")).toMatch(/<\/first>[\s\S]*<\/first>[\s\S]*HTTP\/1.1 200 [\s\S]*<\/second>/);
    socket.write(FIRST);
    await expect.poll(() => waiting.length).toBe(3);
  });

  test("is not executed if the answer ahead ends the connection", async () => {
    const { port, waiting, upgraded } = await listenSlowly();
    const { socket, until, read } = await open(port);
    socket.write(FIRST.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n") + optionsFor("websocket"));
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    await until("</first>");
    await once(socket, "close");
    expect(read()).not.toContain(" 101 ");
    expect(upgraded).toEqual([]);
  });

  test("is closed with the connection if the answer ahead cannot continue", async () => {
    const parts: (() => boolean)[] = [];
    const { port } = await listenHere(() => {}, {
      onRequest: (_req, res) => void parts.push(() => res.write(Buffer.alloc(8_000_000))),
      onUpgrade: (_req, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    });
    const { socket, read } = await open(port);
    socket.write(FIRST + optionsFor("websocket"));
    await expect.poll(() => parts.length).toBe(1);
    expect(parts[0]?.()).toBe(false);
    await once(socket, "close");
    expect(read()).not.toContain(" 101 ");
  });
});
