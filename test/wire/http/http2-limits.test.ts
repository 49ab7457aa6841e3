import { once } from "node:events";
import { constants } from "node:http2";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import {
  agreed,
  block,
  FLAG,
  type Frame,
  frame,
  openFrames,
  PREFACE,
  requestBlock,
  reset,
  settings,
  TYPE,
} from "#test/harness/frames.ts";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { openHttp2, readReply } from "#test/harness/http2.ts";
import { checkReply } from "#test/harness/rest.ts";

const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const HEALTH = { method: "GET", path: "/healthz" };
const json = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };
const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_NO_ERROR } = constants;

const gateway = await shareGateway();
function started() {
  return gateway.gateway.store.stats().sessions;
}
const ping = frame(TYPE.ping, FLAG.none, 0, Buffer.alloc(8));
function isPong({ type, flags }: Frame) {
  return type === TYPE.ping && flags === FLAG.ack;
}
const get = requestBlock("GET", "/healthz");

describe("the start of a connection", () => {
  test.each([
    ["nothing", ""],
    ["too short to be recognised", "PR"],
    ["a preface that never ends", "PRI * HTT"],
    ["a preface and nothing after it", PREFACE],
  ])("that is %s is aborted in time", async (_, bytes) => {
    await using impatient = await startGateway({ requestMs: 100 });
    await using connection = await openFrames(impatient.url);
    connection.socket.write(bytes);
    await connection.closed;
    expect(connection.frames.some(({ type }) => type === TYPE.headers)).toBe(false);
    expect(impatient.linesOf("request")).toEqual([]);
  });
});

