import { describe, expect, test } from "vitest";
import { type Answer, cut, event as eventOf, events, json, keysOf, problem, soon, turnId } from "./answers.ts";
import { collect } from "./serve.ts";
import { answering, failureOf } from "./typescript-client.ts";

/** The fields that an event cannot be without. */
const FIELDS: Record<string, object> = {
  "message.delta": { offset: 0, text: "" },
  "message.completed": { text: "" },
  "turn.failed": { error: { name: "turn-failed", title: "Turn failed", detail: "It failed." } },
};
function event(name: string, id: string, data: object = {}): string {
  return eventOf(name, id, { ...FIELDS[name], ...data });
}

describe("a call", () => {
  test("puts each part where the contract has it, with the token of its door", async () => {
    await using server = await answering([
      json(200, { keys: [] }),
      (res) => res.writeHead(204).end(),
      json(200, {}),
      json(200, {}),
    ]);
    const { client, seen } = server;
    expect(await client.keys.list({ limit: 2 })).toEqual({ keys: [] });
    expect(await client.keys.revoke("key/1")).toBeUndefined();
    await client.hooks.mappedByName(
      "git hub",
      { ref: "main" },
      { idempotencyKey: "k", headers: { "x-github-event": "push" } },
    );
    await client.ops.healthz();
    expect(seen).toMatchObject([
      { method: "GET", url: "/api/v1/keys?limit=2", body: undefined, headers: { authorization: "Bearer secret" } },
      { method: "DELETE", url: "/api/v1/keys/key%2F1" },
      {
        method: "POST",
        url: "/hooks/git%20hub",
        body: { ref: "main" },
        headers: {
          authorization: "Bearer hook",
          "idempotency-key": "k",
          "content-type": "application/json",
          "x-github-event": "push",
        },
      },
      { url: "/healthz" },
    ]);
    expect(seen[3]?.headers).not.toHaveProperty("authorization");
  });

  test("goes to the path that the gateway has its webhooks under", async () => {
    await using server = await answering([json(200, {}), json(200, {})], { webhookPath: "/in/hooks/" });
    await server.client.hooks.wake({ text: "up" });
    await server.client.hooks.mapped({});
    expect(server.seen.map(({ url }) => url)).toEqual(["/in/hooks/wake", "/in/hooks"]);
  });

  test("gives text where the contract has text", async () => {
    await using server = await answering(
      [(res) => res.writeHead(200, { "content-type": "text/plain" }).end("up 1\n")],
      { rpcToken: "r" },
    );
    expect(await server.client.ops.metrics()).toBe("up 1\n");
    expect(server.seen[0]?.headers.authorization).toBe("Bearer r");
  });

  test("has the request's id on its reply, which is not among its fields, and the response if asked", async () => {
    await using server = await answering([json(200, { turn_id: turnId }), json(200, { turn_id: turnId })]);
    const turn = await server.client.turns.get(turnId);
    expect([turn.requestId, JSON.stringify(turn)]).toEqual(["req_9", `{"turn_id":"${turnId}"}`]);
    const { data, response, requestId } = await server.client.turns.get(turnId).withResponse();
    expect([data, response.status, requestId]).toEqual([{ turn_id: turnId }, 200, "req_9"]);
  });

  test("gives what a gateway that is not ready says of its parts", async () => {
    const readiness = { ready: false, parts: { store: { ok: false, detail: "gone" } } };
    await using server = await answering([json(503, readiness)]);
    expect(await server.client.ops.readyz()).toEqual(readiness);
    expect(server.seen).toHaveLength(1);
  });

  test("can be given up, with the caller's own reason", async () => {
    const caller = new AbortController();
    await using server = await answering([() => caller.abort(new Error("the caller left"))]);
    await expect(server.client.skills.list({ signal: caller.signal })).rejects.toThrow("the caller left");
    await expect(server.client.skills.list({ signal: AbortSignal.abort(new Error("no")) })).rejects.toThrow("no");
    expect(server.seen).toHaveLength(1);
  });
});

