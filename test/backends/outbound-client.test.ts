import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import type { AnswerController } from "#backends/outbound/connection.ts";
import { fixHeaders } from "#backends/outbound/request-text.ts";
import { ask, CHUNKED, OK, open } from "./outbound-asking.ts";
import { disposable, type Say, startRaw } from "./stand-ins/raw-server.ts";

const raw = await startRaw();
const client = open();
afterAll(async () => {
  await client.close();
  await raw[Symbol.asyncDispose]();
});

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

  it("is there before the request that takes it, where a hundred are open", async () => {
    await using own = disposable(open());
    await using server = await startRaw();
    const asked = () => server.sockets.filter(({ bytesRead }) => bytesRead > 0).length;
    const askInVain = () => void ask(own, server.url).catch(() => {});
    for (let n = 0; n < 100; n++) askInVain();
    await expect.poll(asked).toBe(100);
    expect(server.sockets).toHaveLength(100);
    askInVain();
    await expect.poll(() => server.sockets.length).toBe(102);
    await expect.poll(asked).toBe(101);
    const spare = server.sockets.find(({ bytesRead }) => bytesRead === 0);
    server.say({ bytes: `${KEPT}\r\nhi` });
    expect((await ask(own, server.url)).body).toBe("hi");
    expect(spare?.bytesRead).toBeGreaterThan(0);
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

  it.each([
    ["ends", "0\r\n\r\n", ["head", "a", "b", "read", "c", "read", "end"]],
    ["breaks off", "no size", ["head", "a", "b", "read", "c", "read", "a chunk without a size"]],
  ])("says after each read that it was one, and once more before the answer %s", async (_, end, all) => {
    await using server = await startRaw();
    await using own = disposable(open());
    const heard: string[] = [];
    const ended = new Promise<void>((resolve) => {
      own.dispatch(
        { origin: server.url, path: "/", headers: {}, body: "" },
        {
          onRequestStart() {},
          onResponseStart: () => heard.push("head"),
          onResponseData: (_, bytes, from, to) => void heard.push(bytes.toString("latin1", from, to)),
          onResponseRead: () => heard.push("read"),
          onResponseEnd: () => resolve(void heard.push("end")),
          onResponseError: (_, { message }) => resolve(void heard.push(message)),
        },
      );
    });
    while (server.heard.length === 0) await new Promise((resolve) => setImmediate(resolve));
    server.sockets[0]?.write(`${CHUNKED}1\r\na\r\n1\r\nb\r\n`);
    while (!heard.includes("read")) await new Promise((resolve) => setImmediate(resolve));
    server.sockets[0]?.write(`1\r\nc\r\n${end}`);
    await ended;
    expect(heard).toEqual(all);
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
