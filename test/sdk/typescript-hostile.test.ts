import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { Gateway, GatewayError, type GatewayOptions } from "#generated/clients/typescript/src/index.ts";
import { type Answer, answerServer, event, events, json, keysOf, problem, turnId } from "./answers.ts";
import { ODD_EVENTS } from "./scenes.ts";
import { collect } from "./serve.ts";

/** A server that gives every request the same answer, and a client for it. */
async function answering(answer: Answer, options: GatewayOptions = {}) {
  const server = await answerServer(Array.from({ length: 1_000 }, () => answer));
  const client = new Gateway({ url: server.url, key: "secret", rpcToken: "rpc", maxRetries: 0, ...options });
  return { ...server, client };
}

async function failureOf(call: PromiseLike<unknown>): Promise<GatewayError> {
  const error = await Promise.resolve(call).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}

const send = { message: "Hello" };
const mebibyte = Buffer.alloc(1024 * 1024, "x");

/** Sends a text again and again while the other side reads. */
function endless(status: number, type: string, text: Buffer): Answer {
  return (res) => {
    res.writeHead(status, { "content-type": type });
    const more = (): void => {
      while (!res.destroyed && res.write(text));
      res.once("drain", more);
    };
    more();
  };
}

describe("an endless answer is not read to its end", () => {
  const tooLarge = /The answer from 127\.0\.0\.1:\d+ is broken: the answer is larger than 64 MiB\.$/;

  test.each<[string, Answer]>([
    ["a reply", endless(200, "application/json", mebibyte)],
    ["a refusal", endless(500, "application/problem+json", mebibyte)],
    [
      "a reply that grows when it is decompressed",
      (res) =>
        res
          .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
          .end(gzipSync(Buffer.alloc(65 * 1024 * 1024, "0"), { level: 1 })),
    ],
  ])("%s", async (_, answer) => {
    await using server = await answering(answer);
    for (const call of [() => server.client.chat.send(send), () => server.client.rpc.agent.list()]) {
      const error = await failureOf(call());
      expect([error.name, error.message]).toEqual(["connection-failed", expect.stringMatching(tooLarge)]);
    }
  });

  test("text", async () => {
    await using server = await answering(endless(200, "text/plain", mebibyte));
    expect((await failureOf(server.client.ops.metrics())).message).toMatch(tooLarge);
  });

  test.each([
    ["a line of a stream", mebibyte],
    ["an event of many lines", Buffer.from("data: xxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(20_000))],
    ["an event with comments", Buffer.from(`data: {\n${": comment\n".repeat(20_000)}`)],
  ])("%s", async (_, text) => {
    await using server = await answering(endless(200, "text/event-stream", text));
    const error = await failureOf(collect(server.client.chat.stream(send)));
    expect(error.message).toMatch(/^chat\.stream: The answer from .* is broken: an event is larger than 16 MiB\.$/);
  });

  test("an event of 15 MiB is read", async () => {
    const text = "x".repeat(15 * 1024 * 1024);
    await using server = await answering(
      events("end", event("message.completed", "1", { text }), event("turn.completed", "2")),
    );
    expect(await collect(server.client.chat.stream(send).text())).toEqual([text]);
  });
});

describe("a call that would never end", () => {
  test("repeats the call at once, then after growing pauses, until its timeout", async () => {
    await using server = await answering(json(202, { status: "running", turn_id: turnId }));
    const error = await failureOf(server.client.chat.send(send, { timeoutMs: 3_000 }));
    expect(error).toMatchObject({
      name: "timeout",
      operation: "chat.send",
      turnId,
      idempotencyKey: keysOf(server.seen)[0],
    });
    expect(error.detail).toBe("The turn has not ended within 3000 ms. Read it with `turns.get`.");
    // After 0, 250, 500 and 1 000 ms. The time of the calls themselves does not count.
    expect(server.seen.length).toBeGreaterThan(1);
    expect(server.seen.length).toBeLessThan(6);
    expect(new Set(keysOf(server.seen)).size).toBe(1);
  });

  test("ends at its signal, also in a pause", async () => {
    await using server = await answering(json(202, { status: "running", turn_id: turnId }));
    const stop = new AbortController();
    const call = server.client.chat.send(send, { signal: stop.signal });
    await expect.poll(() => server.seen.length).toBeGreaterThan(2);
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });
});

describe("an answer of an unexpected shape is an error", () => {
  test.each([[null], [[1]], ["x"], [5], [true]])("%j instead of an RPC reply", async (body) => {
    await using server = await answering(json(200, body));
    expect(await failureOf(server.client.rpc.agent.list())).toMatchObject({ name: "not-a-gateway" });
  });

  test.each([
    [{ type: 5, title: {}, detail: ["x"], retry_after_ms: "soon", errors: 7 }, "http-409"],
    [[], "http-409"],
    [null, "http-409"],
    [{ type: "a#turn-ended", title: null, detail: 3, request_id: {}, turn_id: [], errors: [1, {}] }, "turn-ended"],
  ])("a refusal %j", async (body, name) => {
    await using server = await answering(json(409, body, { "content-type": "application/problem+json" }));
    const error = await failureOf(server.client.chat.send(send));
    expect(error).toMatchObject({ name, status: 409, detail: undefined, turnId: undefined, requestId: "req_9" });
    expect([typeof error.title, typeof error.message, Array.isArray(error.faults)]).toEqual(["string", "string", true]);
  });

  test.each([[7], [{ data: 5 }], [{ code: "x", message: {}, data: { name: 5, detail: {}, retryAfterMs: "x" } }]])(
    "an RPC error %j",
    async (error) => {
      const answer: Answer = (res) => json(200, { jsonrpc: "2.0", id: null, error })(res);
      await using server = await answering(answer);
      const failure = await failureOf(server.client.rpc.agent.list());
      expect([
        typeof failure.name,
        typeof failure.message,
        failure.detail === undefined || typeof failure.detail,
      ]).toEqual(["string", "string", typeof error === "number" ? "string" : true]);
    },
  );

  test.each(ODD_EVENTS)("an event that is %s", async (_, text) => {
    await using server = await answering(events("end", text));
    const error = await failureOf(collect(server.client.chat.stream(send)));
    expect([error.name, error.message]).toEqual([
      "not-a-gateway",
      expect.stringMatching(/^An event is not .*\. Is this a gateway\?$/),
    ]);
    expect(server.seen).toHaveLength(1);
  });

  test("a list that repeats a cursor, whose page can be read twice", async () => {
    await using server = await answering(json(200, { keys: [], next_cursor: "same" }));
    const page = server.client.keys.list();
    await page;
    expect((await page).next_cursor).toBe("same");
    expect(await failureOf(collect(page))).toMatchObject({ name: "not-a-gateway", operation: "keys.list" });
  });

  test("a stream that repeats its event", async () => {
    await using server = await answering(events("end", event("turn.started", "1")));
    const error = await failureOf(collect(server.client.chat.stream(send)));
    expect(error.detail).toBe("The stream was lost several times in a row.");
    expect(server.seen).toHaveLength(6);
  });
});

test("a refused token is named", async () => {
  await using server = await answering(problem("unauthenticated", 401));
  const { client } = server;
  const detailOf = async (call: PromiseLike<unknown>) => (await failureOf(call)).detail;
  expect(await detailOf(client.keys.list())).toBe("The given REST key was refused. Because.");
  expect(await detailOf(client.ops.metrics())).toBe("The given RPC token was refused. Because.");
  expect(await detailOf(client.ops.healthz())).toBe("Because.");
});

describe("a mistake is refused before anything is sent", () => {
  test("an id that changes the path", async () => {
    await using server = await answering(json(200, {}));
    for (const id of ["", ".", "..", undefined as unknown as string])
      expect(() => server.client.turns.get(id)).toThrow(
        new TypeError(`"${id ?? ""}" cannot be a part of a path: pass an id or a name.`),
      );
    expect(server.seen).toEqual([]);
    await server.client.turns.get("../keys");
    expect(server.seen[0]?.url).toBe("/api/v1/turns/..%2Fkeys");
  });

  test("a timeout longer than a timer allows, and endless retries", async () => {
    await using server = await answering(json(200, { keys: [] }));
    for (const timeoutMs of [
      0,
      -1,
      2 ** 31,
      1e12,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      "5" as unknown as number,
      null as unknown as number,
    ]) {
      const words = `\`timeoutMs\` is ${timeoutMs}. It must be a positive number of milliseconds, at most 2147483647.`;
      expect(() => new Gateway({ key: "k", timeoutMs })).toThrow(new TypeError(words));
      expect(() => server.client.keys.list({}, { timeoutMs })).toThrow(new TypeError(words));
      expect(() => server.client.rpc.agent.list({}, { timeoutMs })).toThrow(new TypeError(words));
    }
    for (const maxRetries of [-1, 0.5, Number.NaN])
      expect(() => new Gateway({ key: "k", maxRetries })).toThrow("`maxRetries` is ");
    expect(server.seen).toEqual([]);
    expect(await server.client.keys.list({}, { timeoutMs: 2 ** 31 - 1 })).toEqual({ keys: [] });
  });

  test("a url with a password, which the error does not show", () => {
    for (const url of [
      "ftp://user:s3cret@host/",
      "http://user:s3cret@host:99999/",
      "user:s3cret@host",
      "ftp://user:s3/c@r3@host",
      "ftp://host/?key=s3cret",
      "http://host:99999/?key=s3cret#s3cret",
    ]) {
      expect(() => new Gateway({ url, key: "k" })).toThrow(/^The gateway's url .*host/);
      expect(() => new Gateway({ url, key: "k" })).not.toThrow(/s3|r3/);
    }
  });

  test("a token or a header that HTTP cannot carry", async () => {
    const fetch = vi.fn();
    expect(() => new Gateway({ key: "s3cret€" })).toThrow(
      /^`key` holds a character that HTTP cannot carry in a header/,
    );
    const client = new Gateway({ key: "k", fetch });
    expect(() => client.keys.list({}, { headers: { "x-note": "€" } })).toThrow(TypeError);
    expect(() => client.chat.send(send, { idempotencyKey: "a\r\nb" })).toThrow(TypeError);
    expect(fetch).not.toHaveBeenCalled();
  });
});
