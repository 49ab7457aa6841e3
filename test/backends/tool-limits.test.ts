import { afterAll, afterEach, describe, expect, it } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { failure, KIND_NAMES, KINDS, modelAt, openModels } from "./model-kinds.ts";
import type { ModelStandIn } from "./stand-ins/model-answers.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";
import { collect, textOf, turnOf } from "./suite.ts";

const never = new AbortController().signal;
const limits = { toolArguments: 2_000, toolMessages: 10_000 };
const say = {
  name: "say",
  description: "Says it.",
  isOutside: false,
  parameters: { type: "object" },
  call: async () => "s".repeat(3_300),
};
function argsOf(characters: number) {
  return JSON.stringify({ text: "x".repeat(characters - '{"text":""}'.length) });
}
const TOO_MUCH = "the turn's tool calls and their results are longer than 10000 characters (`limits.toolMessages`)";

describe.each(KIND_NAMES)("the tool calls of a model of the type %s", (kind) => {
  let standIn: ModelStandIn;
  const turn = () => {
    const backend = openModels({ main: modelAt(kind, standIn.url) }, { limits });
    return backend.run(turnOf({ tools: async () => [say] }), never);
  };
  const start = KINDS[kind].start();
  start.then((started) => {
    standIn = started;
  });
  afterAll(async () => (await start)[Symbol.asyncDispose]());
  afterEach(() => standIn.reset());

  it("MUST have arguments of a limited length", async () => {
    await start;
    standIn.say({ calls: [{ name: "say", args: argsOf(2_000) }] }, { text: ["Done."] });
    expect(textOf(await collect(turn()))).toBe("Done.");
    standIn.say({ calls: [{ name: "say", args: argsOf(2_001) }] });
    const { error } = await failure(turn());
    expect(error).toMatchObject({
      message: "the arguments of a tool call are longer than 2000 characters (`limits.toolArguments`)",
      retryable: false,
    });
  });

  it("MUST have a limited length in one answer", async () => {
    await start;
    standIn.say({ calls: Array.from({ length: 6 }, () => ({ name: "say", args: argsOf(2_000) })) });
    expect((await failure(turn())).error.message).toBe(TOO_MUCH);
  });

  it("MUST have a limited length with their results, over all steps", async () => {
    await start;
    const call = { calls: [{ name: "say", args: argsOf(100) }] };
    standIn.say(call, call, { text: ["Done."] });
    expect(textOf(await collect(turn()))).toBe("Done.");
    standIn.say(call, call, call, { text: ["Done."] });
    expect((await failure(turn())).error.message).toBe(TOO_MUCH);
  });

  it("MUST be limited in number", async () => {
    await start;
    standIn.say({ calls: Array.from({ length: 1_001 }, () => ({ name: "say", args: "{}" })) });
    expect((await failure(turn())).error.message).toBe("the model called more than 1000 tools at once");
  });
});

it("a gateway refuses a turn whose tool calls are too long, and serves the next one", async () => {
  await using model = await startChatCompletions();
  await using gateway = await startGateway({
    config: {
      providers: { local: { type: "openai-compatible", baseUrl: `${model.url}/v1`, apiKey: "key" } },
      agents: { main: { backend: "model", models: { one: { provider: "local", model: "m" } } } },
      limits: { toolArguments: "1KiB" },
    },
  });
  model.say({ calls: [{ name: "say", args: argsOf(1_025) }] }, { text: ["Hello."] });
  const send = () => gateway.rest.call("chat.send", { body: { message: "Hi." } });
  const { status, problem } = await send();
  expect(status).toBe(502);
  expect(problem.detail).toContain("are longer than 1024 characters (`limits.toolArguments`)");
  expect((await send()).json).toMatchObject({ reply: "Hello." });
});
