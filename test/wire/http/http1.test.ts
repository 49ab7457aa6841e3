import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { echo, listenHere, open, post } from "./listener.ts";

function untilClosed(socket: Socket | undefined) {
  return socket?.closed || once(socket as Socket, "close");
}

test("a request behind an answer that ends its connection is not started, because it could not be answered", async () => {
  const { port, bodies, accepted } = await listenHere((req, res, body) => {
    res.setHeader("connection", "close");
    echo(req, res, body);
  });
  const { socket, until } = await open(port, { allowHalfOpen: true });
  socket.write(post("first"));
  await until("<first>");
  socket.write(post("second"));
  await untilClosed(accepted[0]);
  expect(bodies).toEqual(["first"]);
});

test.each(["", post("ahead")])(
  "a connection that was ended is closed, even if its client keeps its half open (%#)",
  async (ahead) => {
    const waiting: (() => void)[] = [];
    const { port, accepted } = await listenHere((req, res, body) => {
      res.setHeader("connection", "close");
      waiting.push(() => echo(req, res, body));
    });
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

test.each([
  ["first", []],
  ["later", [post("x")]],
])(
  "a connection with an incomplete %s request is closed, even if its client keeps its half open",
  async (_, before) => {
    const { port, accepted } = await listenHere(echo, { requestMs: 300 });
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

test("an answer counts as sent when the system has all of it, not earlier", async () => {
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

test("an idle connection is ended while the gateway stops; one that waits for its answer gets the answer", async () => {
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

test("F22: requests that arrived while the process was blocked are answered before it stops", async () => {
  const listening = await listenHere(echo);
  const { socket, until } = await open(listening.port);
  socket.write(post("first"));
  await until("<first>");
  const stopped = listening.stopAccepting();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  socket.write(post("late"));
  for (const until = performance.now() + 1_200; performance.now() < until; );
  await until("<late>");
  await stopped;
});
