import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { failureOf, RequestRefused } from "#backends/model/failures.ts";
import { API_KEY, failure, KIND_NAMES, KINDS, type KindName, modelAt, openModels, otherFormOf } from "./model-kinds.ts";
import { ENDLESS, FAULTS, type Fault } from "./stand-ins/faults.ts";
import type { ModelStandIn } from "./stand-ins/model-answers.ts";
import { collect, textOf, turnOf } from "./suite.ts";

const OUT_OF_ORDER = "the provider is overloaded or failing";
const BROKE_OFF = "the provider ended its answer early";
const WITH_ERROR = "the provider ended its answer with an error";
const NO_KEY = "the provider refused its API key";
const NO_PLACE = "the provider has nothing at its address, or not the model: check its `baseUrl` and the model's name";
const TOO_FAST = "the provider limits the gateway's requests";
const RESET = "the provider closed the connection early";

/** The error of each fault, and whether a retry may help. */
const WORDS: Partial<Record<Fault, [words: string, retryable: boolean]>> = {
  "half a frame": [BROKE_OFF, true],
  html: ["the provider sent a page instead of a stream of events", false],
  "html under a good head": [BROKE_OFF, true],
  "half JSON": ["the provider sent JSON instead of a stream of events", false],
  "an empty body": [BROKE_OFF, true],
  "an endless line": ["the provider sent an event that is longer than 16 MiB", false],
  "wrong UTF-8": ["the provider sent text that is not UTF-8", false],
  "a compression bomb": ["the provider compressed its answer, although the request did not allow it", false],
  "100 MB": ["the provider sent more than 64 MiB", false],
  "400": ["the provider refused the request (400)", false],
  "401": [NO_KEY, false],
  "403": [NO_KEY, false],
  "404": [NO_PLACE, false],
  "413": ["the conversation is too long for the model", false],
  "429": [TOO_FAST, true],
  "429 with Retry-After": [TOO_FAST, true],
  "429 with Retry-After for long": [TOO_FAST, true],
  "500": [OUT_OF_ORDER, true],
  "503 with Retry-After": [OUT_OF_ORDER, true],
  "529": [OUT_OF_ORDER, true],
  "500 in HTML": [OUT_OF_ORDER, true],
  "500 without end": [OUT_OF_ORDER, true],
  redirect: ["the provider answered 302, and redirects are not followed", false],
  "an error inside at once": [OUT_OF_ORDER, true],
  "an error inside": [OUT_OF_ORDER, true],
  "reset before the answer": [RESET, true],
  "reset in the middle": [BROKE_OFF, true],
  "cut in the middle": [BROKE_OFF, true],
  "no HTTP": ["the provider cannot be used: its answer is not HTTP", false],
  "an endless head": ["the provider cannot be used: the head of its answer is too long", false],
};
/** This one takes more than a second, so it is tested with one kind. */
const HEAVY: readonly Fault[] = ["100 MB"];

describe.each(KIND_NAMES)("F07, F08: a failing provider of the type %s", (kind: KindName) => {
  let standIn: ModelStandIn;
  beforeAll(async () => {
    standIn = await KINDS[kind].start();
  });
  afterAll(() => standIn[Symbol.asyncDispose]());
  beforeEach(() => standIn.reset());
  const open = () => openModels({ main: modelAt(kind, standIn.url) });

  const faults = Object.entries(WORDS).filter(
    ([fault]) => kind === "openai-compatible" || !HEAVY.includes(fault as Fault),
  );
  it.each(faults)("is reported with its error: %s", async (fault, [words, retryable]) => {
    standIn.failNext(fault as Fault);
    const backend = open();
    const { error, text } = await failure(backend.run(turnOf(), new AbortController().signal));
    expect({ message: error.message, retryable: error.retryable }).toEqual({ message: words, retryable });
    if (fault.includes("Retry-After")) {
      const ms = { "429 with Retry-After": 7_000, "503 with Retry-After": 1_000 }[fault] ?? 86_400_000;
      expect(error.retryAfterMs).toBe(ms);
    } else expect(error.retryAfterMs).toBeUndefined();
    expect(text).not.toContain("<html>");
    // The log names the failing provider.
    expect(error.model).toBe("main");
    // The logged error has no secret, down to the last cause.
    const logged = inspect(error, { depth: 9 });
    expect(logged).not.toContain("sk-secret");
    expect(logged).not.toContain(API_KEY);
    // The next turn works.
    expect(textOf(await collect(backend.run(turnOf(), new AbortController().signal)))).toContain("thank you.");
  });

  it.each(ENDLESS)("is disconnected at the turn's end: %s", async (fault) => {
    standIn.failNext(fault);
    const controller = new AbortController();
    const run = failure(open().run(turnOf(), controller.signal));
    const seen = await standIn.next();
    await new Promise((resolve) => setTimeout(resolve, 20));
    controller.abort(new Error("stop"));
    await run;
    expect(await seen.left).toBe(true);
  });
});