describe("a head", () => {
  test("above 16 KiB is 431, and the connection remains open", async () => {
    await using client = await openHttp2(gateway.url);
    expect((await client.send(HEALTH, { "x-padding": "a".repeat(15_000) })).status).toBe(200);
    expect((await client.send(HEALTH, { "x-padding": "a".repeat(17_000) })).error).toBe("headers-too-large");
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x-padding-${n}`, "a".repeat(180)]));
    expect((await client.send(HEALTH, many)).error).toBe("headers-too-large");
    expect((await client.send(HEALTH)).status).toBe(200);
  });

  test("F36: of more than 128 pairs ends its stream, and the connection remains open", async () => {
    await using connection = await openFrames(gateway.url);
    const oneMore = Buffer.concat([get, ...Array<Buffer>(125).fill(block({ a: "b" }))]);
    connection.write(PREFACE, settings, agreed, frame(TYPE.headers, FLAG.endStream | FLAG.endHeaders, 1, oneMore));
    const { payload } = await connection.until(({ type, stream }) => type === TYPE.reset && stream === 1);
    expect(payload.readUInt32BE(0)).toBe(NGHTTP2_ENHANCE_YOUR_CALM);
    await using client = await openHttp2(gateway.url);
    const most = Object.fromEntries(Array.from({ length: 124 }, (_, n) => [`x-${n}`, "a"]));
    expect((await client.send(HEALTH, most)).status).toBe(200);
    connection.write(ping);
    await connection.until(isPong);
  });

  test("with a target above 8 KiB is 414", async () => {
    await using client = await openHttp2(gateway.url);
    const target = (length: number) => ({ ...HEALTH, path: `/healthz?${"a".repeat(length - "/healthz?".length)}` });
    expect((await client.send(target(8 * 1024))).status).toBe(200);
    expect((await client.send(target(8 * 1024 + 1))).error).toBe("uri-too-long");
    expect((await client.send(target(20_000))).error).toBe("uri-too-long");
  });

  test("above 24 KiB ends its stream, and the connection remains open", async () => {
    await using connection = await openFrames(gateway.url);
    const large = requestBlock(
      "GET",
      "/healthz",
      Object.fromEntries("ab".split("").map((name) => [name, "x".repeat(13_000)])),
    );
    const parts = Array.from({ length: Math.ceil(large.length / 16_000) }, (_, n) =>
      large.subarray(n * 16_000, (n + 1) * 16_000),
    );
    connection.write(PREFACE, settings, agreed);
    connection.write(
      ...parts.map((part, n) => {
        const flags = (n === 0 ? FLAG.endStream : 0) | (n === parts.length - 1 ? FLAG.endHeaders : 0);
        return frame(n === 0 ? TYPE.headers : TYPE.continuation, flags, 1, part);
      }),
    );
    const { payload } = await connection.until(({ type, stream }) => type === TYPE.reset && stream === 1);
    expect(payload.readUInt32BE(0)).toBe(NGHTTP2_ENHANCE_YOUR_CALM);
    connection.write(ping);
    await connection.until(isPong);
  });

  test("without an end is not read completely", async () => {
    await using connection = await openFrames(gateway.url);
    connection.write(PREFACE, settings, frame(TYPE.headers, FLAG.endStream, 1, get));
    const more = frame(TYPE.continuation, FLAG.none, 1, Buffer.alloc(16_000));
    for (let sent = 0; sent < 10_000 && !connection.socket.closed; sent++)
      await new Promise((resolve) => connection.socket.write(more, resolve));
    await connection.closed;
    expect(connection.socket.bytesWritten).toBeLessThan(50_000_000);
  });
});

describe("a body", () => {
  const open = frame(TYPE.headers, FLAG.endHeaders, 1, requestBlock(CHAT.method, CHAT.path, json));
  const whole = Buffer.from('{"message":"hi"}');

  test.each([
    ["cancels it", [frame(TYPE.data, FLAG.none, 1, whole), reset(1, NGHTTP2_CANCEL)]],
    ["cancels it without a reason", [frame(TYPE.data, FLAG.none, 1, whole), reset(1, NGHTTP2_NO_ERROR)]],
  ])("that is not ended starts nothing if its sender %s", async (_, frames) => {
    const left = () => gateway.linesOf("request", { operation: "chat.send", status: 499 }).length;
    const [before, leftBefore] = [started(), left()];
    await using connection = await openFrames(gateway.url);
    connection.write(PREFACE, settings, open, ping);
    await connection.until(isPong);
    connection.write(...frames);
    await gateway.until(() => left() > leftBefore);
    expect(started()).toBe(before);
  });

  test("that differs from its declared length starts nothing", async () => {
    const before = started();
    await using connection = await openFrames(gateway.url);
    const head = requestBlock(CHAT.method, CHAT.path, { ...json, "content-length": "100" });
    connection.write(PREFACE, settings, frame(TYPE.headers, FLAG.endHeaders, 1, head));
    connection.write(frame(TYPE.data, FLAG.endStream, 1, whole));
    await connection.until(({ type, stream }) => type === TYPE.reset && stream === 1);
    expect(started()).toBe(before);
  });

  test("that does not arrive completely in time is 408", async () => {
    await using impatient = await startGateway({ requestMs: 100 });
    await using client = await openHttp2(impatient.url);
    const stream = client.open(CHAT, json);
    stream.write('{"message":');
    const { status, headers, text } = await readReply(stream);
    expect(checkReply(CHAT, status, headers, text).error).toBe("request-timeout");
    expect((await client.send(HEALTH)).status).toBe(200);
    expect(impatient.gateway.store.stats().sessions).toBe(0);
  });
});

describe("a flood", () => {
  const goesOn = async () =>
    expect((await gateway.rest.call("chat.send", { body: { message: "hi" } })).status).toBe(200);
  /** Sends until the connection is closed, and by default reads the answers. */
  const flood = async (bytes: Uint8Array, times: number, { isRead = true } = {}) => {
    await using connection = await openFrames(gateway.url);
    connection.write(PREFACE, settings);
    await connection.until(({ type }) => type === TYPE.settings);
    if (!isRead) connection.socket.pause();
    for (let sent = 0; sent < times && !connection.socket.closed; sent++) {
      const isRoom = connection.socket.write(bytes);
      if (!isRoom) await Promise.race([once(connection.socket, "drain").catch(() => {}), connection.closed]);
    }
    connection.socket.resume();
    await connection.closed;
  };

  test("of 10 000 requests that are cancelled at once ends the connection", async () => {
    await using flooded = await startGateway();
    const chat = requestBlock(CHAT.method, CHAT.path, json);
    await using connection = await openFrames(flooded.url);
    connection.write(PREFACE, settings);
    for (let n = 0; n < 10_000 && !connection.socket.closed; n += 100) {
      const frames = Array.from({ length: 100 }, (_, at) => {
        const stream = (n + at) * 2 + 1;
        return Buffer.concat([frame(TYPE.headers, FLAG.endHeaders, stream, chat), reset(stream)]);
      });
      connection.socket.write(Buffer.concat(frames));
      await new Promise(setImmediate);
    }
    await connection.closed;
    expect(flooded.gateway.store.stats().sessions).toBe(0);
    // Its further HTTP/2 connections are closed, like those of its address, and it is served over HTTP/1.1.
    await using again = await openFrames(flooded.url);
    again.write(PREFACE, settings);
    await again.closed;
    expect(again.frames).toEqual([]);
    expect((await flooded.rest.call("chat.send", { body: { message: "hi" } })).status).toBe(200);
  });

  test.each([
    ["settings", frame(TYPE.settings, FLAG.none, 0, Buffer.from([0, 3, 0, 0, 0, 100]))],
    ["pings", ping],
  ])("of %s whose answers are not read ends the connection", async (_, bytes) => {
    await flood(Buffer.concat(Array<Buffer>(1_000).fill(bytes)), 20_000, { isRead: false });
    await goesOn();
  });

  test("of connections without requests does not affect others", async () => {
    const sockets = Array.from({ length: 300 }, () => connect(Number(new URL(gateway.url).port), "127.0.0.1"));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    for (const socket of sockets) socket.write(PREFACE);
    await goesOn();
    for (const socket of sockets) socket.destroy();
  });
});

test("F29: ends the connection of a caller that guesses tokens, after its open streams are answered", async () => {
  const puppet = createPuppet();
  await using guarded = await startGateway({ makeBackend: () => puppet.backend });
  await using client = await openHttp2(guarded.url);
  const asked = client.send(CHAT, json, '{"message":"hi"}');
  const turn = await puppet.next();
  const guesses = Array.from({ length: 21 }, () => client.send(CHAT, { authorization: "Bearer a guess" }));
  expect(new Set((await Promise.all(guesses)).map(({ error }) => error))).toEqual(new Set(["unauthenticated"]));
  await expect.poll(() => client.session.closed).toBe(true);
  turn.say("hello");
  turn.end();
  expect((await asked).json.reply).toBe("hello");
  await client.closed;
});
