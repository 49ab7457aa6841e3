import { once } from "node:events";
import { Pool } from "undici";
import { afterAll, describe, expect, it } from "vitest";
import { AnswerReader } from "#backends/outbound/answer-reader.ts";
import { ask, CHUNKED, OK, open } from "./outbound-asking.ts";
import { disposable, type Say, startRaw } from "./stand-ins/raw-server.ts";

const GOOD: Record<string, Say> = {
  "a body of a length": { bytes: `${OK}Content-Length: 5\r\n\r\nhello` },
  "no body": { bytes: `${OK}content-length: 0\r\n\r\n` },
  chunks: { bytes: `${CHUNKED}5\r\nhello\r\n1;a=b\r\n!\r\nA\r\n0123456789\r\n0\r\n\r\n` },
  "chunks with trailers": { bytes: `${CHUNKED}2\r\nhi\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n` },
  "a body until the end": { bytes: `${OK}\r\nso far`, end: true },
  "an old answer": { bytes: "HTTP/1.0 200 OK\r\n\r\nold", end: true },
  "no content": { bytes: "HTTP/1.1 204 No Content\r\nx: y\r\n\r\n" },
  "an error": { bytes: "HTTP/1.1 503\r\nretry-after:  7\r\ncontent-length: 2\r\n\r\nno" },
  "a header twice": { bytes: `${OK}x-a: 1\r\nX-A: 2\r\ncontent-length: 0\r\n\r\n` },
  "letters of Latin 1": { bytes: "HTTP/1.1 200 Tr\xe8s bien\r\nx: \xe9\r\ncontent-length: 1\r\n\r\n\xff" },
};
/** What no answer is, or what could be read in two ways. */
const BAD: Record<string, Say> = {
  "no HTTP": { bytes: "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" },
  "another version": { bytes: "HTTP/2.0 200 OK\r\n\r\n" },
  "a status that is none": { bytes: "HTTP/1.1 2000 OK\r\n\r\n" },
  "a line without a colon": { bytes: `${OK}hello\r\ncontent-length: 0\r\n\r\n` },
  "a space before the colon": { bytes: `${OK}content-length : 0\r\n\r\n` },
  "a line that is folded": { bytes: `${OK}x: a\r\n b\r\ncontent-length: 0\r\n\r\n` },
  "a bare line feed": { bytes: `${OK}x: a\nb: c\r\ncontent-length: 0\r\n\r\n` },
  "a zero in a header": { bytes: `${OK}x: a\0b\r\ncontent-length: 0\r\n\r\n` },
  "a length with a sign": { bytes: `${OK}content-length: +1\r\n\r\na` },
  "two lengths": { bytes: `${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab` },
  "a length and chunks": { bytes: `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n` },
  "an encoding that is not known": { bytes: `${OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n` },
  "a chunk without a size": { bytes: `${CHUNKED}\r\nhello\r\n0\r\n\r\n` },
  "a chunk's size that is none": { bytes: `${CHUNKED}5x\r\nhello\r\n0\r\n\r\n` },
  "a chunk that is longer than it says": { bytes: `${CHUNKED}4\r\nhello\r\n0\r\n\r\n` },
  "a chunk of too many digits": { bytes: `${CHUNKED}000000005\r\nhello\r\n0\r\n\r\n` },
  "a switch of protocols": { bytes: "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" },
  "an end before the end": { bytes: `${OK}content-length: 9\r\n\r\nhello`, end: true },
  "an end between chunks": { bytes: `${CHUNKED}5\r\nhello\r\n`, end: true },
  "an end in the head": { bytes: OK, end: true },
  "interim heads without end": { bytes: "HTTP/1.1 102 Processing\r\n\r\n".repeat(30) },
  "a head that is too long": { bytes: `${OK}${`x: ${"y".repeat(8_000)}\r\n`.repeat(5)}\r\n` },
  "a trailer that is too long": { bytes: `${CHUNKED}0\r\n${`x: ${"y".repeat(8_000)}\r\n`.repeat(5)}\r\n` },
};

const raw = await startRaw();
const client = open();
afterAll(async () => {
  await client.close();
  await raw[Symbol.asyncDispose]();
});

describe("an answer over HTTP/1.1", () => {
  it.each(Object.entries(GOOD))("is read as undici reads it: %s", async (_, say) => {
    raw.say(say);
    await using pool = disposable(new Pool(raw.url));
    const theirs = await pool.request({ path: "/", method: "POST", body: "{}" });
    const body = Buffer.from(await theirs.body.arrayBuffer()).toString("latin1");
    const ours = await ask(client, raw.url);
    expect({ ...ours, headers: { ...ours.headers } }).toEqual({
      status: theirs.statusCode,
      headers: theirs.headers,
      body,
    });
  });

  it.each(Object.entries(BAD))("is refused, and its connection closed: %s", async (_, say) => {
    raw.say(say);
    const known = raw.sockets.length;
    await expect(ask(client, raw.url)).rejects.toMatchObject({ code: expect.stringMatching(/^HPE_|^ECONNRESET$/) });
    for (const socket of raw.sockets.slice(known)) if (!socket.destroyed) await once(socket, "close");
  });

  it("comes behind heads that are no answer yet", async () => {
    raw.say({ bytes: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${GOOD.chunks?.bytes}` });
    expect(await ask(client, raw.url)).toMatchObject({ status: 200, body: "hello!0123456789" });
  });

  it("is the same however its bytes are cut", () => {
    const all = Object.values(GOOD).concat({ bytes: `HTTP/1.1 100 Continue\r\n\r\n${GOOD.chunks?.bytes}` });
    for (const { bytes: said, end } of all) {
      const bytes = Buffer.from(said, "latin1");
      const whole = readIn([bytes], end);
      expect(whole.isWhole).toBe(true);
      for (let at = 1; at < bytes.length; at++)
        expect(readIn([bytes.subarray(0, at), bytes.subarray(at)], end)).toEqual(whole);
      expect(
        readIn(
          Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)),
          end,
        ),
      ).toEqual(whole);
    }
  });
});

const STALE = Buffer.from("3\r\nold\r\n0\r\n\r\n");

const readIn = (parts: readonly Buffer[], end = false) => {
  const told = { heads: [] as unknown[], body: "", isWhole: false, keepMs: -1 };
  const reader = new AnswerReader({
    head: (status, headers) => void told.heads.push([status, headers]),
    body(bytes, from, to) {
      told.body += bytes.toString("latin1", from, to);
    },
    whole: (keepMs) => void Object.assign(told, { isWhole: true, keepMs }),
  });
  // Behind it stands what was read before.
  for (const part of parts) expect(reader.push(Buffer.concat([part, STALE]), part.length)).toBe(part.length);
  if (end) reader.close();
  return told;
};
