import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { echo, listenHere, open, post } from "./h1-server.ts";

test("plain requests of a connection are answered one after the other, as Node answers them", async () => {
  const { port, readers } = await listenHere(echo);
  const { socket, until, read } = await open(port);
  for (const body of ["one", "two", "drei ist länger"]) {
    socket.write(post(body));
    await until(`<${Buffer.from(body).toString("latin1")}>`);
  }
  socket.write("GET /say HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await until("<>");
  expect(readers).toEqual(["ours", "ours", "ours", "ours"]);
  const [head = ""] = read().split("\r\n\r\n");
  socket.write(post("x", "X-A: 1\r\nX-A: 2\r\n"));
  await until("<x>");
  expect(readers.at(-1)).toBe("node");
  const ofNode = read().slice(read().lastIndexOf("HTTP/1.1 ")).split("\r\n\r\n")[0] ?? "";
  const shape = (text: string) =>
    text
      .split("\r\n")
      .map((line) => line.replace(/(Date: |ength: ).*/i, "$1").toLowerCase())
      .sort();
  expect(shape(head)).toEqual(shape(ofNode));
});

test.each<[string, readonly string[], string]>([
  ["that comes in two parts", ["POST /say HTTP/1.1\r\nHost: local", "host\r\nContent-Length: 3\r\n\r\nabc"], "<abc>"],
  ["whose body comes later", ["POST /say HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", "abc"], "<abc>"],
  ["whose body comes byte by byte", ["POST /say HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na", "b", "c"], "<abc>"],
  ["in chunks", ["POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"], "<abc>"],
  ["with another behind it", [post("first") + post("second")], "<second>"],
  ["of another method", ["PUT /say HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"], "<abc>"],
])("a request %s is left to Node, also after plain ones", async (_, parts, answered) => {
  const { port, readers, accepted } = await listenHere(echo);
  const { socket, until } = await open(port);
  socket.setNoDelay(true).write(post("plain"));
  await until("<plain>");
  const [theirs] = accepted as [Socket];
  for (const part of parts) {
    const read = theirs.bytesRead + part.length;
    socket.write(part);
    // Each is read before the next is sent.
    while (theirs.bytesRead < read) await new Promise((resolve) => setImmediate(resolve));
  }
  await until(answered);
  socket.write(post("after"));
  await until("<after>");
  expect(readers[0]).toBe("ours");
  expect(readers.slice(1).every((reader) => reader === "node")).toBe(true);
});

test.each([
  ["plain", post("second"), "ours"],
  ["not plain", post("second", "X-A: 1\r\nX-A: 2\r\n"), "node"],
  ["the first of several", post("second") + post("third"), "node"],
])("a request that comes before the last one is answered waits for it: %s", async (_, ahead, reader) => {
  const waiting: (() => void)[] = [];
  const { port, readers } = await listenHere((req, res, body) => {
    if (body === "first") waiting.push(() => echo(req, res, body));
    else echo(req, res, body);
  });
  const { socket, until, read } = await open(port);
  socket.write(post("first"));
  await expect.poll(() => waiting.length).toBe(1);
  socket.write(ahead);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(readers).toEqual(["ours"]);
  waiting[0]?.();
  const text = await until("<second>");
  expect(text.indexOf("<first>")).toBeLessThan(text.indexOf("<second>"));
  expect(readers[1]).toBe(reader);
  if (ahead.includes("third")) await until("<third>");
  expect(read().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(ahead.includes("third") ? 3 : 2);
});

test("a stream is sent in chunks, and the connection goes on after it", async () => {
  const { port, readers } = await listenHere((_req, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.flushHeaders();
    res.write("a");
    res.write("ä".repeat(10));
    res.end("end");
  });
  const { socket, until } = await open(port);
  socket.write(post(""));
  const text = await until("\r\n0\r\n\r\n");
  expect(text).toContain("Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n14\r\n");
  expect(text).toContain("\r\n3\r\nend\r\n0\r\n\r\n");
  socket.write(post("again"));
  await expect.poll(() => readers).toEqual(["ours", "ours"]);
});

test.each([204, 304])("an answer %d has no body and no length", async (status) => {
  const { port } = await listenHere((_req, res) => void res.writeHead(status).end());
  const { socket, until } = await open(port);
  socket.write(post(""));
  const text = await until("\r\n\r\n");
  expect(text.toLowerCase()).not.toContain("content-length");
});

test("an answer that ends its connection says so, and ends it", async () => {
  const { port } = await listenHere((req, res, body) => {
    res.setHeader("connection", "close");
    echo(req, res, body);
  });
  const { socket, until } = await open(port);
  socket.write(post("x"));
  expect(await until("<x>")).toContain("Connection: close\r\n");
  await once(socket, "close");
});

test("a header that would end the head before its end is not sent", async () => {
  let thrown: unknown;
  const { port } = await listenHere((_req, res) => {
    try {
      res.writeHead(200, { "x-a": "1\r\nx-b: 2" }).end();
    } catch (error) {
      thrown = error;
      res.destroy();
    }
  });
  const { socket, read } = await open(port);
  socket.write(post(""));
  await once(socket, "close");
  expect(thrown).toBeInstanceOf(TypeError);
  expect(read()).toBe("");
});

test("whoever leaves before the answer is heard of, and what is written then goes nowhere", async () => {
  let closed = 0;
  const answers: ServerResponse[] = [];
  const { port } = await listenHere((_req, res) => {
    res.once("close", () => closed++);
    answers.push(res);
  });
  const { socket } = await open(port);
  socket.write(post("x"));
  await expect.poll(() => answers.length).toBe(1);
  socket.destroy();
  await expect.poll(() => closed).toBe(1);
  const [res] = answers as [ServerResponse];
  expect([res.destroyed, res.writableFinished]).toEqual([true, false]);
  res.writeHead(200).end("late");
  expect(closed).toBe(1);
});

test("an answer counts as sent when the system has all of it, not sooner", async () => {
  const events: string[] = [];
  const answers: ServerResponse[] = [];
  const { port } = await listenHere((_req, res) => {
    answers.push(res);
    res.once("close", () => events.push(res.writableFinished ? "sent" : "lost"));
    res.writeHead(200).end("x".repeat(30_000_000));
  });
  const { socket, until } = await open(port);
  socket.pause().write(post("x"));
  await expect.poll(() => answers.length).toBe(1);
  expect(answers[0]?.writableFinished).toBe(false);
  expect(events).toEqual([]);
  socket.resume();
  await until("x".repeat(1000));
  await expect.poll(() => events).toEqual(["sent"]);
});

test("a connection that waits for nothing is ended while the gateway stops; one that waits for its answer gets it", async () => {
  const waiting: (() => void)[] = [];
  const listening = await listenHere((req, res, body) => void waiting.push(() => echo(req, res, body)));
  const idle = await open(listening.port);
  idle.socket.write(post("x"));
  await expect.poll(() => waiting.length).toBe(1);
  waiting[0]?.();
  await idle.until("<x>");
  const busy = await open(listening.port);
  busy.socket.write(post("y"));
  await expect.poll(() => waiting.length).toBe(2);
  const stopped = listening.stopAccepting();
  await once(idle.socket, "close");
  expect(busy.read()).toBe("");
  waiting[1]?.();
  await busy.until("<y>");
  await stopped;
});

test.each([
  ["a plain connection", ""],
  ["one that Node's parser has", "X-A: 1\r\nX-A: 2\r\n"],
])("F22: what came while the process stood still is answered before it stops: on %s", async (_, more) => {
  const listening = await listenHere(echo);
  const { socket, until } = await open(listening.port);
  socket.write(post("first", more));
  await until("<first>");
  const stopped = listening.stopAccepting();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  socket.write(post("late", more));
  for (const until = performance.now() + 1_200; performance.now() < until; );
  await until("<late>");
  await stopped;
});

test("what follows a wish to upgrade waits for whoever takes the connection, also after plain requests", async () => {
  const taken: Socket[] = [];
  const { port, readers } = await listenHere(echo, { onUpgrade: (_req, socket) => void taken.push(socket) });
  const { socket, until } = await open(port);
  socket.write(post("plain"));
  await until("<plain>");
  socket.write("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  await expect.poll(() => taken.length).toBe(1);
  socket.write("frame");
  const [own] = taken as [Socket];
  await expect.poll(() => own.readableLength).toBe("frame".length);
  expect(String((await once(own, "data"))[0])).toBe("frame");
  expect(readers).toEqual(["ours"]);
});

test("requests that were sent ahead are all answered in their order, however many were held back", async () => {
  const waiting: (() => void)[] = [];
  const { port } = await listenHere((req, res, body) => {
    if (body === "first") waiting.push(() => echo(req, res, body));
    else echo(req, res, body);
  });
  const { socket, until } = await open(port);
  socket.write(post("first"));
  await expect.poll(() => waiting.length).toBe(1);
  const bodies = Array.from({ length: 100 }, (_, n) => `${n} ${"x".repeat(1_000)}`);
  for (const body of bodies) socket.write(post(body));
  waiting[0]?.();
  const text = await until(`<${bodies.at(-1)}>`);
  expect(text.match(/(?<=<)[^>]+(?=>)/g)).toEqual(["first", ...bodies]);
});
