import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { Gateway, GatewayError, type GatewayOptions } from "#generated/clients/typescript/src/index.ts";
import { type Answer, answerServer, event, events, json, keysOf, problem, turnId } from "./answers.ts";
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

/** Sends a text again and again, for as long as the other side reads. */
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

describe("a call that would not end", () => {
  test("repeats the call at once, then after growing pauses, until its timeout", async () => {
    await using server = await answering(json(202, { status: "running", turn_id: turnId }));
    const error = await failureOf(server.client.chat.send(send, { timeoutMs: 3_000 }));
    expect(error).toMatchObject({
      name: "timeout",
      operation: "chat.send",
      turnId,
      idempotencyKey: keysOf(server.seen)[0],
    });
    expect(error.detail).toBe(
      "The turn has not ended within 3000 ms, in which the server answered 202 without waiting. Read it with `turns.get`.",
    );
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

  test("is a list that repeats a cursor", async () => {
    await using server = await answering(json(200, { keys: [{ name: "a" }], next_cursor: "same", has_more: true }));
    const names: unknown[] = [];
    const reading = (async () => {
      for await (const key of server.client.keys.list()) names.push(key);
    })();
    expect(await failureOf(reading)).toMatchObject({ name: "not-a-gateway", operation: "keys.list" });
    expect([names.length, server.seen.length]).toEqual([2, 2]);
    // The page itself can be read twice.
    const page = server.client.keys.list();
    await page;
    expect((await page).next_cursor).toBe("same");
  });

  test("is a list whose cursors form a cycle", async () => {
    let next = 0;
    await using server = await answering((res) => {
      next += 1;
      json(200, { keys: [], next_cursor: next % 2 ? "odd" : "even", has_more: true })(res);
    });
    expect(await failureOf(collect(server.client.keys.list()))).toMatchObject({ name: "not-a-gateway" });
    expect(server.seen).toHaveLength(3);
  });
});

describe("an answer of an unexpected shape is an error", () => {
  test.each([[null], [[1]], ["x"], [5], [true]])("%j in place of a reply", async (body) => {
    await using server = await answering(json(200, body));
    const { chat, keys, ops } = server.client;
    for (const call of [() => chat.send(send), () => keys.list(), () => ops.healthz()])
      expect(await failureOf(call())).toMatchObject({
        name: "not-a-gateway",
        message: expect.stringMatching(/ in place of a gateway's reply\. Is this a gateway\?$/),
      });
    expect(await failureOf(server.client.rpc.agent.list())).toMatchObject({ name: "not-a-gateway" });
  });

  test("204 in place of a reply, and a page without its list", async () => {
    await using empty = await answering((res) => res.writeHead(204).end());
    expect(await failureOf(empty.client.chat.send(send))).toMatchObject({ name: "not-a-gateway", status: 204 });
    expect(await empty.client.keys.revoke("key_1")).toBeUndefined();
    await using other = await answering(json(200, { keys: 7 }));
    expect((await failureOf(other.client.keys.list())).message).toBe(
      "keys.list: The answer has no list `keys`. Is this a gateway?",
    );
  });

  test("JSON that is cut off", async () => {
    const half: Answer = (res) => res.writeHead(200, { "content-type": "application/json" }).end('{"keys":');
    await using server = await answering(half);
    expect((await failureOf(server.client.keys.list())).message).toMatch(/ is broken: the reply is not valid JSON\.$/);
  });

  test("JSON in place of a stream is named as such", async () => {
    await using server = await answering(json(200, {}));
    expect((await failureOf(collect(server.client.chat.stream(send)))).message).toMatch(
      /answered application\/json in place of a stream of events\. Is this a gateway\?$/,
    );
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

  test.each([
    ["not JSON", "turn.started", "1", "nothing"],
    ["without a turn", "turn.started", "1", "{}"],
    ["a list", "turn.started", "1", '["turn_id"]'],
    ["of a turn that is not text", "turn.started", "1", '{"turn_id":{}}'],
    ["of a turn that is another path", "turn.started", "1", '{"turn_id":".."}'],
    ["with an id that no header can have", "turn.started", "€", '{"turn_id":"t"}'],
    ["a piece without a text", "message.delta", "1", '{"turn_id":"t"}'],
    ["a piece at no place", "message.delta", "1", '{"turn_id":"t","text":"x","offset":-3}'],
    ["a failure without an error", "turn.failed", "1", '{"turn_id":"t","error":7}'],
    ["a failure without a name", "turn.failed", "1", '{"turn_id":"t","error":{"name":5}}'],
  ])("an event that is %s", async (_, name, id, data) => {
    await using server = await answering(events("end", `event: ${name}\nid: ${id}\ndata: ${data}\n\n`));
    const error = await failureOf(collect(server.client.chat.stream(send)));
    expect([error.name, error.message]).toEqual([
      "not-a-gateway",
      expect.stringMatching(/^An event is not .*\. Is this a gateway\?$/),
    ]);
    expect(server.seen).toHaveLength(1);
  });

  test("a stream that repeats its event", async () => {
    await using server = await answering(events("end", event("turn.started", "1")));
    const error = await failureOf(collect(server.client.chat.stream(send)));
    expect(error.detail).toBe("The stream was lost several times in a row.");
    expect(server.seen).toHaveLength(6);
  });

  test("a cursor that is not text", async () => {
    await using server = await answering(json(200, { keys: [], next_cursor: 5 }));
    expect((await failureOf(collect(server.client.keys.list()))).detail).toBe(
      "The `next_cursor` of the answer is not text. Is this a gateway?",
    );
  });

  test("the detail of a refusal is still shown", async () => {
    await using server = await answering(problem("turn-ended", 409));
    expect((await failureOf(server.client.chat.send(send))).message).toBe("chat.send: Because.");
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
