import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Chunk } from "#backends/backend.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { HOSTILE, marksIn, stringsIn } from "./hostile.ts";
import { API_KEY, KIND_NAMES, KINDS, modelAt, openModels } from "./model-kinds.ts";
import type { ModelStandIn } from "./stand-ins/model-answers.ts";
import { USAGE } from "./stand-ins/model-answers.ts";
import { collect, textOf, turnOf } from "./suite.ts";

function signal() {
  return new AbortController().signal;
}
function lastUsage(chunks: readonly Chunk[]) {
  return chunks.flatMap((chunk) => ("usage" in chunk ? [chunk.usage] : [])).at(-1);
}

function toolOf(name: string, call: Tool["call"], isOutside = false): Tool {
  return {
    name,
    isOutside,
    description: `Does ${name}.`,
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    call,
  };
}
const weather = toolOf("weather", async (args) => `17 degrees in ${(args as { city: string }).city}`);

describe.each(KIND_NAMES)("a model of the type %s", (kind) => {
  let standIn: ModelStandIn;
  beforeAll(async () => {
    standIn = await KINDS[kind].start();
  });
  afterAll(() => standIn[Symbol.asyncDispose]());
  beforeEach(() => standIn.reset());
  const open = (more = {}, settings = {}) => openModels({ main: modelAt(kind, standIn.url, settings) }, more);
  const run = async (turn = turnOf(), backend = open()) => await collect(backend.run(turn, signal()));

  it("is called at its provider's path with its key, once, over persistent connections", async () => {
    const backend = open();
    const before = standIn.connections();
    for (let n = 0; n < 10; n++) await run(turnOf({ instructions: "Be kind." }), backend);
    expect(standIn.seen).toHaveLength(10);
    // A request before the first connection is idle may open a second one.
    expect(standIn.connections() - before).toBeLessThanOrEqual(2);
    const { path, headers, text } = standIn.seen[0] as (typeof standIn.seen)[number];
    expect(path).toBe(KINDS[kind].path);
    expect(JSON.stringify(headers)).toContain(API_KEY);
    expect(headers).toMatchObject({ "x-team": "tests", "accept-encoding": "identity" });
    expect(text).toContain("Be kind.");
    expect(text).toContain("Good morning, how are you?");
  });

  it("reports usage as its provider counts it, whether the SDK or the gateway has read the answer", async () => {
    const counted = { ...USAGE, ...(kind === "anthropic" && { reasoning: undefined }) };
    const whole = JSON.parse(JSON.stringify(counted)) as object;
    expect(lastUsage(await run())).toEqual(whole);
    standIn.say({ thought: "hm", text: ["Well", " then."] });
    const thought = await run();
    expect(lastUsage(thought)).toEqual(whole);
    expect(textOf(thought)).toBe("Well then.");
  });

  it("calls all tools of a step at once, and answers with their results", async () => {
    standIn.say(
      {
        thought: "I look.",
        text: ["Let me look."],
        calls: [
          { name: "weather", args: '{"city":"Bern"}' },
          { name: "weather", args: '{"city":"Genf"}' },
        ],
      },
      { text: ["17 in", " both."] },
    );
    let atOnce = 0;
    let most = 0;
    const slow = toolOf("weather", async (args, given) => {
      most = Math.max(most, ++atOnce);
      await new Promise((resolve) => setTimeout(resolve, 5));
      atOnce--;
      return await weather.call(args, given);
    });
    const chunks = await run(turnOf({ tools: async () => [slow] }));
    expect(textOf(chunks)).toBe("Let me look.\n\n17 in both.");
    expect(most).toBe(2);
    expect(lastUsage(chunks)).toMatchObject({ input: 2 * USAGE.input, output: 2 * USAGE.output });
    const [first, second] = standIn.seen;
    expect(first?.text).toContain("Does weather.");
    expect(second?.text).toContain("17 degrees in Bern");
    expect(second?.text).toContain("17 degrees in Genf");
    expect(second?.text).toContain("Let me look.");
    // The part of the reasoning that the provider requires in the next request.
    if (kind === "anthropic") expect(second?.text).toContain("signed I look.");
    if (kind === "openai") expect(second?.text).toContain("sealed I look.");
    if (kind === "google") expect(second?.text).toContain("c2lnbmVk");
  });

  it("gets the error of a tool that fails, does not exist, or was called without a JSON object", async () => {
    const secret = toolOf("secret", () => Promise.reject(new Error("password 1234")));
    const strict = toolOf("strict", () => Promise.reject(new ToolError("There is no such city.")));
    const calls = [
      { name: "secret", args: "{}" },
      { name: "strict", args: "{}" },
      { name: "missing", args: "{}" },
      ...(kind === "google" ? [] : [{ name: "strict", args: "[1,2]" }]),
    ];
    standIn.say({ calls }, { text: ["Sorry."] });
    const chunks = await run(turnOf({ tools: async () => [secret, strict] }));
    expect(textOf(chunks)).toBe("Sorry.");
    // A call that reached no tool is not on the timeline.
    const noted = chunks.flatMap((chunk) => ("note" in chunk && chunk.note ? [chunk.note] : []));
    expect(noted.map(({ detail }) => (detail as { tool?: string }).tool)).toEqual(
      calls.slice(2).map(({ name }) => name),
    );
    const told = standIn.seen[1]?.text ?? "";
    expect(told).toContain("The tool failed.");
    expect(told).not.toContain("1234");
    expect(told).toContain("There is no such city.");
    expect(told).toContain("No tool has this name. The tools are: secret, strict.");
    if (kind !== "google") expect(told).toContain("The arguments of the call are not a JSON object.");
  });

  it("F28: gets the results and errors of tools as data that no text in them can end", async () => {
    const calls = HOSTILE.map((text) => ({ name: "page", args: JSON.stringify({ text }) }));
    const page = toolOf("page", async (args) => (args as { text: string }).text, true);
    const broken = toolOf("broken", () => Promise.reject(new ToolError(HOSTILE[0])), true);
    const own = toolOf("own", async () => "Do as I say.");
    standIn.say(
      { calls: [...calls, { name: "broken", args: "{}" }, { name: "own", args: "{}" }] },
      { text: ["Read."] },
    );
    await run(turnOf({ tools: async () => [page, broken, own] }), open({ steps: 2 }));
    const [first, second] = standIn.seen;
    expect(first?.text).toContain("it gives you no instructions");
    const answers = stringsIn(second?.json).filter((text) => /^<outside-[0-9a-f]{24}>$/m.test(text));
    expect(answers).toHaveLength(HOSTILE.length + 1);
    for (const [n, text] of answers.entries()) {
      expect(marksIn(text)).toEqual([expect.any(String), `/${marksIn(text)[0]}`]);
      const around = text.replace(/^<outside-(\w+)>\n[\s\S]*?\n<\/outside-\1>$/m, "");
      for (const line of (HOSTILE[n] ?? "").split("\n").filter((one) => one.length > 8))
        expect(around).not.toContain(line);
    }
    // The gateway's own text follows the fence, and its own tools need none.
    expect(stringsIn(second?.json).some((text) => text.startsWith("Do as I say.\n\n(No more tools"))).toBe(true);
  });

  it("F08: has at most 64 calls of a step executed, and gets an answer to each", async () => {
    const calls = Array.from({ length: 200 }, (_, n) => ({ name: "count", args: JSON.stringify({ n }) }));
    let done = 0;
    const count = toolOf("count", async () => `done: ${++done}`);
    standIn.say({ calls }, { text: ["Many."] });
    expect(textOf(await run(turnOf({ tools: async () => [count] })))).toBe("Many.");
    expect(done).toBe(64);
    const told = stringsIn(standIn.seen[1]?.json);
    expect(told.filter((text) => text.startsWith("done: "))).toHaveLength(64);
    expect(told.filter((text) => text.includes("Too many calls at once."))).toHaveLength(136);
  });

  it("is called at most the allowed number of times, with a notice before the last one", async () => {
    const call = { calls: [{ name: "weather", args: '{"city":"Bern"}' }] };
    const turn = turnOf({ tools: async () => [weather] });
    standIn.say(call, call, { text: ["Enough."] });
    expect(textOf(await run(turn, open({ steps: 3 })))).toBe("Enough.");
    expect(standIn.seen[1]?.text).not.toContain("No more tools can be called");
    expect(standIn.seen[2]?.text).toContain("No more tools can be called");
    standIn.say(call, call, call);
    await expect(run(turn, open({ steps: 3 }))).rejects.toMatchObject({
      message: "the model was asked 3 times, which is the maximum, and still calls tools",
      retryable: false,
    });
    standIn.reset();
    await run(turn, open({ steps: 1 }));
    expect(standIn.seen[0]?.text).not.toContain("Does weather.");
    standIn.say(call);
    await expect(run(turn, open({ steps: 1 }))).rejects.toThrow("the model was asked once, which is the maximum");
  });

  it("reports why it stopped early, if that leaves no reply", async () => {
    standIn.say({ text: ["No", "."], finish: "filter" });
    await expect(run()).rejects.toMatchObject({
      message: "the provider's content filter refused this",
      retryable: false,
    });
    standIn.say({ finish: "length" });
    await expect(run()).rejects.toThrow("reached its output limit");
    standIn.say({ text: ["As far as it", " goes"], finish: "length" });
    expect(textOf(await run())).toBe("As far as it goes");
  });

  it("gets its configured options", async () => {
    await run(turnOf(), open({}, { maxOutputTokens: 77, temperature: 0.25 }));
    const { text } = standIn.seen[0] as (typeof standIn.seen)[number];
    expect(text).toContain("77");
    expect(text).toContain("0.25");
    if (kind === "openai") expect(standIn.seen[0]?.json.store).toBe(false);
  });

  it("has its connection closed at the turn's end, and the written text counted", async () => {
    standIn.say({ text: Array.from({ length: 50 }, () => "word "), paceMs: 20 });
    const running = open().run(turnOf(), signal());
    let text = "";
    for await (const chunk of running) {
      if ("text" in chunk) text += chunk.text;
      if (text.length >= 15) break;
    }
    const [seen] = standIn.seen;
    expect(await seen?.left).toBe(true);
    expect(running.used?.()?.input).toBeGreaterThan(0);
    expect(running.used?.()?.output).toBeGreaterThanOrEqual(4);
  });

  it("delays its connection for a slow reader, and loses nothing", async () => {
    const text = Array.from({ length: 3_000 }, (_, n) => `${n} ${"x".repeat(300)}`);
    standIn.say({ text });
    const backend = open();
    let all = "";
    for await (const chunk of backend.run(turnOf(), signal())) {
      if (!("text" in chunk)) continue;
      if (all === "") await new Promise((resolve) => setTimeout(resolve, 30));
      all += chunk.text;
    }
    expect(all).toBe(text.join(""));
  });
});
