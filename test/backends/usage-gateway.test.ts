import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { startAnthropic } from "./stand-ins/anthropic.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";
import { turnIn } from "./told.ts";

const main = await startChatCompletions();
const spare = await startAnthropic({
  text: ["I am", " the spare."],
  usage: { input: 100, output: 10, cached: 40, reasoning: 0 },
});
afterAll(async () => {
  for (const standIn of [main, spare]) await standIn[Symbol.asyncDispose]();
});
afterEach(() => {
  for (const standIn of [main, spare]) standIn.reset();
});

/** Cached input costs a tenth. */
const FAST = { input: 1, cachedInput: 0.1, output: 2 };
const SPARE = { input: 3, output: 15 };
/** 15 × 1 + 16 × 0.1 + 12 × 2, and 100 × 3 + 10 × 15, each in millionths. */
const OF_FAST = { input: 31, output: 12, total: 43, cached: 16, reasoning: 4, cost: 0.0000406 };
const OF_SPARE = { input: 100, output: 10, total: 110, cached: 40, cost: 0.00045 };
const BOTH = { input: 131, output: 22, total: 153, cached: 56, reasoning: 4, cost: 0.0004906 };

function configOf(fast: object = { price: FAST }): SomeConfig {
  return {
    gateway: { defaultAgent: "main" },
    providers: {
      local: { type: "openai-compatible", baseUrl: `${main.url}/v1` },
      anthropic: { type: "anthropic", baseUrl: `${spare.url}/v1`, apiKey: "key-of-the-tests" },
    },
    agents: {
      main: {
        backend: "model",
        models: {
          fast: { provider: "local", model: "the-model", ...fast },
          spare: { provider: "anthropic", model: "claude-sonnet-4-5", price: SPARE },
          free: { provider: "local", model: "the-model" },
        },
        fallbacks: ["spare"],
        summaryModel: "spare",
      },
    },
  };
}