describe.each(KIND_NAMES)("a provider of the type %s with events in another format", (kind: KindName) => {
  it.each([
    ['{"error":{"message":"raw words sk-secret"}}', WITH_ERROR],
    ['{"foo":"raw words sk-secret"}', otherFormOf(kind)],
    ["[DONE]", otherFormOf(kind)],
  ])("is reported as incompatible: %s", async (event, words) => {
    const server = createServer((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${event}\n\n`);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const backend = openModels({
        main: modelAt(kind, `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      });
      const { error } = await failure(backend.run(turnOf(), new AbortController().signal));
      expect(error.message).toBe(words);
      expect(inspect(error, { depth: 9 })).not.toContain("sk-secret");
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

it("every failure has its description", () => {
  expect(Object.keys({ ...WORDS, ...Object.fromEntries(ENDLESS.map((fault) => [fault, 0])) }).sort()).toEqual(
    Object.keys(FAULTS).sort(),
  );
});

it("an address without a listener is reported, and the connection has a time limit", async () => {
  const gone = await KINDS.openai.start();
  await gone[Symbol.asyncDispose]();
  const backend = openModels({ main: modelAt("openai", gone.url) });
  const { error } = await failure(backend.run(turnOf(), new AbortController().signal));
  expect(error).toMatchObject({
    message: "the provider cannot be reached: nothing listens at its address",
    retryable: true,
  });
});

const TOO_LONG = "the conversation is too long for the model";
const NO_CREDIT = "the gateway's account with the provider has no credit left";
const NO_MODEL = "the provider does not have the model, or the account may not use it";

describe("the error of a provider", () => {
  const told = (status: number | undefined, error: unknown) => failureOf({ status, error, retryAfterMs: undefined });
  const inError = (message: string, more: object = {}) => ({ error: { message, ...more } });
  const inWhole = (type: string, message: string) => ({ type: "error", ...inError(message, { type }) });
  it.each<[who: string, words: string, status: number | undefined, body: unknown]>([
    ["OpenAI", NO_CREDIT, 429, inError("You exceeded your current quota", { code: "insufficient_quota" })],
    [
      "Anthropic",
      NO_CREDIT,
      400,
      inWhole("invalid_request_error", "Your credit balance is too low to access the API."),
    ],
    ["OpenAI", TOO_LONG, 400, inError("This model's maximum is 128000.", { code: "context_length_exceeded" })],
    [
      "Anthropic",
      TOO_LONG,
      400,
      inWhole("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
    ["Google", TOO_LONG, 400, inError("The input token count (1200000) exceeds the maximum number of tokens.")],
    ["Google", NO_KEY, 400, [inError("API key not valid.", { details: [{ reason: "API_KEY_INVALID" }] })]],
    ["OpenAI", NO_KEY, 401, inError("Incorrect API key provided: sk-abcd****wxyz.", { code: "invalid_api_key" })],
    ["Ollama", NO_MODEL, 404, { error: "model 'llama9' not found" }],
    ["vLLM", NO_MODEL, 404, { object: "error", message: "The model `x` does not exist.", type: "NotFoundError" }],
    ["Google", NO_MODEL, 404, inError("models/x is not found for API version v1beta", { status: "NOT_FOUND" })],
    ["Ollama", NO_PLACE, 404, undefined],
    ["vLLM", NO_PLACE, 404, { detail: "Not Found" }],
    ["OpenAI", NO_PLACE, 404, inError("Invalid URL (POST /v1/v1/responses)", { type: "invalid_request_error" })],
    ["LM Studio", NO_PLACE, 200, { error: "Unexpected endpoint or method. (POST /chat/completions)." }],
    ["a page's server", NO_PLACE, 405, undefined],
  ])("is permanent, with an error of the gateway: %s, %s", (_who, words, status, body) => {
    expect(told(status, body)).toMatchObject({ message: words, retryable: false });
    // After any error except one of the request itself, another model is called.
    expect(told(status, body) instanceof RequestRefused).toBe(words === TOO_LONG);
  });

  it("has the time of a retry, also in Google's format", () => {
    const body = {
      error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "Quota", details: [{ retryDelay: "7.5s" }] },
    };
    expect(told(429, body)).toMatchObject({ message: TOO_FAST, retryable: true, retryAfterMs: 7_500 });
  });

  it("may be an event in the middle of a valid answer", () => {
    expect(told(undefined, { type: "overloaded_error", message: "Overloaded" })).toMatchObject({
      message: OUT_OF_ORDER,
      retryable: true,
    });
    expect(told(undefined, { code: "rate_limit_exceeded", message: "Rate limit" })).toMatchObject({
      message: TOO_FAST,
    });
    expect(told(undefined, { code: 502, message: "Provider returned error" })).toMatchObject({ message: OUT_OF_ORDER });
    expect(told(undefined, { what: "ever" })).toMatchObject({ message: WITH_ERROR, retryable: true });
  });
});
