import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { API_KEY, failure, modelAt, openModels } from "./model-kinds.ts";
import { startHttpStandIn } from "./stand-ins/http-stand-in.ts";
import { collect, textOf, turnOf } from "./suite.ts";

/** Mistral's stream: the last piece has the usage. */
function chunk(delta: object, last?: object) {
  return `data: ${JSON.stringify({ id: "cmpl-1", object: "chat.completion.chunk", created: 1764000000, model: "mistral-medium-2508", choices: [{ index: 0, delta, finish_reason: last ? "stop" : null }], ...last })}\n\n`;
}
const usage = { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 };
const body = [
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "Bon" }),
  chunk({ content: "jour." }),
  chunk({ content: "" }, { usage }),
  "data: [DONE]\n\n",
];
const mistral = await startHttpStandIn(() => ({ headers: { "content-type": "text/event-stream" }, body }));
afterAll(() => mistral[Symbol.asyncDispose]());
beforeEach(() => mistral.reset());

const provider = { type: "ai-sdk", package: "@ai-sdk/mistral", apiKey: API_KEY, baseUrl: `${mistral.url}/v1` } as const;
function open(more: object = {}) {
  return openModels({ main: { ...modelAt("openai", mistral.url), provider: { ...provider, headers: {}, ...more } } });
}
const never = new AbortController().signal;

describe("a provider of the AI SDK that is not part of the gateway", () => {
  it("is called with the package of the configuration", async () => {
    const chunks = await collect(open({ headers: { "x-team": "tests" } }).run(turnOf(), never));
    expect(textOf(chunks)).toBe("Bonjour.");
    expect(chunks.at(-1)).toMatchObject({ usage: { input: 11, output: 4 } });
    const { path, headers } = await mistral.next();
    expect(path).toBe("/v1/chat/completions");
    expect(headers).toMatchObject({ authorization: `Bearer ${API_KEY}`, "x-team": "tests" });
  });

  it("fails like any other, with an error of the gateway", async () => {
    mistral.failNext("429 with Retry-After");
    const { error } = await failure(open().run(turnOf(), never));
    expect(error).toMatchObject({
      message: expect.stringContaining("limits the gateway's requests"),
      retryAfterMs: 7_000,
    });
  });

  it("is refused if its package is not a provider or is not installed", async () => {
    for (const [name, words] of [
      ["zod", "the package zod is not a provider of the AI SDK"],
      ["@ai-sdk/nobody", "is it installed?"],
    ]) {
      const { error } = await failure(open({ package: name }).run(turnOf(), never));
      expect(error).toMatchObject({ message: expect.stringContaining(words as string), retryable: false });
    }
  });

  it("answers for an agent of the gateway", async () => {
    await using gateway = await startGateway({
      config: {
        providers: { mistral: provider },
        agents: { main: { backend: "model", models: { medium: { provider: "mistral", model: "mistral-medium" } } } },
      },
    });
    const { json } = await gateway.rest.call("chat.send", { body: { message: "Good morning!" } });
    expect(json).toMatchObject({ reply: "Bonjour.", usage: { input: 11, output: 4 } });
  });
});
