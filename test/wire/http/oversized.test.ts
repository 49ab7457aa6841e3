import { describe, expect, test } from "vitest";
import { SECRETS, shareGateway, startGateway } from "#test/harness/gateway.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";

// F12: requests that are too large, or differ from their declaration.

const gateway = await shareGateway();
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const HEALTH = { method: "GET", path: "/healthz" };
const headers = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };
const MIB = 1024 * 1024;
const good = '{"message":"hi"}';
function messageOf(bytes: number) {
  return `{"message":"${"x".repeat(bytes - '{"message":""}'.length)}"}`;
}

describe("F12: a body", () => {
  test("at the limit is accepted, and one byte more is not", async () => {
    expect((await gateway.rest.call("chat.send", { body: messageOf(MIB) })).status).toBe(200);
    const { error, problem } = await gateway.rest.call("chat.send", { body: messageOf(MIB + 1) });
    expect(error).toBe("too-large");
    expect(problem.detail).toContain(String(MIB));
  });

  test("may have another limit", async () => {
    await using small = await startGateway({ config: { limits: { restBody: 64 } } });
    expect((await small.rest.call("chat.send", { body: messageOf(64) })).status).toBe(200);
    expect((await small.rest.call("chat.send", { body: messageOf(65) })).error).toBe("too-large");
  });

  test("with a declared length above the limit is refused before any of it arrived", async () => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(CHAT, { ...headers, "content-length": String(10 ** 12) }));
    expect((await connection.reply(CHAT)).error).toBe("too-large");
    await connection.closed;
  });

  const flood = async (head: Record<string, string>, frame: (block: Buffer) => Buffer) => {
    await using connection = await openConnection(gateway.url);
    const reply = connection.reply(CHAT);
    connection.write(requestText(CHAT, { ...headers, ...head }));
    const block = frame(Buffer.alloc(64 * 1024, " "));
    let sent = 0;
    while (sent < 100 * MIB && !connection.socket.closed) {
      await connection.flush(block);
      sent += block.length;
    }
    return { reply: await reply, taken: connection.taken() };
  };

  test.each([
    ["with its length", { "content-length": String(100 * MIB) }, (block: Buffer) => block],
    [
      "in chunks",
      { "transfer-encoding": "chunked" },
      (block: Buffer) => Buffer.concat([Buffer.from(`${block.length.toString(16)}\r\n`), block, Buffer.from("\r\n")]),
    ],
    ["in tiny chunks", { "transfer-encoding": "chunked" }, () => Buffer.from("1\r\n \r\n".repeat(8_000))],
  ])("of 100 MB %s is refused, and reading stops before its end", async (_, head, frame) => {
    const { reply, taken } = await flood(head as Record<string, string>, frame);
    expect(reply.error).toBe("too-large");
    // This is the amount that the system buffers for both ends of a connection.
    expect(taken).toBeLessThan(20 * MIB);
  });

  test("for a call that accepts none is refused in the same way", async () => {
    const place = { method: "GET", path: "/api/v1/skills/list" };
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(place, { authorization: headers.authorization, "content-length": String(100 * MIB) }));
    expect((await connection.reply(place)).error).toBe("invalid-request");
    await connection.closed;
  });

  test("shorter than its length times out", async () => {
    await using impatient = await startGateway({ requestMs: 100 });
    const reply = await exchange(impatient.url, CHAT, { ...headers, "content-length": "100" }, good);
    expect(reply.error).toBe("request-timeout");
    expect(impatient.gateway.store.stats().sessions).toBe(0);
  });

  test("longer than its length ends there, and the rest is not a request", async () => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(CHAT, { ...headers, "content-length": String(good.length) }, `${good}${good}`));
    const first = await connection.reply(CHAT);
    expect(first.json.reply).toBe("hi");
    expect((await connection.reply(CHAT)).error).toBe("invalid-request");
    await connection.closed;
  });

  test("that its sender sent partly starts nothing", async () => {
    const before = gateway.gateway.store.stats().sessions;
    await using connection = await openConnection(gateway.url);
    connection.socket.end(requestText(CHAT, { ...headers, "content-length": "100" }, good));
    expect((await connection.reply(CHAT)).error).toBe("invalid-request");
    await connection.closed;
    expect(gateway.gateway.store.stats().sessions).toBe(before);
  });

  test.each([
    ["both a length and chunks", { "content-length": "5", "transfer-encoding": "chunked" }, "0\r\n\r\n"],
    ["two lengths", { "content-length": "16\r\ncontent-length: 17" }, good],
    ["a length that is not a number", { "content-length": "sixteen" }, good],
    ["a negative length", { "content-length": "-1" }, good],
    ["a length past all numbers", { "content-length": "9".repeat(40) }, good],
    ["an invalid chunk size", { "transfer-encoding": "chunked" }, "xyz\r\n"],
    ["a chunk size past all numbers", { "transfer-encoding": "chunked" }, `${"f".repeat(20)}\r\n`],
    ["a length of one way and an end of the other", { "transfer-encoding": "chunked, identity" }, good],
  ])("that has %s is refused, and its connection closed", async (_, framing, body) => {
    const before = gateway.gateway.store.stats().sessions;
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(CHAT, { ...headers, ...(framing as Record<string, string>) }, body));
    expect((await connection.reply(CHAT)).error).toMatch(/invalid-request|too-large/);
    await connection.closed;
    expect(gateway.gateway.store.stats().sessions).toBe(before);
  });
});

describe("F12: a head", () => {
  test("with a target at the limit is read, and a longer one is 414", async () => {
    const target = (length: number) => ({ ...HEALTH, path: `/healthz?${"a".repeat(length - "/healthz?".length)}` });
    expect((await exchange(gateway.url, target(8 * 1024))).status).toBe(200);
    expect((await exchange(gateway.url, target(8 * 1024 + 1))).error).toBe("uri-too-long");
  });

  test.each([
    ["one header", { "x-padding": "a".repeat(17_000) }],
    ["many headers", Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`x-padding-${n}`, "a".repeat(90)]))],
    ["a name", { ["x".repeat(17_000)]: "a" }],
  ])("larger than 16 KiB by %s is 431, and its connection is closed", async (_, padding) => {
    await using connection = await openConnection(gateway.url);
    connection.write(requestText(HEALTH, padding as Record<string, string>));
    expect((await connection.reply(HEALTH)).error).toBe("headers-too-large");
    await connection.closed;
  });

  test("without an end is not read completely", async () => {
    await using connection = await openConnection(gateway.url);
    const reply = connection.reply(HEALTH);
    connection.write("GET /");
    for (let sent = 0; sent < 100 * MIB && !connection.socket.closed; sent += MIB)
      await connection.flush(Buffer.alloc(MIB, "a"));
    // The arrival of the bytes determines which one it is.
    expect((await reply).error).toMatch(/^(uri-too-long|headers-too-large)$/);
    expect(connection.taken()).toBeLessThan(20 * MIB);
  });
});

test("the gateway continues normally", async () => {
  expect((await gateway.rest.call("chat.send", { body: good })).json.reply).toBe("hi");
  expect(gateway.linesOf("unexpected.error")).toEqual([]);
});