async function open(config = configOf()) {
  const gateway = await startGateway({ config });
  const rpc = createRpc(gateway.url);
  const turnOf = (turnId: unknown) => turnIn(gateway, turnId);
  const stats = async (groupBy: "model" | "agent" | "token" | "surface") => {
    const { total, groups } = (await rpc.call("usage.stats", { groupBy })).result;
    return { total: total.tokens, groups: Object.fromEntries(groups.map(({ key, counts }) => [key, counts])) };
  };
  const send = async (body: { message: string } & Record<string, unknown>) =>
    (await gateway.rest.call("chat.send", { body })).json;
  const done = { [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() };
  return { gateway, rpc, turnOf, stats, send, ...done };
}

describe("the usage of turns and its cost", () => {
  it("is in the reply, the turn, the session, the pushes, the stream and the statistics, with the model that answered", async () => {
    await using own = await open();
    const { gateway, rpc, turnOf, stats, send } = own;
    const socket = await openSocket(gateway);
    await socket.call("rpc.subscribe", { agents: ["main"] });
    const first = await send({ message: "one", session_id: "chat:a" });
    expect(first.usage).toEqual(OF_FAST);
    expect(await turnOf(first.turn_id)).toMatchObject({ model: "fast", usage: OF_FAST });

    main.fail("529");
    const second = await send({ message: "two", session_id: "chat:a", model: "fast" });
    expect(second).toMatchObject({ reply: "I am the spare.", usage: OF_SPARE });
    expect(await turnOf(second.turn_id)).toMatchObject({ model: "spare", usage: OF_SPARE });
    main.reset();

    const ended = await socket.until(() => {
      const ends = socket.pushes.filter(({ method }) => method === "turn.completed");
      return ends.length === 2 && ends;
    });
    expect(ended.map(({ params }) => (params as { usage: unknown }).usage)).toEqual([OF_FAST, OF_SPARE]);
    const stream = await gateway.rest.stream("turns.events", { path: { turn_id: String(second.turn_id) } });
    const events: unknown[] = [];
    for await (const { event, data } of stream.events) if (event === "turn.completed") events.push(data);
    expect(events).toMatchObject([{ usage: OF_SPARE }]);
    expect((await rpc.call("session.get", { sessionId: "chat:a" })).result.session.usage).toEqual(BOTH);

    const byModel = await stats("model");
    expect(byModel.total).toEqual(BOTH);
    expect(byModel.groups).toMatchObject({
      fast: { messages: 2, turns: { completed: 1 }, attempts: 1, tokens: OF_FAST },
      spare: { messages: 0, turns: { completed: 1 }, attempts: 1, tokens: OF_SPARE },
    });
    expect((await stats("agent")).groups).toMatchObject({ main: { tokens: BOTH } });
    expect((await stats("token")).groups).toMatchObject({ tests: { tokens: BOTH } });
    const { text } = await gateway.console.call("ops.metrics");
    expect(text).toContain('gateway_input_tokens_total{agent="main",model="fast"} 31\n');
    expect(text).toContain('gateway_output_tokens_total{agent="main",model="spare"} 10\n');
    expect(text).toContain('gateway_cached_tokens_total{agent="main",model="spare"} 40\n');
    expect(text).toContain('gateway_reasoning_tokens_total{agent="main",model="fast"} 4\n');
    expect(text).toContain('gateway_cost_total{agent="main",model="spare"} 0.00045\n');
    socket.ws.close();
  });

  it("has no cost if the model that answered has no price", async () => {
    await using own = await open();
    const { usage, turn_id } = await own.send({ message: "one", model: "free" });
    expect(usage).toEqual({ input: 31, output: 12, total: 43, cached: 16, reasoning: 4 });
    expect(await own.turnOf(turn_id)).toMatchObject({ model: "free" });
    expect((await own.stats("model")).total).toEqual(usage);
  });

  it("includes all attempts and steps of a turn, also of a failed one", async () => {
    await using own = await open(configOf({ price: { input: 1, output: 2 } }));
    const usage = { input: 10, output: 20, cached: 0, reasoning: 0 };
    main.say({ text: ["Half a", " reply"], usage });
    main.failNext("reset in the middle");
    const { turn_id } = await own.send({ message: "one", model: "fast" });
    const turn = await own.turnOf(turn_id);
    expect(turn).toMatchObject({ status: "failed", model: "fast" });
    // The provider reported nothing, so the usage is estimated from the text.
    const { input, output, cost } = turn.usage as { input: number; output: number; cost: number };
    expect(output).toBeGreaterThan(0);
    expect(cost).toBe((input + 2 * output) / 1e6);
    expect((await own.stats("model")).groups.fast?.tokens).toEqual({ input, output, total: input + output, cost });
  });

  it("has the price at the start of the turn, even if the price changes while the turn runs", async () => {
    await using own = await open();
    main.say({ text: ["It", " goes", " on", "."], paceMs: 50 });
    const asked = main.next();
    const running = own.send({ message: "one" });
    await asked;
    await own.gateway.reload(configOf({ price: { input: 100, cachedInput: 10, output: 200 } }));
    expect((await running).usage).toEqual(OF_FAST);
    expect((await own.send({ message: "two" })).usage).toEqual({ ...OF_FAST, cost: 0.00406 });
    await own.gateway.reload(configOf({}));
    expect((await own.send({ message: "three" })).usage).not.toHaveProperty("cost");
    expect((await own.stats("model")).groups.fast?.tokens.cost).toBe(0.0041006);
  });

  it("is counted once for a summary, for the model that wrote it", async () => {
    await using own = await open();
    for (const message of ["one", "two", "three"]) await own.send({ message, session_id: "chat:long", model: "fast" });
    const { result } = await own.rpc.call("session.compact", { sessionId: "chat:long", keep: 1 });
    expect(result).toMatchObject({ compacted: true });
    await expect.poll(async () => (await own.stats("model")).groups.spare?.attempts).toBe(1);
    const { groups } = await own.stats("model");
    expect(groups.spare).toMatchObject({ messages: 0, turns: { completed: 0 }, tokens: OF_SPARE });
    expect(groups.fast?.attempts).toBe(3);
    expect((await own.stats("surface")).groups.rpc?.tokens).toEqual(OF_SPARE);
  });

  it("is counted for a cancelled summary, up to its end", async () => {
    await using own = await open();
    const sessionId = "chat:gone";
    for (const message of ["one", "two", "three"]) await own.send({ message, session_id: sessionId, model: "fast" });
    let compacting: ReturnType<typeof own.rpc.call> | undefined;
    await new Promise<void>((resolve) => {
      const text = Array.from({ length: 100 }, () => "word ");
      // When there is a later piece, the pieces before it were read.
      spare.say({ text, usage: { input: 100, output: 300, cached: 40, reasoning: 0 }, paceMs: 10, onPiece });
      function onPiece(n: number) {
        if (n === 10) resolve();
      }
      compacting = own.rpc.call("session.compact", { sessionId, keep: 1 });
    });
    await own.rpc.call("session.delete", { sessionId });
    expect((await compacting)?.error).toMatchObject({ code: -32002 });
    expect(await spare.seen[0]?.left).toBe(true);
    await expect.poll(async () => (await own.stats("model")).groups.spare?.attempts).toBe(1);
    const { groups } = await own.stats("model");
    const { input = 0, output = 0, cost } = groups.spare?.tokens ?? {};
    expect(input).toBe(100);
    expect(output).toBeGreaterThan(5);
    expect(output).toBeLessThan(130);
    expect(cost).toBeGreaterThan(0);
    expect((await own.stats("surface")).groups.rpc?.tokens).toEqual(groups.spare?.tokens);
  });
});
