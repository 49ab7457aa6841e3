import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { letGo } from "#wire/call/let-go.ts";
import type { SseEvent } from "#wire/call/sse.ts";
import { sendEvents } from "#wire/call/sse.ts";
import { echo, listenHere, open, post } from "./h1-server.ts";

test("what is written to an answer that has ended goes nowhere, and ends no other answer of its connection", async () => {
  const answers: ServerResponse[] = [];
  const { port, readers } = await listenHere((req, res, body) => {
    answers.push(res);
    if (body === "first") echo(req, res, body);
  });
  const { socket, until, read } = await open(port);
  socket.write(post("first"));
  await until("<first>");
  const before = read();
  socket.write(post("second"));
  await expect.poll(() => answers.length).toBe(2);
  const [first, second] = answers as [ServerResponse, ServerResponse];
  first.flushHeaders();
  first.write("late");
  first.end("later");
  first.destroy();
  expect(first.socket).toBeNull();
  second.writeHead(200).end("<second>");
  const text = await until("<second>");
  expect(text.slice(before.length)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^<]*\r\n\r\n<second>$/);
  expect(readers).toEqual(["ours", "ours"]);
});

test("an answer whose head cannot be written has not ended: who gives up on it can cut it off", async () => {
  const states: boolean[] = [];
  const { port } = await listenHere((_req, res) => {
    try {
      res.writeHead(200, { "x-a": "1\r\nx-b: 2" }).end("x");
    } catch {
      states.push(res.headersSent, res.writableEnded);
      res.destroy();
      states.push(res.destroyed);
    }
  });
  const { socket, read } = await open(port);
  socket.write(post(""));
  await once(socket, "close");
  expect(states).toEqual([true, false, true]);
  expect(read()).toBe("");
});

test("an answer that takes long holds nothing of the body that asked for it", async () => {
  const asked: { whole: Buffer }[] = [];
  const { port } = await listenHere((req, res, body) => {
    letGo(req, res);
    asked.push(req as unknown as { whole: Buffer });
    res.writeHead(200).end(`<${body}>`);
  });
  const { socket, until } = await open(port);
  socket.write(post("long".repeat(1_000)));
  await until("<long");
  expect(asked[0]?.whole.buffer.byteLength).toBe(0);
});

test("a stream goes on when there was room again before it was told of it", async () => {
  // As a comment leaves it that went out while another write was on its way.
  const { port, accepted } = await listenHere((_req, res) => {
    const [own] = accepted as [Socket];
    const more = async function* (): AsyncGenerator<SseEvent> {
      yield { event: "first", id: "1", data: {} };
      await new Promise((resolve) => setTimeout(resolve, 20));
      Object.defineProperty(own, "writableNeedDrain", { get: () => isFull, configurable: true });
      isFull = true;
      setTimeout(() => {
        isFull = false;
        own.emit("drain");
      }, 20);
      yield { event: "second", id: "2", data: {} };
      yield { event: "third", id: "3", data: {} };
    };
    let isFull = false;
    sendEvents(res, {}, more(), () => {});
  });
  const { socket, until } = await open(port);
  socket.write(post("x"));
  await until("event: third");
});