describe("send", () => {
  test("asks again with its key until the turn has ended", async () => {
    const accepted = json(202, { status: "running", turn_id: turnId });
    await using server = await answering([accepted, accepted, json(200, { status: "completed", reply: "Done." })]);
    expect(await server.client.chat.send({ message: "hi" })).toMatchObject({ reply: "Done." });
    expect(new Set(keysOf(server.seen)).size).toBe(1);
    expect(server.seen.map(({ body }) => body)).toEqual([{ message: "hi" }, { message: "hi" }, { message: "hi" }]);
  });

  test("start asks not to wait", async () => {
    await using server = await answering([json(202, { status: "queued", turn_id: turnId })]);
    expect(await server.client.skills.start({ skill_id: "s" })).toMatchObject({ turn_id: turnId });
    expect(server.seen[0]?.body).toEqual({ skill_id: "s", wait: false });
  });
});

describe("pages", () => {
  test("are read one after the other, and each by itself", async () => {
    const page = (ids: string[], next: string | null) =>
      json(200, { turns: ids.map((id) => ({ turn_id: id })), next_cursor: next });
    await using server = await answering([
      page(["a", "b"], "c1"),
      page([], "c2"),
      page(["c"], null),
      page(["a"], "c1"),
    ]);
    const turns = await collect(server.client.turns.list({ status: "failed" }));
    expect(turns.map(({ turn_id }) => turn_id)).toEqual(["a", "b", "c"]);
    expect(server.seen.map(({ url }) => url)).toEqual([
      "/api/v1/turns?status=failed",
      "/api/v1/turns?status=failed&cursor=c1",
      "/api/v1/turns?status=failed&cursor=c2",
    ]);
    expect(await server.client.turns.list()).toMatchObject({ next_cursor: "c1" });
    expect(server.seen).toHaveLength(4);
  });
});

describe("another attempt", () => {
  const good = json(200, { status: "completed", reply: "hi" });

  test("follows a lost connection, 408, 429, 500, 502 and 503, with one key for all", async () => {
    const gone: Answer = (res) => res.writeHead(502, { "content-type": "text/html", "retry-after": "0" }).end("<html>");
    for (const fault of [cut, gone, ...[408, 429, 500, 503].map((status) => problem("rate-limited", status, soon))]) {
      await using server = await answering([fault, good]);
      await server.client.chat.send({ message: "hi" });
      expect(server.seen).toHaveLength(2);
      expect(new Set(keysOf(server.seen)).size).toBe(1);
    }
  });

  test("follows a 409 while the first call is being stored, and no other 409", async () => {
    await using server = await answering([
      problem("idempotency-in-progress", 409, soon),
      good,
      problem("session-conflict", 409, soon),
    ]);
    await server.client.chat.send({ message: "hi" });
    expect(await failureOf(server.client.chat.send({ message: "hi" }))).toMatchObject({ name: "session-conflict" });
    expect(server.seen).toHaveLength(3);
  });

  test("is made twice at most, and the error has the key of the call", async () => {
    await using server = await answering([1, 2, 3, 4].map(() => problem("gateway-busy", 503, soon)));
    const error = await failureOf(server.client.chat.send({ message: "hi" }));
    expect(error).toMatchObject({ name: "gateway-busy", status: 503, retryAfterMs: 1, requestId: "req_1" });
    expect(keysOf(server.seen)).toEqual([error.idempotencyKey, error.idempotencyKey, error.idempotencyKey]);
    expect(await failureOf(server.client.chat.send({ message: "hi" }, { maxRetries: 0 }))).toMatchObject({
      name: "gateway-busy",
    });
    expect(server.seen).toHaveLength(4);
  });

  test("is not made after the request was refused, nor after the turn has ended", async () => {
    await using server = await answering([
      problem("skill-not-found", 404),
      problem("turn-failed", 502, { turn_id: turnId }),
    ]);
    expect(await failureOf(server.client.chat.send({ message: "hi" }))).toMatchObject({
      name: "skill-not-found",
      status: 404,
    });
    expect(await failureOf(server.client.chat.send({ message: "hi" }))).toMatchObject({ name: "turn-failed", turnId });
    expect(server.seen).toHaveLength(2);
  });

  test("is left to the caller where the gateway asks for more than a minute", async () => {
    await using server = await answering([problem("rate-limited", 429, { retry_after_ms: 61_000 })]);
    expect(await failureOf(server.client.skills.list())).toMatchObject({ retryAfterMs: 61_000 });
  });

  test("of a call that must not be done twice follows only what began nothing", async () => {
    await using server = await answering([problem("rate-limited", 429, soon), cut, problem("internal", 500)]);
    const { keys } = server.client;
    expect(await failureOf(keys.create({ name: "ci" }))).toMatchObject({ name: "connection-failed" });
    expect(await failureOf(keys.create({ name: "ci" }))).toMatchObject({ name: "internal" });
    expect(server.seen).toHaveLength(3);
  });
});

