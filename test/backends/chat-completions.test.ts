import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { Tool } from "#tools/tool.ts";
import { failure, modelAt, openModels } from "./model-kinds.ts";
import { startHttpStandIn } from "./stand-ins/http-stand-in.ts";
import { collect, textOf, turnOf } from "./suite.ts";

function event(data: unknown) {
  return `data: ${JSON.stringify(data)}\n\n`;
}
function delta(delta: object, reason: string | null = null) {
  return event({ choices: [{ index: 0, delta, finish_reason: reason }] });
}
function end(reason: string) {
  return [delta({}, reason), "data: [DONE]\n\n"];
}
function calls(...tool_calls: object[]) {
  return delta({ tool_calls });
}

/** The answers, one for each request. */
let answers: string[][] = [];
const server = await startHttpStandIn(() => ({
  headers: { "content-type": "text/event-stream" },
  body: answers.shift() ?? [delta({ content: "Done." }), ...end("stop")],
}));
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  server.reset();
  answers = [];
});

const never = new AbortController().signal;
function open(options?: Record<string, unknown>) {
  const model = modelAt("openai-compatible", server.url, { options });
  return openModels({ main: { ...model, provider: { ...model.provider, baseUrl: `${server.url}/v1/` } } });
}
/** The messages of the second request, after a call. */
function messages() {
  return server.seen[1]?.json.messages as object[];
}
const asked: unknown[] = [];
const look: Tool = {
  name: "look",
  description: "Looks.",
  parameters: { type: "object" },
  isOutside: false,
  call: async (given) => {
    asked.push(given);
    return "seen";
  },
};

describe("tool calls of servers that", () => {
  it.each([
    [
      "number them",
      [calls({ index: 0, id: "a", function: { name: "look", arguments: '{"n":' } })],
      [calls({ index: 1, id: "b", function: { name: "look", arguments: '{"n":2}' } })],
      [calls({ index: 0, function: { arguments: "1}" } })],
    ],
    [
      "do not number them",
      [calls({ id: "a", function: { name: "look", arguments: '{"n":1}' } })],
      [calls({ id: "b", function: { name: "look", arguments: '{"n":' } }), calls({ function: { arguments: "2}" } })],
    ],
    [
      "give all of them one number",
      [calls({ index: 0, id: "a", function: { name: "look", arguments: '{"n":1}' } })],
      [calls({ index: 0, id: "b", function: { name: "look", arguments: '{"n":2}' } })],
    ],
    [
      "name them with each piece",
      [calls({ index: 0, id: "a", function: { name: "look", arguments: '{"n"' } })],
      [calls({ index: 0, id: "a", function: { name: "look", arguments: ":1}" } })],
      [calls({ index: 1, id: "b", function: { name: "look", arguments: '{"n":2}' } })],
    ],
  ])("%s are called with their arguments", async (_, ...pieces) => {
    asked.length = 0;
    answers = [[...pieces.flat(), ...end("tool_calls")]];
    const chunks = await collect(open().run(turnOf({ tools: () => [look] }), never));
    expect(textOf(chunks)).toBe("Done.");
    expect(asked).toEqual([{ n: 1 }, { n: 2 }]);
    expect(messages().slice(-3)).toMatchObject([
      { role: "assistant", content: null, tool_calls: [{ id: "a" }, { id: "b" }] },
      { role: "tool", tool_call_id: "a", content: "seen" },
      { role: "tool", tool_call_id: "b", content: "seen" },
    ]);
  });

  it("sign them get the signature back", async () => {
    const extra_content = { google: { thought_signature: "c2lnbmVk" } };
    answers = [[calls({ id: "a", function: { name: "look", arguments: "{}" }, extra_content }), ...end("tool_calls")]];
    await collect(open().run(turnOf({ tools: () => [look] }), never));
    expect(messages().at(-2)).toMatchObject({ tool_calls: [{ id: "a", extra_content }] });
  });
});

it("options are sent unchanged, with the names of OpenAI", async () => {
  await collect(open({ top_k: 40, reasoningEffort: "low" }).run(turnOf(), never));
  expect(server.seen[0]?.path).toBe("/v1/chat/completions");
  expect(server.seen[0]?.json).toMatchObject({ top_k: 40, reasoning_effort: "low", stream: true });
});

it("text in parts is read, and their reasoning is not", async () => {
  const thinking = [{ type: "text", text: "hm" }];
  answers = [
    [
      delta({
        content: [
          { type: "thinking", thinking },
          { type: "text", text: "Yes." },
        ],
      }),
      ...end("stop"),
    ],
  ];
  expect(textOf(await collect(open().run(turnOf(), never)))).toBe("Yes.");
});

it("text before an error in the stream is returned", async () => {
  answers = [[delta({ content: "Half" }) + event({ object: "error", message: "The engine is overloaded." })]];
  const { error, text } = await failure(open().run(turnOf(), never));
  expect(text).toBe("Half");
  expect(error.message).toBe("the provider is overloaded or failing");
});

it("returns text that was received at once as one piece", async () => {
  const thought = delta({ reasoning_content: "hm" });
  answers = [
    [`${delta({ content: "a" }) + delta({ content: "b" })}:\n\n${delta({ content: "c" })}${thought}`, ...end("stop")],
  ];
  const texts = (await collect(open().run(turnOf(), never))).filter((chunk) => "text" in chunk);
  expect(texts).toEqual([{ text: "abc" }]);
});
