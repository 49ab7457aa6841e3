import { describe, expect, test } from "vitest";
import { createPuppet } from "#test/harness/backends.ts";
import { SECRETS, type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createHooks } from "#test/harness/hooks.ts";
import { createRest } from "#test/harness/rest.ts";
import { hello, OPEN, openClient, refusalOf } from "./clients.ts";

function askClosed(url: string) {
  return createRest(url, SECRETS.key).call("models.list");
}

const CLOSED =
  "404 Not found: The OpenAI-compatible API is off here: gateway.openai.enabled in the configuration turns it on, on the listeners that serve REST.";

describe("the OpenAI-compatible API", () => {
  test("is off by default, and a reload opens and closes it", async () => {
    await using gateway = await startGateway();
    expect(await askClosed(gateway.url)).toMatchObject({ status: 404, error: "not-found" });
    expect(gateway.linesOf("listening")[0]?.surfaces).not.toContain("openai");
    await gateway.reload({ gateway: OPEN });
    expect((await openClient(gateway.url).models.list()).data.map(({ id }) => id)).toEqual(["main"]);
    await gateway.reload({});
    expect(await askClosed(gateway.url)).toMatchObject({ status: 404, error: "not-found" });
  });

  test("says how to enable it, in text that OpenAI's own client shows", async () => {
    await using gateway = await startGateway();
    const { chat, models } = openClient(gateway.url);
    for (const ask of [() => chat.completions.create(hello()), () => models.list()])
      expect(await refusalOf(ask())).toMatchObject({ status: 404, code: "not_found", message: CLOSED });
    // Webhooks may be below it.
    await using other = await startGateway({ config: { webhooks: { path: "/v1/hooks" } } });
    expect(await askClosed(other.url)).toMatchObject({ status: 404 });
    const hooks = createHooks(other.url, "/v1/hooks");
    expect((await hooks.wake({ text: "hi" })).status).toBe(200);
  });

  test("is on the listeners of REST, and the start log says so", async () => {
    const listeners: NonNullable<SomeConfig["gateway"]>["listeners"] = [
      { port: 0, surfaces: ["rest"] },
      { port: 0, surfaces: ["rpc", "docs"] },
    ];
    await using gateway = await startGateway({ config: { gateway: { ...OPEN, listeners } } });
    const [rest, other] = gateway.gateway.urls as [string, string];
    expect((await openClient(rest).models.list()).data).toHaveLength(1);
    expect(await askClosed(other)).toMatchObject({ status: 404 });
    expect(gateway.linesOf("listening").map(({ surfaces }) => surfaces)).toEqual([
      ["rest", "openai"],
      ["rpc", "docs"],
    ]);
  });

  test("cannot be enabled while REST is off", async () => {
    const rest = { enabled: false };
    await expect(startGateway({ config: { gateway: { ...OPEN, rest } } })).rejects.toThrow(/gateway\.openai\.enabled/);
    const webhooks = { path: "/v1/hooks" };
    await expect(startGateway({ config: { gateway: OPEN, webhooks } })).rejects.toThrow(/webhooks\.path/);
  });

  test("describes its paths at an unknown path, to authenticated callers", async () => {
    await using gateway = await startGateway({ config: { gateway: OPEN } });
    const send = (key: string | null) => gateway.rest.send("POST", "/v1/responses", { key });
    const { status, error, json } = await send(SECRETS.key);
    expect([status, error]).toEqual([404, "not-found"]);
    expect(json.error).toMatchObject({
      message:
        "Not found: There is nothing at /v1/responses. There are /v1/chat/completions, /v1/models, /v1/models/{model}.",
    });
    expect(await send(null)).toMatchObject({ status: 401, error: "unauthenticated" });
  });

  test.each([
    ["an empty one", ""],
    ["a long one", "k".repeat(256)],
  ])("refuses an invalid idempotency key in a header: %s", async (_, key) => {
    await using gateway = await startGateway({ config: { gateway: OPEN } });
    const headers = { "idempotency-key": key };
    const { status, error, text } = await gateway.rest.call("completions.create", { headers, body: hello() });
    expect([status, error]).toEqual([400, "invalid-request"]);
    expect(JSON.parse(text).error).toMatchObject({
      param: "idempotency-key",
      message: "Invalid Request: The header Idempotency-Key has 1 to 255 printable ASCII characters.",
    });
  });

  test("records accepted and refused requests", async () => {
    await using gateway = await startGateway({ config: { gateway: OPEN } });
    const client = openClient(gateway.url);
    await client.chat.completions.create(hello());
    await refusalOf(client.chat.completions.create({ ...hello(), n: 2 }));
    const { json } = await gateway.console.call("deliveries.list");
    expect(json.deliveries).toMatchObject([
      {
        surface: "rest",
        operation: "completions.create",
        path: "/v1/chat/completions",
        outcome: "refused",
        status: 400,
      },
      { surface: "rest", operation: "completions.create", path: "/v1/chat/completions", outcome: "completed" },
    ]);
  });
});

const puppet = createPuppet();

describe("a complete reply that takes long", () => {
  test("is a status that names its turn, which continues, and the same request gets it later", async () => {
    const config = { gateway: OPEN };
    await using gateway = await startGateway({ config, makeBackend: () => puppet.backend, replyWaitMs: 20 });
    const { completions } = openClient(gateway.url).chat;
    const send = () => completions.create(hello(), { headers: { "Idempotency-Key": "once" } });
    const error = await refusalOf(send());
    const { turn, say, end } = await puppet.next();
    expect(error).toMatchObject({ status: 504, code: "turn_running", error: { turn_id: turn.turnId } });
    expect(error.message).toContain(`GET /api/v1/turns/${turn.turnId}`);
    say("At last");
    end();
    await (await gateway.rest.stream("turns.events", { path: { turn_id: turn.turnId } })).all();
    expect(await send()).toMatchObject({
      id: `chatcmpl-${turn.turnId}`,
      choices: [{ message: { content: "At last" } }],
    });
    expect(gateway.linesOf("request", { operation: "completions.create" }).map(({ status }) => status)).toEqual([
      504, 200,
    ]);
  });
});

describe("a stream that takes long", () => {
  const asked = { ...hello(), stream: true } as const;

  test("starts before its first piece, and then reports a failure in the stream", async () => {
    await using gateway = await startGateway({
      config: { gateway: OPEN },
      makeBackend: () => puppet.backend,
      replyWaitMs: 20,
    });
    const stream = (await openClient(gateway.url).chat.completions.create(asked))[Symbol.asyncIterator]();
    const { fail } = await puppet.next();
    expect((await stream.next()).value?.choices[0]?.delta).toEqual({ role: "assistant", content: "" });
    fail(new Error("late"));
    expect(await refusalOf(stream.next())).toMatchObject({ code: "turn_failed" });
  });

  test("reports that the gateway stops before the stream's end", async () => {
    await using gateway = await startGateway({ config: { gateway: OPEN }, makeBackend: () => puppet.backend });
    const stream = openClient(gateway.url).chat.completions.create(asked);
    const { say } = await puppet.next();
    say("Half of");
    const chunks = (await stream)[Symbol.asyncIterator]();
    await chunks.next();
    expect((await chunks.next()).value?.choices[0]?.delta.content).toBe("Half of");
    const drained = gateway.gateway.drain("test", 20);
    expect(await refusalOf(chunks.next())).toMatchObject({ code: "shutting_down", type: "server_error" });
    await drained;
  });
});
