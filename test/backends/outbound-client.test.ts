import { once } from "node:events";
import type { Socket } from "node:net";
import { Pool } from "undici";
import { afterAll, describe, expect, it } from "vitest";
import type { AnswerHeaders } from "#backends/outbound/answer-head.ts";
import { AnswerReader } from "#backends/outbound/answer-reader.ts";
import { Client } from "#backends/outbound/client.ts";
import type { AnswerController } from "#backends/outbound/connection.ts";
import { fixHeaders } from "#backends/outbound/request-text.ts";
import { systemClock } from "#core/clock.ts";
import { disposable, type Say, startRaw } from "./stand-ins/raw-server.ts";

type Told = { status: number; headers: AnswerHeaders; body: string };

const open = () => new Client(2_000, systemClock);
const ask = (client: Client, origin: string, body = "{}", headers: Record<string, string> = {}): Promise<Told> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let head: Pick<Told, "status" | "headers"> | undefined;
    client.dispatch(
      { origin, path: "/turns", headers, body },
      {
        onRequestStart() {},
        onResponseStart(_, status, headers) {
          head = { status, headers };
        },
        onResponseData: (_, bytes, from, to) => void parts.push(Buffer.from(bytes.subarray(from, to))),
        onResponseEnd: () => resolve({ ...(head as Told), body: Buffer.concat(parts).toString("latin1") }),
        onResponseError: (_, error) => reject(error),
      },
    );
  });

const OK = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
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

