import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { checkedFetch } from "#test/harness/rest.ts";
import { hello, OPEN, openClient, refusalOf } from "./clients.ts";

// OpenAI's published client, unchanged, with the running gateway.

const puppet = createPuppet(["fast", "deep"]);
const gateway = await shareGateway({
  config: {
    gateway: OPEN,
    agents: {
      main: { backend: "echo", echo: { chunks: 3 } },
      played: { backend: "echo" },
      broken: { backend: "echo", echo: { fail: "The model is not there." } },
    },
  },
  makeBackend: (name, { echo }) => (name === "played" ? puppet.backend : createEchoBackend(echo)),
});
const client = openClient(gateway.url);
const { completions } = client.chat;
async function turnOf(turn_id: string) {
  return (await gateway.rest.call("turns.get", { path: { turn_id } })).json;
}

describe("a complete reply", () => {
  test("has the text, the reason for its end, and the tokens", async () => {
    const answer = await completions.create(hello());
    expect(answer).toMatchObject({
      object: "chat.completion",
      model: "main",
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hello there, friend" } }],
      usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
    });
    expect(Math.abs(answer.created - Date.now() / 1_000)).toBeLessThan(30);
    expect(await turnOf(answer.id.replace("chatcmpl-", ""))).toMatchObject({
      reply: "Hello there, friend",
      agent: "main",
    });
  });

  test("has the request id of the log", async () => {
    const { _request_id: requestId } = await completions.create(hello());
    const line = await gateway.logged("request", { requestId });
    expect(line).toMatchObject({ surface: "rest", operation: "completions.create", caller: "tests", status: 200 });
  });

  test("is sent to clients that send the usual extra fields, and unknown ones", async () => {
    const habits = {
      temperature: 0.7,
      top_p: 1,
      max_tokens: 5,
      max_completion_tokens: 5,
      seed: 4,
      stop: ["\n"],
      logit_bias: {},
      presence_penalty: 0,
      frequency_penalty: 0,
      store: true,
      metadata: { chat: "1" },
      parallel_tool_calls: true,
      ...({ service_tier: "auto", reasoning_effort: "low", response_format: { type: "text" } } as const),
      n: 1,
      tools: [],
      logprobs: false,
      stream: false as const,
      top_k: 40,
    };
    const answer = await completions.create({ ...hello(), ...habits });
    expect(answer.choices[0]?.message.content).toBe("Hello there, friend");
  });
});

describe("a streamed reply", () => {
  test("arrives in the pieces in which it is written", async () => {
    const chunks = [];
    for await (const chunk of await completions.create({ ...hello(), stream: true })) chunks.push(chunk);
    const deltas = chunks.map(({ choices }) => choices[0]?.delta);
    expect(deltas[0]).toEqual({ role: "assistant", content: "" });
    expect(deltas.map((delta) => delta?.content ?? "").join("")).toBe("Hello there, friend");
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason ?? undefined).filter(Boolean)).toEqual(["stop"]);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
    expect(chunks.every(({ usage }) => usage === undefined)).toBe(true);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  test("ends with the tokens if they are requested", async () => {
    const asked = { ...hello(), stream: true, stream_options: { include_usage: true } } as const;
    const chunks = [];
    for await (const chunk of await completions.create(asked)) chunks.push(chunk);
    expect(chunks.pop()).toMatchObject({ choices: [], usage: { prompt_tokens: 5, total_tokens: 10 } });
    expect(chunks.every(({ usage }) => usage === null)).toBe(true);
  });

  test("is assembled by the client's own helper", async () => {
    const stream = completions.stream(hello());
    expect(await stream.finalContent()).toBe("Hello there, friend");
    expect((await stream.finalChatCompletion()).choices[0]?.finish_reason).toBe("stop");
  });

  test("is a status if its turn fails before the first piece", async () => {
    const error = await refusalOf(completions.create({ ...hello(), model: "broken", stream: true }));
    expect(error).toMatchObject({ status: 502, code: "turn_failed", type: "server_error" });
    expect(error.message).toContain("The model is not there.");
  });

  test("throws if its turn fails in the middle, after the written text", async () => {
    const asked = completions.create({ ...hello(), model: "played", stream: true });
    const { turn, say, fail } = await puppet.next();
    say("Half of ");
    const texts: unknown[] = [];
    const read = async () => {
      for await (const { choices } of await asked) {
        texts.push(choices[0]?.delta.content);
        if (texts.length === 2) fail(new Error("nobody's business"));
      }
    };
    const error = await refusalOf(read());
    expect(texts).toEqual(["", "Half of "]);
    expect(error).toMatchObject({ code: "turn_failed", type: "server_error", error: { turn_id: turn.turnId } });
    expect(error.message).not.toContain("nobody's business");
  });

  test("ends for a client that aborts, and its turn continues", async () => {
    const asked = completions.create({ ...hello(), model: "played", stream: true });
    const { turn, say, end } = await puppet.next();
    say("Half of");
    const stream = await asked;
    for await (const { choices } of stream) if (choices[0]?.delta.content === "Half of") stream.controller.abort();
    say(" it");
    end();
    await (await gateway.rest.stream("turns.events", { path: { turn_id: turn.turnId } })).all();
    expect(await turnOf(turn.turnId)).toMatchObject({ status: "completed", reply: "Half of it" });
  });
});

