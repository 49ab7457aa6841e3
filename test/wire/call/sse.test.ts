import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { listenHere, open, post } from "#test/wire/http/listener.ts";
import { EventStream, type SseEvent } from "#wire/call/sse.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A server that sends these events to every client, and its end of the first reader's connection. */
async function serve(
  events: () => AsyncIterable<SseEvent>,
): Promise<{ reader: IncomingMessage; ended: Promise<void> }> {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const server = createServer((_req, res) => {
    const stream = new EventStream(res, {}, events(), end);
    res.once("close", () => {
      stream.stop();
      end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const [reader] = await once(get({ port: (server.address() as AddressInfo).port, agent: false }), "response");
  return { reader, ended };
}
async function read(reader: IncomingMessage): Promise<string> {
  return String((await once(reader, "data"))[0]);
}
function createSignal() {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { give, given };
}

test("a comment is sent after each 15 s of silence, and none while events are sent", async () => {
  const [more, over] = [createSignal(), createSignal()];
  const { reader, ended } = await serve(async function* () {
    yield { event: "a", id: "1", data: {} };
    await more.given;
    yield { event: "b", id: "2", data: {} };
    await over.given;
  });
  expect(await read(reader)).toBe("event: a\nid: 1\ndata: {}\n\n");
  vi.advanceTimersByTime(14_000);
  more.give();
  expect(await read(reader)).toBe("event: b\nid: 2\ndata: {}\n\n");
  vi.advanceTimersByTime(14_000);
  for (let n = 0; n < 3; n++) {
    const comment = read(reader);
    vi.advanceTimersByTime(15_000);
    expect(await comment).toBe(":\n\n");
  }
  over.give();
  await ended;
});

test("a line break in a text never ends an event", async () => {
  const { reader } = await serve(async function* () {
    yield { event: "a", id: "1", data: "one\n\ntwo\r\n\u2028three" };
  });
  const text = await read(reader);
  expect(text.split("\n").slice(-2)).toEqual(["", ""]);
  expect(text.split("\n")).toHaveLength(5);
});

test("no further event is produced for a reader that does not read", async () => {
  let made = 0;
  const { reader } = await serve(async function* () {
    for (; made < 1_000; made++) yield { event: "a", id: String(made), data: "x".repeat(1024 * 1024) };
  });
  reader.pause();
  let before = -1;
  while (before !== made) {
    before = made;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(made).toBeLessThan(50);
});

test("events and the end of their stream that are written in one turn arrive in this order", async () => {
  const { reader } = await serve(async function* () {
    for (const id of ["1", "2", "3"]) yield { event: "a", id, data: {} };
  });
  let text = "";
  for await (const part of reader) text += part;
  expect(text.match(/^id: \d$/gm)).toEqual(["id: 1", "id: 2", "id: 3"]);
});

test("a stream continues if there was room again before the notification", async () => {
  // This is the state after a comment that was sent while another write was in progress.
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
    new EventStream(res, {}, more(), () => {});
  });
  const { socket, until } = await open(port);
  socket.write(post("x"));
  await until("event: third");
});