describe("streams", () => {
  const send = { message: "hi" };
  const names = async (stream: AsyncIterable<{ event: string; id: string }>) =>
    (await collect(stream)).map(({ event, id }) => `${event} ${id}`);

  test("give each event while the reply is written, and end with the turn", async () => {
    const whole = [
      event("turn.started", "1"),
      ": still here\n\n",
      event("message.delta", "2.1", { text: "h" }),
      event("turn.completed", "3"),
    ];
    await using server = await answering([events("open", ...whole)]);
    expect(await names(server.client.chat.stream(send))).toEqual([
      "turn.started 1",
      "message.delta 2.1",
      "turn.completed 3",
    ]);
    expect(server.seen[0]?.body).toEqual({ message: "hi", stream: true });
  });

  test("that are cut off, end early or meet a restart go on behind their last event", async () => {
    await using server = await answering([
      events("cut", event("turn.started", "1"), event("message.delta", "2.1")),
      problem("shutting-down", 503, soon),
      events("end", event("message.delta", "2.5")),
      events("end", event("turn.failed", "3")),
    ]);
    const stream = server.client.skills.stream({ skill_id: "s" });
    expect(await names(stream)).toEqual(["turn.started 1", "message.delta 2.1", "message.delta 2.5", "turn.failed 3"]);
    expect(server.seen.map(({ method, url, headers }) => `${method} ${url} ${headers["last-event-id"]}`)).toEqual([
      "POST /api/v1/skills/trigger undefined",
      `GET /api/v1/turns/${turnId}/events 2.1`,
      `GET /api/v1/turns/${turnId}/events 2.1`,
      `GET /api/v1/turns/${turnId}/events 2.5`,
    ]);
  });

  test("of a turn begin at its start, or behind an event", async () => {
    await using server = await answering([
      events("end", event("turn.completed", "3")),
      events("end", event("turn.cancelled", "3")),
    ]);
    expect(await names(server.client.turns.events(turnId))).toEqual(["turn.completed 3"]);
    expect(await names(server.client.turns.events(turnId, { after: "2" }))).toEqual(["turn.cancelled 3"]);
    expect(server.seen.map(({ url, headers }) => [url, headers["last-event-id"]])).toEqual([
      [`/api/v1/turns/${turnId}/events`, undefined],
      [`/api/v1/turns/${turnId}/events`, "2"],
    ]);
  });

  test("that are refused throw the refusal, and are not tried again", async () => {
    await using server = await answering([
      problem("session-conflict", 409),
      events("cut", event("turn.started", "1")),
      problem("turn-not-found", 404),
    ]);
    expect(await failureOf(collect(server.client.chat.stream(send)))).toMatchObject({ name: "session-conflict" });
    expect(await failureOf(collect(server.client.chat.stream(send)))).toMatchObject({ name: "turn-not-found" });
    expect(server.seen).toHaveLength(3);
  });

  test("are let go when their reader leaves", async () => {
    let closed = false;
    await using server = await answering([
      (res) => {
        res.on("close", () => {
          closed = true;
        });
        events("open", event("turn.started", "1"))(res);
      },
    ]);
    for await (const _ of server.client.chat.stream(send)) break;
    await expect.poll(() => closed).toBe(true);
  });

  test("need an answer that is a stream", async () => {
    await using server = await answering([json(200, { turn_id: turnId })]);
    const error = await failureOf(collect(server.client.chat.stream(send)));
    expect(error).toMatchObject({ name: "not-a-gateway", operation: "chat.stream" });
  });
});

test("a redirect is not followed, and the error names its target", async () => {
  await using other = await answering([json(200, { keys: [] })]);
  const redirect: Answer = (res) => res.writeHead(307, { location: `${other.url}/elsewhere` }).end();
  await using server = await answering([redirect, redirect, redirect], { rpcToken: "rpc" });
  const { client } = server;
  for (const call of [client.keys.list(), collect(client.chat.stream({ message: "x" })), client.rpc.agent.list()]) {
    const error = await failureOf(call);
    expect(error.name).toBe("not-a-gateway");
    expect(error.detail).toContain(`redirects to ${other.url}/elsewhere. Nothing was sent there.`);
  }
  expect([server.seen.length, other.seen]).toEqual([3, []]);
});