describe("the gateway refuses", () => {
  test("an invalid key", async () => {
    const error = await refusalOf(openClient(gateway.url, { apiKey: "somebody-elses" }).models.list());
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({ code: "invalid_api_key", type: "authentication_error" });
  });

  test.each(["gpt-4o", "main/", "played/gigantic", "/", "__proto__"])(
    "the model %s, which does not exist",
    async (model) => {
      const calls = [() => completions.create({ ...hello(), model }), () => client.models.retrieve(model)];
      for (const call of calls) {
        const error = await refusalOf(call());
        expect(error).toBeInstanceOf(OpenAI.NotFoundError);
        expect(error).toMatchObject({ code: "model_not_found", param: "model" });
      }
    },
  );

  const image = { type: "image_url", image_url: { url: "https://pages.example/cat.png" } };
  const said = (...messages: unknown[]) => ({ messages });
  test.each([
    ["tools", { tools: [{ type: "function", function: { name: "f" } }] }],
    ["functions", { functions: [{ name: "f" }] }],
    ["response_format", { response_format: { type: "json_object" } }],
    ["n", { n: 2 }],
    ["logprobs", { logprobs: true }],
    ["modalities", { modalities: ["text", "audio"] }],
    ["audio", { audio: { voice: "alloy", format: "wav" } }],
    ["web_search_options", { web_search_options: {} }],
    ["user", { user: "u".repeat(129) }],
    ["model", { model: 4 }],
    ["messages", said()],
    ["messages", said({ role: "system", content: "Be kind." })],
    ["messages[0].role", said({ role: "tool", content: "x" })],
    ["messages[0].content", said({ role: "user", content: "" })],
    ["messages[0].content", said({ role: "user", content: 4 })],
    ["messages[0].content[1].type", said({ role: "user", content: [{ type: "text", text: "What is it?" }, image] })],
    ["messages[1].role", said({ role: "user", content: "x" }, { role: "assistant", content: "y" })],
    ["messages[0].tool_calls", said({ role: "assistant", tool_calls: [{}] }, { role: "user", content: "x" })],
  ])("%s, if it is what no agent can do", async (param, fields) => {
    const error = await refusalOf(completions.create({ ...hello(), ...fields } as never));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, param, type: "invalid_request_error", code: "invalid_request" });
    expect(error.message).toContain(param);
  });
});

