import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { ConnectionError, createRestClient, ProblemError } from "#generated/clients/rest.ts";
import { collect, serve } from "./serve.ts";

const turnId = "turn_01M7YN0XEMM1B7E5S8YF3GKP2N";
type Seen = { method: string; url: string; headers: IncomingMessage["headers"]; body: unknown };

/** A server that answers one request after the other, each in its own way. */
async function answering(...answers: ((res: ServerResponse) => void)[]) {
  const seen: Seen[] = [];
  const { url, ...served } = await serve(async (req, res) => {
    const body = await text(req);
    seen.push({
      method: String(req.method),
      url: String(req.url),
      headers: req.headers,
      body: body === "" ? undefined : JSON.parse(body),
    });
    answers[seen.length - 1]?.(res);
  });
  return { ...served, seen, client: createRestClient({ baseUrl: url, key: "secret" }) };
}

const json =
  (status: number, body: unknown, type = "application/json") =>
  (res: ServerResponse) =>
    res.writeHead(status, { "content-type": type }).end(JSON.stringify(body));
const problem = (name: string, status: number) =>
  json(
    status,
    { type: `urn:agent-gateway:error:${name}`, title: "No", status, detail: "because", request_id: "req_1" },
    "application/problem+json",
  );
const event = (name: string, id: string, data: object = {}) =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify({ turn_id: turnId, ...data })}\n\n`;
const events =
  (end: "end" | "cut" | "open", ...chunks: string[]) =>
  (res: ServerResponse) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunks.join(""), () => {
      if (end === "end") res.end();
      if (end === "cut") setTimeout(() => res.destroy(), 20);
    });
  };

describe("calls by name", () => {
  test("put each part where the contract has it, with the key", async () => {
    await using server = await answering(json(200, { status: "completed" }), json(200, { keys: [] }), (res) =>
      res.writeHead(204).end(),
    );
    const { client, seen } = server;
    const body = { message: "hi" };
    expect(await client.call("chat.send", { body, headers: { "Idempotency-Key": "k" } })).toEqual({
      status: "completed",
    });
    expect(await client.call("keys.list", { query: { limit: 2 } })).toEqual({ keys: [] });
    expect(await client.call("keys.revoke", { path: { key_id: "key/1" } })).toBeUndefined();
    expect(seen).toMatchObject([
      {
        method: "POST",
        url: "/api/v1/chat/send",
        body,
        headers: { authorization: "Bearer secret", "idempotency-key": "k", "content-type": "application/json" },
      },
      { method: "GET", url: "/api/v1/keys?limit=2", body: undefined },
      { method: "DELETE", url: "/api/v1/keys/key%2F1" },
    ]);
  });

  test("read text where the contract has text", async () => {
    await using server = await answering((res) => res.writeHead(200, { "content-type": "text/plain" }).end("up 1\n"));
    expect(await server.client.call("ops.metrics")).toBe("up 1\n");
  });

  test("throw a problem, with its name", async () => {
    await using server = await answering(problem("skill-not-found", 404), problem("from-the-future", 418));
    const error: unknown = await server.client.call("skills.list").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ProblemError);
    expect(error).toMatchObject({
      name: "skill-not-found",
      status: 404,
      message: "No: because",
      problem: { request_id: "req_1" },
    });
    await expect(server.client.http.GET("/api/v1/skills/list")).rejects.toMatchObject({ name: "unknown", status: 418 });
  });

  test("say of an answer that is none of the gateway's, and of no answer, that the connection is at fault", async () => {
    await using server = await answering((res) => res.writeHead(502, { "content-type": "text/html" }).end("<html>"));
    await expect(server.client.call("skills.list")).rejects.toThrow(new ConnectionError("HTTP 502 without a problem"));
    const gone = createRestClient({ baseUrl: "http://127.0.0.1:1", key: "" });
    await expect(gone.call("skills.list")).rejects.toBeInstanceOf(ConnectionError);
  });

  test("can be given up", async () => {
    await using server = await answering(() => {});
    await expect(server.client.call("skills.list", {}, { signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });
});

describe("streams", () => {
  const send = { body: { message: "hi" } };
  const names = async (stream: AsyncIterable<{ event: string; id: string }>) =>
    (await collect(stream)).map(({ event, id }) => `${event} ${id}`);

  test("give each event while the reply is written, and end with the turn", async () => {
    const whole = [
      event("turn.started", "1"),
      ": still here\n\n",
      event("message.delta", "2.1", { text: "h" }),
      event("turn.completed", "3"),
    ];
    await using server = await answering(events("open", ...whole));
    expect(await names(server.client.stream("chat.send", send))).toEqual([
      "turn.started 1",
      "message.delta 2.1",
      "turn.completed 3",
    ]);
    expect(server.seen[0]?.body).toEqual({ message: "hi", stream: true });
  });

  test("that are cut off, end early or meet a restart go on behind their last event", async () => {
    await using server = await answering(
      events("cut", event("turn.started", "1"), event("message.delta", "2.1")),
      problem("shutting-down", 503),
      events("end", event("message.delta", "2.5")),
      events("end", event("turn.failed", "3")),
    );
    const stream = server.client.stream("skills.trigger", { body: { skill_id: "s" } });
    expect(await names(stream)).toEqual(["turn.started 1", "message.delta 2.1", "message.delta 2.5", "turn.failed 3"]);
    expect(server.seen.map(({ method, url, headers }) => `${method} ${url} ${headers["last-event-id"]}`)).toEqual([
      "POST /api/v1/skills/trigger undefined",
      `GET /api/v1/turns/${turnId}/events 2.1`,
      `GET /api/v1/turns/${turnId}/events 2.1`,
      `GET /api/v1/turns/${turnId}/events 2.5`,
    ]);
  });

  test("for a turn begin at its start, or behind an event", async () => {
    await using server = await answering(
      events("end", event("turn.completed", "3")),
      events("end", event("turn.cancelled", "3")),
    );
    expect(await names(server.client.events(turnId))).toEqual(["turn.completed 3"]);
    expect(await names(server.client.events(turnId, { after: "2" }))).toEqual(["turn.cancelled 3"]);
    expect(server.seen.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, "2"]);
  });

  test("that are refused throw the problem, and are not tried again", async () => {
    await using server = await answering(
      problem("session-busy", 429),
      events("cut", event("turn.started", "1")),
      problem("turn-not-found", 404),
    );
    await expect(collect(server.client.stream("chat.send", send))).rejects.toMatchObject({ name: "session-busy" });
    await expect(collect(server.client.stream("chat.send", send))).rejects.toMatchObject({ name: "turn-not-found" });
    expect(server.seen).toHaveLength(3);
  });

  test("that do not come back end with an error", async () => {
    await using server = await answering(events("cut", event("turn.started", "1")), events("end"));
    await expect(collect(server.client.stream("chat.send", send, { attempts: 1 }))).rejects.toThrow(
      "the stream ended before the turn",
    );
  });

  test("are let go when their reader leaves", async () => {
    let closed = false;
    await using server = await answering((res) => {
      res.on("close", () => {
        closed = true;
      });
      events("open", event("turn.started", "1"))(res);
    });
    for await (const _ of server.client.stream("chat.send", send)) break;
    await expect.poll(() => closed).toBe(true);
  });

  test("need an answer that is a stream", async () => {
    await using server = await answering(json(202, { turn_id: turnId }));
    await expect(collect(server.client.stream("chat.send", send))).rejects.toThrow(
      "HTTP 202 instead of a stream of events",
    );
  });
});

describe("mistakes are told in words", () => {
  let baseUrl: string;
  let client: ReturnType<typeof createRestClient>;
  let call: AnyCall;
  beforeAll(async () => {
    // Nobody listens there any more.
    const server = await serve(async () => {});
    baseUrl = server.url;
    await server[Symbol.asyncDispose]();
    client = createRestClient({ baseUrl, key: "secret" });
    call = client.call as unknown as AnyCall;
  });
  type AnyCall = (operation: string, call?: object) => Promise<unknown>;

  test("a connection that fails names the operation, the address and the cause", async () => {
    await expect(client.call("skills.list")).rejects.toThrow(
      new ConnectionError(`skills.list: no answer from ${baseUrl}: connect ECONNREFUSED ${new URL(baseUrl).host}`),
    );
  });

  test("an operation that there is not", async () => {
    const words = "There is no operation chat.sned. RestOperations lists them.";
    await expect(call("chat.sned", {})).rejects.toThrow(words);
    const stream = client.stream as unknown as (operation: string, call: object) => AsyncGenerator;
    await expect(stream("chat.sned", {}).next()).rejects.toThrow(words);
  });

  test("a body that was forgotten", async () => {
    const words = 'chat.send needs a body. Pass it as `body`: call("chat.send", { body: { … } }).';
    await expect(call("chat.send", { message: "Hi" })).rejects.toThrow(words);
    await expect(call("chat.send")).rejects.toThrow(words);
    const stream = client.stream as unknown as (operation: string, call: object) => AsyncGenerator;
    await expect(stream("chat.send", { message: "Hi" }).next()).rejects.toThrow(words);
  });

  test("a problem has the id of its request", async () => {
    await using server = await answering(problem("agent-not-found", 404));
    await expect(server.client.call("skills.list")).rejects.toMatchObject({ requestId: "req_1" });
  });
});
