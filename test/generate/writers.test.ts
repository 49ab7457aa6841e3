import fc from "fast-check";
import { describe, expect, test } from "vitest";
import openapi from "#generated/openapi.json" with { type: "json" };
import type { ChatCompleted, ChatCompletion, WakeReply } from "#generated/rest-types.ts";
import { quote } from "#generated/writers/quote.ts";
import { writers } from "#generated/writers/replies.ts";
import type { JsonObject } from "../../scripts/generate/json.ts";
import type { Operation } from "../../scripts/generate/operations.ts";
import { printWriters } from "../../scripts/generate/writers.ts";

test("a text is written as JSON.stringify writes it, whatever stands in it", () => {
  for (let unit = 0; unit <= 0xffff; unit++) {
    const text = `a${String.fromCharCode(unit)}b`;
    if (quote(text) !== JSON.stringify(text)) expect(quote(text)).toBe(JSON.stringify(text));
  }
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => quote(text) === JSON.stringify(text)));
});

test("long texts with halves of pairs in them are quoted as JSON.stringify does", () => {
  const unit = fc.oneof(
    fc.constantFrom("\ud800", "\udfff", "😀", '"', "\\", "\n", "\0", "é", "x"),
    fc.string({ unit: "binary" }),
  );
  const long = fc.tuple(fc.array(unit, { minLength: 1 }), fc.nat(3)).map(([units, n]) => {
    const once = `${units.join("")}\ud83d`;
    return once.repeat(Math.ceil((9_000 + n * 60_000) / once.length));
  });
  fc.assert(fc.property(long, (text) => quote(text) === JSON.stringify(text)));
});

test("long texts of whole pairs are quoted as JSON.stringify does, with something to escape or without", () => {
  for (const piece of ["😀", "é😀", '"😀', "😀\\", "\n😀", "€", "x"]) {
    const text = piece.repeat(9_000);
    for (const long of [text, `${text}"`, `\u0000${text}`]) expect(quote(long) === JSON.stringify(long)).toBe(true);
  }
});

const ids = { message_id: "msg_1", session_id: 'a "b" \\ c', turn_id: "turn_1" } as const;

describe("a reply is written as what it is", () => {
  const examples = Object.values(openapi.components.responses).flatMap((response) => {
    const json = (response as { content?: Record<string, { schema?: object; examples?: object }> }).content;
    const { schema, examples } = json?.["application/json"] ?? {};
    const shape = String((schema as { $ref?: string } | undefined)?.$ref)
      .split("/")
      .at(-1);
    return Object.values(examples ?? {}).map(({ value }): [string, unknown] => [shape ?? "", value]);
  });
  test.each([
    ["ChatCompleted", writers["chat.send"].completed],
    ["ChatAccepted", writers["chat.send"].accepted],
    ["ChatCompletion", writers["completions.create"].completed],
  ])("%s, as the contract has it", (shape, write) => {
    const mine = examples.filter(([name]) => name === shape);
    expect(mine.length).toBeGreaterThan(0);
    for (const [, body] of mine) expect(JSON.parse((write as (body: unknown) => string)(body))).toEqual(body);
  });

  test("with what may be left out, and without", () => {
    const count = fc.nat();
    const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    const rest = { reasoning: maybe(count), cost: maybe(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true })) };
    const usage = fc.record({ input: count, output: count, total: count, cached: maybe(count), ...rest });
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), usage, maybe(fc.constant(true as const)), (reply, used, unknown) => {
        const body = { ...ids, status: "completed", reply, usage: { ...used, unknown } } as ChatCompleted;
        expect(JSON.parse(writers["chat.send"].completed(body))).toEqual(JSON.parse(JSON.stringify(body)));
      }),
    );
  });

  test("with a number that is none as JSON.stringify has it", () => {
    const counts = { completion_tokens: 0, total_tokens: 0, prompt_tokens: Number.NaN };
    const details = { prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } };
    const body: ChatCompletion = {
      id: "chatcmpl-turn_1",
      object: "chat.completion",
      created: 1,
      model: "main",
      choices: [
        { index: 0, message: { role: "assistant", content: "", refusal: null }, logprobs: null, finish_reason: "stop" },
      ],
      usage: { ...counts, ...details },
      turn_id: "turn_1",
      session_id: "a",
    };
    expect(JSON.parse(writers["completions.create"].completed(body))).toEqual(JSON.parse(JSON.stringify(body)));
  });
});

test("the answer to a wake is written as the contract has it, whatever its agent is called", () => {
  const { queued } = openapi.paths["/hooks/wake"].post.responses["200"].content["application/json"].examples;
  const body = queued.value as WakeReply;
  for (const agent of [body.agent, 'a "b" \\ c']) {
    const answer = { ...body, agent };
    expect(writers["hooks.wake"].ok(answer)).toBe(JSON.stringify(answer));
  }
});

describe("what could hold more than its shape says is left to JSON.stringify", () => {
  const operation = {
    id: "chat.send",
    replies: [{ as: "completed", status: 200, type: "application/json" }],
    answers: [{ status: 200, type: "application/json", schema: { $ref: "#/components/schemas/Reply" } }],
  } as unknown as Operation;
  const text = { type: "string" };
  const closed = { type: "object", additionalProperties: false };
  test.each<[string, JsonObject, string]>([
    ["an open object", { type: "object", required: ["a"], properties: { a: text } }, "JSON.stringify(body)"],
    ["a choice", { oneOf: [text, { type: "null" }] }, "JSON.stringify(body)"],
    ["one whose first member may be left out", { ...closed, properties: { a: text } }, "JSON.stringify(body)"],
    [
      "itself within itself",
      { ...closed, required: ["a"], properties: { a: { $ref: "#/components/schemas/Reply" } } },
      '"{\\"a\\":" + JSON.stringify(body.a) + "}"',
    ],
    [
      "a list, by its items",
      { ...closed, required: ["a-b"], properties: { "a-b": { type: "array", items: { type: "boolean" } } } },
      '"{\\"a-b\\":[" + body["a-b"].map((one) => one).join() + "]}"',
    ],
  ])("%s", (_, shape, code) => {
    expect(printWriters({ Reply: shape }, [operation])).toContain(`(body: Reply): string =>\n  ${code};`);
  });

  test("a reply that has no shape of its own", () => {
    const answers = [{ status: 200, type: "application/json", schema: text }];
    expect(printWriters({}, [{ ...operation, answers }])).toContain('"chat.send": {\n  },');
  });
});