describe("a connection", () => {
  const KEPT = `${OK}content-length: 2\r\n`;
  const connectionsFor = async (first: Say, between = async () => {}) => {
    await using server = await startRaw();
    await using own = disposable(open());
    server.say(first);
    await ask(own, server.url);
    await between();
    // By then it is known what else came with the answer.
    await new Promise((resolve) => setImmediate(resolve));
    server.say({ bytes: `${KEPT}\r\nok` });
    expect((await ask(own, server.url)).body).toBe("ok");
    return server.sockets.length;
  };

  it("is used again", async () => {
    expect(await connectionsFor({ bytes: `${KEPT}\r\nhi` })).toBe(1);
    expect(await connectionsFor({ bytes: `${CHUNKED}0\r\n\r\n` })).toBe(1);
    expect(
      await connectionsFor({ bytes: `HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 0\r\n\r\n` }),
    ).toBe(1);
  });

  it.each<[string, Say]>([
    ["says that it closes", { bytes: `${KEPT}Connection: close\r\n\r\nhi` }],
    ["is old and does not say that it stays", { bytes: "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi" }],
    ["keeps it for no longer than a moment", { bytes: `${KEPT}keep-alive: timeout=1\r\n\r\nhi` }],
    ["says more than was asked", { bytes: `${KEPT}\r\nhi${OK}content-length: 6\r\n\r\nforged` }],
    ["has closed it", { bytes: `${OK}\r\nhi`, end: true }],
  ])("is not used again where its server %s", async (_, say) => {
    expect(await connectionsFor(say)).toBe(2);
  });

  it("is left where its server says something that nobody asked for", async () => {
    await using server = await startRaw();
    await using own = disposable(open());
    server.say({ bytes: `${KEPT}\r\nhi` });
    await ask(own, server.url);
    const [socket] = server.sockets as [Socket];
    socket.write(`${KEPT}\r\nno`);
    await once(socket, "close");
    expect((await ask(own, server.url)).body).toBe("hi");
    expect(server.sockets).toHaveLength(2);
  });

  it("is left where that comes while a request is on its way to it", async () => {
    await using server = await startRaw();
    await using own = disposable(open());
    server.say({ bytes: `${KEPT}\r\nhi` });
    await ask(own, server.url);
    const [socket] = server.sockets as [Socket];
    await new Promise((resolve) => setImmediate(resolve));
    // Read as soon as this process waits for anything: before the request is written.
    await new Promise((resolve) => socket.write(`${KEPT}\r\nno`, resolve));
    await ask(own, server.url).then(
      ({ body }) => expect([body, server.sockets.length]).toEqual(["hi", 2]),
      (error: Error) => expect(error.message).toBe("the connection was left"),
    );
  });

  it("is closed as soon as its request is aborted, and the handler hears of it once", async () => {
    await using server = await startRaw();
    await using own = disposable(open());
    const errors: Error[] = [];
    let controller: AnswerController | undefined;
    const handler = {
      onRequestStart(one: AnswerController) {
        controller = one;
      },
      onResponseStart() {},
      onResponseData() {},
      onResponseEnd: () => expect.unreachable(),
      onResponseError: (_: unknown, error: Error) => void errors.push(error),
    };
    own.dispatch({ origin: server.url, path: "/", headers: {}, body: "" }, handler);
    while (server.heard.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller?.abort(new Error("enough"));
    await once(server.sockets[0] as Socket, "close");
    expect(errors.map(({ message }) => message)).toEqual(["enough"]);
    // Before there is a connection, too.
    own.dispatch({ origin: server.url, path: "/", headers: {}, body: "" }, handler);
    controller?.abort(new Error("again"));
    expect(errors.map(({ message }) => message)).toEqual(["enough", "again"]);
  });

  it("is read no further while its reader has enough", async () => {
    await using server = await startRaw();
    await using own = disposable(open());
    const BYTES = 16 * 1024 * 1024;
    server.say({ bytes: `${OK}content-length: ${BYTES}\r\n\r\n${"x".repeat(BYTES)}` });
    let received = 0;
    let controller: AnswerController | undefined;
    const ended = new Promise<void>((resolve, reject) => {
      own.dispatch(
        { origin: server.url, path: "/", headers: {}, body: "" },
        {
          onRequestStart(one) {
            controller = one;
          },
          onResponseStart: (one) => one.pause(),
          onResponseData(_, _bytes, from, to) {
            received += to - from;
          },
          onResponseEnd: () => resolve(),
          onResponseError: (_, error) => reject(error),
        },
      );
    });
    while (received === 0) await new Promise((resolve) => setImmediate(resolve));
    raw.say({ bytes: `${KEPT}\r\nhi` });
    for (let n = 0; n < 20; n++) await ask(client, raw.url);
    expect(received).toBeLessThan(BYTES / 4);
    controller?.resume();
    await ended;
    expect(received).toBe(BYTES);
  });

  it("stays until its answer is whole when the client is closed, and then takes no more", async () => {
    await using server = await startRaw();
    const own = open();
    const asked = ask(own, server.url);
    while (server.heard.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const closed = own.close();
    server.sockets[0]?.write(`${KEPT}\r\nhi`);
    expect((await asked).body).toBe("hi");
    await closed;
    await expect(ask(own, server.url)).rejects.toThrow("closed");
  });
});

describe("a request", () => {
  it("is one head and one body, whatever is in them", async () => {
    raw.say({ bytes: `${OK}content-length: 0\r\n\r\n` });
    raw.heard.length = 0;
    await ask(client, raw.url, "plain", { "x-a": "\xe9" });
    await ask(client, raw.url, "é\ud83d\ude42", { Host: "other.example" });
    expect(raw.heard.join("")).toBe(
      `POST /turns HTTP/1.1\r\nhost: ${new URL(raw.url).host}\r\nconnection: keep-alive\r\nx-a: \xe9\r\ncontent-length: 5\r\n\r\nplain` +
        `POST /turns HTTP/1.1\r\nconnection: keep-alive\r\nHost: other.example\r\ncontent-length: 6\r\n\r\n${Buffer.from("é🙂").toString("latin1")}`,
    );
  });

  it.each([
    ["x-a", "a\r\nb: c"],
    ["x-a", "a\0"],
    ["x-a", "\u0100"],
    ["x a", "b"],
    ["transfer-encoding", "chunked"],
  ])("is not sent with a header that is none: %j", async (name, value) => {
    const headers = { [name]: value };
    await expect(ask(client, raw.url, "", headers)).rejects.toMatchObject({ code: "UND_ERR_INVALID_ARG" });
    expect(() => fixHeaders(headers)).toThrow("cannot be sent");
  });

  it("is not sent where nobody listens", async () => {
    const gone = await startRaw();
    await gone[Symbol.asyncDispose]();
    await expect(ask(client, gone.url)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});
