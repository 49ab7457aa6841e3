import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { echo, listenHere, open, post } from "./h1-server.ts";

const untilClosed = (socket: Socket | undefined) => socket?.closed || once(socket as Socket, "close");

/** Makes connections old: `ms` pass at once, but no timer hears of it. */
const age = (ms: number): void => {
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
  onTestFinished(() => spy.mockRestore());
};

/** Connections are looked at ten times a second, in place of once. */
const OFTEN = { stuckMs: 100 };

test("what comes behind an answer that ends its connection is not begun, as nobody could be told how it ended", async () => {
  const { port, readers, accepted } = await listenHere((req, res, body) => {
    res.setHeader("connection", "close");
    echo(req, res, body);
  }, OFTEN);
  const { socket, until } = await open(port, { allowHalfOpen: true });
  socket.write(post("first"));
  await until("<first>");
  socket.write(post("second"));
  await untilClosed(accepted[0]);
  expect(readers).toEqual(["ours"]);
});

test.each(["", post("ahead")])(
  "a connection that was ended is let go, though its client keeps its half (%#)",
  async (ahead) => {
    const waiting: (() => void)[] = [];
    const { port, accepted } = await listenHere((req, res, body) => {
      res.setHeader("connection", "close");
      waiting.push(() => echo(req, res, body));
    }, OFTEN);
    const { socket, until } = await open(port, { allowHalfOpen: true });
    socket.write(post("x"));
    await expect.poll(() => waiting.length).toBe(1);
    if (ahead !== "") {
      socket.write(ahead);
      await expect.poll(() => accepted[0]?.bytesRead).toBe(post("x").length + ahead.length);
    }
    waiting[0]?.();
    await until("<x>");
    await untilClosed(accepted[0]);
  },
);

test("an idle connection is let go, though its client keeps its half", async () => {
  const { port, accepted } = await listenHere(echo, OFTEN);
  const { socket, until } = await open(port, { allowHalfOpen: true });
  socket.write(post("x"));
  await until("<x>");
  age(65_000);
  await untilClosed(accepted[0]);
});

test("whoever leaves is heard of, also when requests of his were held back", async () => {
  let closed = 0;
  const { port, accepted, readers } = await listenHere((_req, res) => void res.once("close", () => closed++));
  const { socket } = await open(port);
  for (const times of [1, 2, 3]) {
    socket.write(post("x"));
    await expect.poll(() => accepted[0]?.bytesRead).toBe(times * post("x").length);
  }
  socket.destroy();
  await expect.poll(() => closed).toBe(1);
  expect(readers).toEqual(["ours"]);
});

test("an answer that its client did not take to the end does not count as sent", async () => {
  const events: string[] = [];
  const answers: ServerResponse[] = [];
  const { port } = await listenHere((_req, res) => {
    answers.push(res);
    res.once("close", () => events.push(res.writableFinished ? "sent" : "lost"));
    res.writeHead(200).end("x".repeat(30_000_000));
  });
  const { socket } = await open(port);
  socket.pause().write(post("x"));
  await expect.poll(() => answers.length).toBe(1);
  socket.resetAndDestroy();
  await expect.poll(() => events).toEqual(["lost"]);
});

test("an answer to a client that ended its half does not count as sent", async () => {
  const events: string[] = [];
  const answers: ServerResponse[] = [];
  const { port, accepted } = await listenHere((_req, res) => {
    answers.push(res);
    res.once("close", () => events.push(res.writableFinished ? "sent" : "lost"));
    accepted[0]?.once("end", () => res.writeHead(200).end("late"));
  });
  const { socket } = await open(port, { allowHalfOpen: true });
  socket.write(post("x"));
  await expect.poll(() => answers.length).toBe(1);
  socket.end();
  await expect.poll(() => events).toEqual(["lost"]);
});

test.each([
  ["first", []],
  ["later", [post("x")]],
])(
  "a connection whose %s request does not come whole is let go, though its client keeps its half",
  async (_, before) => {
    const { port, accepted } = await listenHere(echo, { requestMs: 300, ...OFTEN });
    const { socket, until } = await open(port, { allowHalfOpen: true });
    for (const request of before) {
      socket.write(request);
      await until("<x>");
    }
    socket.write(post("y").slice(0, 20));
    await until("HTTP/1.1 408 ");
    await untilClosed(accepted[0]);
  },
);