describe("the client retries", () => {
  const sent = (status: number) => gateway.linesOf("request", { operation: "completions.create", status }).length;

  test("only if that does not run a failed turn again", async () => {
    const before = sent(502);
    await refusalOf(completions.create({ ...hello(), model: "broken" }));
    expect(sent(502)).toBe(before + 1);
  });

  test("with its key after a lost connection, and gets the same turn", async () => {
    const answers: Response[] = [];
    const fetch = async (target: string | URL | Request, init?: RequestInit) => {
      answers.push(await checkedFetch(new Request(target, init)));
      if (answers.length === 1) throw new TypeError("the connection broke");
      return answers.at(-1) as Response;
    };
    const headers = { "Idempotency-Key": "order-4711-welcome" };
    const { id } = await openClient(gateway.url, { fetch }).chat.completions.create(hello(), { headers });
    expect(answers.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
    expect(await answers[0]?.json()).toMatchObject({ id });

    const stream = await completions.create(
      { ...hello("streamed"), stream: true },
      { headers: { "Idempotency-Key": "2" } },
    );
    const again = completions.stream(hello("streamed"), { headers: { "Idempotency-Key": "2" } });
    for await (const chunk of stream) expect(chunk.id).toBe((await again.finalChatCompletion()).id);
    expect(await again.finalContent()).toBe("streamed");
  });

  test("when the rate limit of its key allows it", async () => {
    const rest = { rateLimit: { maxRequests: 1, windowMs: 500 } };
    await using limited = await startGateway({ config: { gateway: { ...OPEN, rest } } });
    const { models } = openClient(limited.url);
    await models.list();
    expect((await models.list()).data).toHaveLength(1);
    const operation = "models.list";
    expect(limited.linesOf("request", { operation }).map(({ status }) => status)).toEqual([200, 429, 200]);
  });
});

describe("the models", () => {
  test("are the agents, and the models of agents with several", async () => {
    const ids = [];
    for await (const { id } of client.models.list()) ids.push(id);
    expect(ids).toEqual(["main", "played", "played/fast", "played/deep", "broken"]);
    expect(await client.models.retrieve("played/fast")).toMatchObject({ id: "played/fast", object: "model" });
  });

  test("determine the model that the agent uses", async () => {
    const asked = completions.create({ ...hello(), model: "played/deep" });
    const { turn, say, end } = await puppet.next();
    expect(turn).toMatchObject({ agent: "played", model: "deep" });
    say("yes");
    end();
    expect((await asked).model).toBe("played/deep");
  });
});

describe("a client whose base URL is wrong", () => {
  // No operation answers here, so the answer cannot be validated against the contract.
  const at = (base: string, url = gateway.url) =>
    new OpenAI({
      baseURL: url + base,
      apiKey: gateway.key,
      maxRetries: 0,
      fetch: async (target, init) => {
        const answer = await fetch(target, init);
        noteChecked(answer.headers.get("x-request-id") ?? "");
        return answer;
      },
    });
  const asks: [string, (client: OpenAI) => Promise<unknown>][] = [
    ["/chat/completions", (client) => client.chat.completions.create(hello())],
    ["/chat/completions", (client) => client.chat.completions.create({ ...hello(), stream: true })],
    ["/models", (client) => client.models.list()],
    ["/models/main", (client) => client.models.retrieve("main")],
    ["/responses", (client) => client.responses.create({ model: "main", input: "Hi" })],
    ["/embeddings", (client) => client.embeddings.create({ model: "main", input: "Hi" })],
    ["/completions", (client) => client.completions.create({ model: "main", prompt: "Hi" })],
  ];

  test.each(["", "/", "/api/v1"])("with %j gets an error with the correct URL", async (base) => {
    for (const [path, ask] of asks) {
      const { status, code, message } = await refusalOf(ask(at(base)));
      expect([status, code]).toEqual([404, "not_found"]);
      const asked = base.replace(/\/$/, "") + path;
      expect(message).toBe(
        `404 Not found: There is nothing at ${asked} for clients of OpenAI. Their base URL ends in /v1: set it to ${gateway.url}/v1.`,
      );
    }
  });

  test("gets an error if the surface is off", async () => {
    await using closed = await startGateway();
    const { message } = await refusalOf(at("", closed.url).models.list());
    expect(message).toContain("gateway.openai.enabled in the configuration turns it on");
  });

  test("does not reach the webhooks", async () => {
    await using other = await startGateway({ config: { gateway: OPEN, webhooks: { path: "/responses" } } });
    const headers = { authorization: `Bearer ${other.webhookToken}`, "content-type": "application/json" };
    const answer = await fetch(`${other.url}/responses/wake`, { method: "POST", headers, body: '{"text":"Hi"}' });
    noteChecked(answer.headers.get("x-request-id") ?? "");
    expect(answer.status).toBe(200);
  });
});
