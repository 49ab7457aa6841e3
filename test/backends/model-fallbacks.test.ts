import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Tool } from "#tools/tool.ts";
import { KINDS, modelAt, openModels } from "./model-kinds.ts";
import type { ModelStandIn } from "./stand-ins/model-answers.ts";
import { collect, textOf, turnOf } from "./suite.ts";

describe("an agent with several models", () => {
  let first: ModelStandIn;
  let second: ModelStandIn;
  beforeAll(async () => {
    first = await KINDS.anthropic.start({ text: ["I am", " the first."] });
    second = await KINDS["openai-compatible"].start({ text: ["I am", " the second."] });
  });
  afterAll(async () => {
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    first.reset();
    second.reset();
  });
  const open = (more = {}) =>
    openModels({ good: modelAt("anthropic", first.url), spare: modelAt("openai-compatible", second.url) }, more);
  const run = async (backend: ReturnType<typeof open>, model?: string, more = {}) =>
    await collect(backend.run(turnOf({ model, ...more }), new AbortController().signal));

  const calls: unknown[] = [];
  const tool: Tool = {
    name: "order",
    description: "Orders.",
    isOutside: false,
    parameters: { type: "object" },
    call: async (args) => {
      calls.push(args);
      return "ordered";
    },
  };
  const tools = async () => [tool];

  it("accepts models only by the names of its table, and knows the context of each", () => {
    const backend = open();
    expect(backend.models).toEqual(["good", "spare"]);
    expect(backend.contextTokens?.("spare")).toBe(100_000);
    expect(backend.contextTokens?.(undefined)).toBe(100_000);
    expect(backend.contextTokens?.("other")).toBeUndefined();
    expect(backend.countTokens?.("12345")).toBe(2);
  });

  it("answers with the requested model, its own, or the first, and reports which one if none was named", async () => {
    expect(textOf(await run(open(), "spare"))).toBe("I am the second.");
    expect(textOf(await run(open({ model: "spare" })))).toBe("I am the second.");
    const chunks = await run(open());
    expect(textOf(chunks)).toBe("I am the first.");
    expect(chunks).toContainEqual({ model: "good" });
    expect(await run(open(), "good")).not.toContainEqual({ model: "good" });
  });

  it.each([
    ...(["529", "429 with Retry-After", "reset before the answer", "401", "404", "an empty body"] as const),
    ...(["html", "html under a good head", "half JSON", "redirect", "no HTTP", "an endless head"] as const),
    ...(["an endless line", "a compression bomb"] as const),
  ])("F08: continues with the next model before the first text, and reports it: %s", async (fault) => {
    first.fail(fault);
    const chunks = await run(open({ fallbacks: ["spare"] }), "good");
    expect(textOf(chunks)).toBe("I am the second.");
    expect(chunks).toContainEqual({ model: "spare" });
    const detail = { model: "good", reason: expect.stringMatching(/^the provider /), next: "spare" };
    const notes = chunks.flatMap((chunk) => ("note" in chunk ? [chunk.note] : []));
    expect(notes).toEqual([{ name: "model.unavailable", detail }]);
  });

  it.each(["400", "413"] as const)("does not continue if the next model would refuse the same: %s", async (fault) => {
    first.fail(fault);
    await expect(run(open({ fallbacks: ["spare"] }))).rejects.toMatchObject({ retryable: false });
    expect(second.seen).toHaveLength(0);
  });

  it("does not continue after the first text", async () => {
    first.fail("reset in the middle");
    first.say({ text: ["1", "2", "3", "4", "5", "6", "7", "8"] });
    await expect(run(open({ fallbacks: ["spare"] }))).rejects.toThrow("ended its answer early");
    expect(second.seen).toHaveLength(0);
  });

  it("can be retried if one of its models can, and reports the last error and the number of models tried", async () => {
    first.fail("429 with Retry-After");
    second.fail("401");
    await expect(run(open({ fallbacks: ["spare"] }))).rejects.toMatchObject({
      message: "none of the 2 models that were tried answered; the last, spare: the provider refused its API key",
      model: "spare",
      retryable: true,
      retryAfterMs: 7_000,
    });
  });

  it("has the error of each model on the timeline if all of them fail", async () => {
    first.fail("529");
    second.fail("400");
    const notes: unknown[] = [];
    const running = open({ fallbacks: ["spare"] }).run(turnOf({ model: "good" }), new AbortController().signal);
    const read = async () => {
      for await (const chunk of running) if ("note" in chunk) notes.push(chunk.note.detail);
    };
    await expect(read()).rejects.toThrow("the last, spare: the provider refused the request (400)");
    expect(notes).toEqual([
      { model: "good", reason: "the provider is overloaded or failing", next: "spare" },
      { model: "spare", reason: "the provider refused the request (400)" },
    ]);
  });

  it("reports the error of a single model differently", async () => {
    first.fail("400");
    await expect(run(open({ fallbacks: ["spare"] }))).rejects.toThrow(/^the provider refused the request \(400\)$/);
  });

  it("skips a model that failed five times, and calls the next at once", async () => {
    first.fail("529");
    const backend = open({ fallbacks: ["spare"] });
    for (let n = 0; n < 7; n++) expect(textOf(await run(backend))).toBe("I am the second.");
    expect(first.seen).toHaveLength(5);
    const alone = open();
    for (let n = 0; n < 5; n++) await expect(run(alone)).rejects.toThrow("overloaded");
    await expect(run(alone)).rejects.toMatchObject({
      message: "the model has failed several times in a row and gets no requests for a while",
      retryable: true,
      retryAfterMs: expect.closeTo(5_000, -3),
    });
  });

  it("repeats the step automatically after tool calls, because the turn cannot start again, and also uses the next model", async () => {
    calls.length = 0;
    const call = { thought: "I order.", calls: [{ name: "order", args: '{"n":1}' }] };
    first.say(call, {}, { text: ["Done."] });
    first.failNext(undefined, "503 with Retry-After");
    expect(textOf(await run(open(), "good", { tools }))).toBe("Done.");
    expect(calls).toHaveLength(1);

    // Within the agent's budget of retries.
    first.reset();
    first.say(call);
    first.failNext(undefined, "503 with Retry-After");
    const asked: string[] = [];
    const mayRetry = () => asked.push("may I?") > 1;
    await expect(run(open(), "good", { tools, mayRetry })).rejects.toMatchObject({ retryable: false });
    expect([asked.length, first.seen.length]).toEqual([1, 2]);
    calls.length = 1;

    first.reset();
    first.say(call);
    first.failNext(undefined, "529");
    expect(textOf(await run(open({ fallbacks: ["spare"] }), "good", { tools }))).toBe("I am the second.");
    expect(calls).toHaveLength(2);
    expect(second.seen[0]?.text).toContain("ordered");
    expect(second.seen[0]?.text).not.toContain("signed I order.");
  });

  it("F06: abandons a model that hangs before its first text, and calls the next, also after tool calls", async () => {
    first.say({ calls: [{ name: "order", args: "{}" }] });
    first.failNext(undefined, "hang before the first byte");
    let goesOn: (() => boolean) | undefined;
    const whenLate = (late: () => boolean) => {
      goesOn = late;
    };
    const more = { tools, watch: { ...turnOf().watch, whenLate } };
    const running = run(open({ fallbacks: ["spare"] }), "good", more);
    await first.next();
    const hanging = await first.next();
    expect(goesOn?.()).toBe(true);
    expect(textOf(await running)).toBe("I am the second.");
    expect(await hanging.left).toBe(true);
    expect(second.seen[0]?.text).toContain("ordered");
    // The answer has arrived.
    expect(goesOn?.()).toBe(false);
  });

  it("has only the turn's limits if there is no other model", async () => {
    const whenLate = () => expect.fail("nobody else can be asked");
    expect(textOf(await run(open(), "good", { watch: { ...turnOf().watch, whenLate } }))).toBe("I am the first.");
  });

  it("F08: abandons a summary without an end, and reports its usage", async () => {
    const used: { output: number }[] = [];
    first.failNext("a body without end");
    first.say({ text: Array.from({ length: 4 }, () => "x".repeat(64 * 1024)) });
    const messages = [{ role: "user", text: "I live in Bern.", outside: false } as const];
    await expect(
      open().summarise(messages, new AbortController().signal, (usage) => used.push(usage)),
    ).rejects.toMatchObject({ name: "BackendError", message: "the summary is longer than 4 MiB" });
    expect(await first.seen[0]?.left).toBe(true);
    expect(used).toHaveLength(1);
    expect(used[0]?.output).toBeGreaterThan(1024 * 1024);
    expect(used[0]?.output).toBeLessThan(2 * 1024 * 1024);
  });

  it("writes summaries with the configured model, and reports their usage", async () => {
    const used: unknown[] = [];
    const backend = open({ summaryModel: "spare" });
    const messages = [{ role: "user", text: "I live in Bern.", outside: true } as const];
    expect(await backend.summarise(messages, new AbortController().signal, (usage) => used.push(usage))).toBe(
      "I am the second.",
    );
    expect(used.at(-1)).toMatchObject({ input: 31, output: 12 });
    expect(second.seen[0]?.text).toContain("I live in Bern.");
    expect(second.seen[0]?.text).toContain("<outside-");
    second.fail("401");
    await expect(backend.summarise(messages, new AbortController().signal)).rejects.toThrow("refused its API key");
  });
});
