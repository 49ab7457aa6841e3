import { resolve } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";

/** The tokens that the stand-in reports for each request. */
const TOKENS = 43;
const SAY = { calls: [{ name: "files__say", args: '{"text":"hi"}' }] };

const model = await startChatCompletions();
afterAll(() => model[Symbol.asyncDispose]());
afterEach(() => model.reset());

function configOf(budget: object, more: object = {}): SomeConfig {
  const one = { provider: "local", model: "m", maxOutputTokens: 10, price: { input: 1, output: 2 } };
  return {
    providers: { local: { type: "openai-compatible", baseUrl: `${model.url}/v1`, apiKey: "key" } },
    tools: { files: { type: "stdio", run: [process.execPath, resolve("test/tools/stand-in.mjs")] } },
    agents: { main: { backend: "model", models: { one }, tools: ["files/*"], ...more } },
    budgets: { daily: { per: "day", ...budget } },
  } as SomeConfig;
}

describe("a budget, in the gateway", () => {
  it("stops a turn that calls tools for ever before its next request to the model, and keeps its tool calls", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: 200 }) });
    model.say(...Array.from({ length: 20 }, () => SAY));
    const { status, problem, headers } = await gateway.rest.call("chat.send", {
      body: { message: "Hi.", session_id: "chat:loop" },
    });
    expect(problem).toMatchObject({
      type: "/docs/errors.html#budget-exceeded",
      detail: expect.stringContaining("The budget `daily` of 200 tokens per day is spent"),
      turn_id: expect.stringMatching(/^turn_/),
    });
    expect(status).toBe(429);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    expect(model.seen).toHaveLength(5);
    const [{ tokens, state } = {}] = await gateway.gateway.store.listBudgets();
    expect([tokens, state]).toMatchObject([{ used: 5 * TOKENS, reserved: 0 }, "exceeded"]);
    const { result } = await createRpc(gateway.url).call("session.get", { sessionId: "chat:loop" });
    expect(result?.messages[0]?.toolCalls).toHaveLength(5);
    const turn = await gateway.rest.call("turns.get", { path: { turn_id: problem?.turn_id ?? "" } });
    expect(turn.json).toMatchObject({ status: "failed", error: { name: "budget-exceeded" } });
    // New turns are refused, and store nothing.
    const refused = await gateway.rest.call("chat.send", { body: { message: "Hi." } });
    expect(refused.problem).not.toHaveProperty("turn_id");
    expect(refused.status).toBe(429);
    expect(model.seen).toHaveLength(5);
    // The stopped turn and the refused one.
    expect(gateway.linesOf("budget.refused", { budget: "daily" })).toHaveLength(2);
  });

  it("gives no time for another try with a replayed failure", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: TOKENS }) });
    model.say(SAY);
    const send = () =>
      gateway.rest.call("chat.send", { body: { message: "Hi." }, headers: { "idempotency-key": "once" } });
    const first = await send();
    expect(first.problem).toMatchObject({ status: 429, retry_after_ms: expect.any(Number) });
    const again = await send();
    expect(again.problem).toMatchObject({ status: 429, turn_id: first.problem?.turn_id });
    expect(again.problem).not.toHaveProperty("retry_after_ms");
    expect(again.headers.get("retry-after")).toBeNull();
  });

  it("counts the cost of each step by the prices", async () => {
    const cost = 31 + 2 * 12;
    await using gateway = await startGateway({ config: configOf({ cost: (2 * cost) / 1e6 }) });
    model.say(SAY, SAY, SAY);
    const { status } = await gateway.rest.call("chat.send", { body: { message: "Hi." } });
    expect(status).toBe(429);
    expect(model.seen).toHaveLength(2);
    expect((await gateway.gateway.store.listBudgets())[0]?.cost).toMatchObject({ used: 2 * cost * 1_000, reserved: 0 });
  });

  it("reserves for a further step also the descriptions of the tools and the tool calls", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: 10_000 }) });
    const text = "x".repeat(2_000);
    let reserved = 0;
    const onPiece = async () => {
      const [budget] = await gateway.gateway.store.listBudgets();
      reserved = Math.max(reserved, budget?.tokens?.reserved ?? 0);
    };
    const call = { name: "files__say", args: JSON.stringify({ text }) };
    model.say({ calls: [call] }, { text: ["Done."], onPiece, paceMs: 20 });
    expect((await gateway.rest.call("chat.send", { body: { message: "Hi." } })).status).toBe(200);
    // The call, its result that repeats it, and the tools.
    expect(reserved).toBeGreaterThan(TOKENS + 2 * 500 + 50);
  });

  it("is not exceeded by another try or a fallback", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: TOKENS }) });
    model.say(SAY, { text: ["Done."] });
    expect((await gateway.rest.call("chat.send", { body: { message: "Hi." } })).status).toBe(429);
    expect(model.seen).toHaveLength(1);
  });

  it("lets a step wait while another turn has reserved the rest", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: 50 }) });
    const usage = { input: 1, output: 1, cached: 0, reasoning: 0 };
    model.say({ text: ["Slow."], usage, paceMs: 200 }, SAY, { text: ["Done."], usage });
    const send = () => gateway.rest.call("chat.send", { body: { message: "Hi." } });
    const slow = send();
    await expect.poll(() => model.seen.length).toBe(1);
    const { status, json } = await send();
    expect([status, json.reply]).toEqual([200, "Done."]);
    expect((await slow).status).toBe(200);
  });

  it("does not delay the end of the gateway by turns that wait for it", async () => {
    // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
    await using gateway = await startGateway({ config: configOf({ tokens: 1, then: "pause" }) });
    const send = (wait: boolean) => gateway.rest.call("chat.send", { body: { message: "Hi.", wait } });
    expect([(await send(true)).status, (await send(false)).status]).toEqual([200, 202]);
    await gateway.gateway.drain("test", 60_000);
    expect(model.seen).toHaveLength(1);
  });

  it("is named in the error of a compaction", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: 1 }) });
    const body = { message: "Hi.", session_id: "chat:full" };
    expect((await gateway.rest.call("chat.send", { body })).status).toBe(200);
    const { error } = await createRpc(gateway.url).call("session.compact", { sessionId: "chat:full" });
    expect(error?.data).toMatchObject({ name: "budget-exceeded", budget: "daily", resetsAt: expect.any(String) });
  });

  it("has no effect on a turn to which it does not apply", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: 1, sources: ["webhook"] }) });
    model.say(SAY, SAY, { text: ["Done."] });
    const { json } = await gateway.rest.call("chat.send", { body: { message: "Hi." } });
    expect(json).toMatchObject({ reply: "Done." });
  });

  it("applies at once when a reload changes it, and keeps what was used", async () => {
    await using gateway = await startGateway({ config: configOf({ tokens: 10 }) });
    const send = async () => (await gateway.rest.call("chat.send", { body: { message: "Hi." } })).status;
    expect([await send(), await send()]).toEqual([200, 429]);
    await gateway.reload(configOf({ tokens: 1_000 }));
    expect(await send()).toBe(200);
    await gateway.reload(configOf({ tokens: 2 * TOKENS }));
    expect(await send()).toBe(429);
  });
});
