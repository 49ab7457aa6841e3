import { resolve } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { startAnthropic } from "./stand-ins/anthropic.ts";
import { type Fault, RAW } from "./stand-ins/faults.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";
import { stepsIn } from "./told.ts";

const REPLY = "Good morning! I am well 🙂, thank you.";
const KEY = "sk-live-0123456789abcdef0123456789";
const main = await startChatCompletions();
const spare = await startAnthropic({ text: ["I am", " the spare."] });

const models = {
  fast: { provider: "local", model: "the-model" },
  spare: { provider: "anthropic", model: "claude-sonnet-4-5" },
};
const agents: SomeConfig["agents"] = {
  main: { backend: "model", instructions: "Be kind.", models },
  safe: { backend: "model", models, model: "fast", fallbacks: ["spare"] },
  hasty: { backend: "model", models, timeouts: { firstByte: "500ms", silence: "500ms" } },
  handy: { backend: "model", models, tools: ["files/*"] },
  echo: { backend: "echo" },
};
const gateway = await startGateway({
  config: {
    gateway: { defaultAgent: "main" },
    providers: {
      local: { type: "openai-compatible", baseUrl: `${main.url}/v1`, apiKey: KEY },
      anthropic: { type: "anthropic", baseUrl: `${spare.url}/v1`, apiKey: KEY },
    },
    tools: { files: { type: "stdio", run: [process.execPath, resolve("test/tools/stand-in.mjs")] } },
    agents,
  },
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const standIn of [main, spare]) await standIn[Symbol.asyncDispose]();
});
afterEach(() => {
  for (const standIn of [main, spare]) standIn.reset();
});

const { rest } = gateway;
function send(body: object) {
  return rest.call("chat.send", { body });
}

describe("an agent with a model, in the gateway", () => {
  it("reports tool calls with its reply, and on the timeline", async () => {
    const calls = [
      { name: "files__say", args: '{"text":"hi"}' },
      { name: "files__fail", args: "{}" },
      { name: "files__none", args: "{}" },
    ];
    main.say({ calls }, { text: ["All done."] });
    const { json } = await send({ message: "Say hi.", agent: "handy", session_id: "chat:tools" });
    expect(json).toMatchObject({ reply: "All done." });
    const told = [
      { tool: "files__say", ok: true },
      { tool: "files__fail", ok: false, reason: expect.stringContaining("There is no such customer.") },
      { tool: "files__none", ok: false, reason: expect.any(String) },
    ];
    const { result } = await createRpc(gateway.url).call("session.get", { sessionId: "chat:tools" });
    const { toolCalls } = result?.messages[0] ?? {};
    expect(toolCalls).toHaveLength(3);
    expect(toolCalls).toEqual(expect.arrayContaining(told.map((call) => expect.objectContaining(call))));
    const steps = await stepsIn(gateway, json.turn_id, "tool.called");
    expect(steps).toEqual(expect.arrayContaining(told.map((call) => expect.objectContaining(call))));
  });

  it("answers, knows the conversation, and has the usage of the model", async () => {
    const { json } = await send({ message: "one", session_id: "chat:model" });
    expect(json).toMatchObject({ reply: REPLY, usage: { input: 31, output: 12 } });
    await send({ message: "two", session_id: "chat:model", model: "fast" });
    expect(main.seen.at(-1)?.json).toMatchObject({
      model: "the-model",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "one" },
        { role: "assistant", content: REPLY },
        { role: "user", content: "two" },
      ],
    });
    expect(main.seen.at(-1)?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it("accepts models by its own names, and lists them if another is requested", async () => {
    expect((await send({ message: "one", model: "spare" })).json.reply).toBe("I am the spare.");
    const refused = await send({ message: "one", model: "the-model" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("fast, spare");
  });

  it("F06: fails its turn if the provider hangs, before its first piece or later, and others never wait", async () => {
    for (const fault of ["hang before the first byte", "hang in the middle"] as const) {
      main.fail(fault);
      const hanging = send({ message: "one", agent: "hasty" });
      await main.next();
      expect((await send({ message: "hello", agent: "echo" })).json.reply).toBe("hello");
      const { status, text } = await hanging;
      expect(status).toBe(504);
      for (const seen of main.seen) expect(await seen.left).toBe(true);
      expect(text).toContain(fault === "hang in the middle" ? "stopped sending" : "did not begin to answer");
      main.reset();
    }
  });

  it("F07: is retried at the provider's requested time, at most three times, as the timeline shows", async () => {
    main.failNext("503 with Retry-After");
    const began = performance.now();
    const { json } = await send({ message: "one" });
    expect(json.reply).toBe(REPLY);
    expect(performance.now() - began).toBeGreaterThan(900);
    const reason = "the provider is overloaded or failing";
    expect(await stepsIn(gateway, json.turn_id, "turn.returned")).toMatchObject([{ attempt: 1, reason }]);
    main.reset();
    main.fail("reset before the answer");
    expect((await send({ message: "one" })).status).toBe(502);
    expect(main.seen).toHaveLength(3);
  });

  it("F07: is answered by the fallback, which is in the turn, its timeline and its usage", async () => {
    main.fail("529");
    const { json } = await send({ message: "one", agent: "safe" });
    expect(json.reply).toBe("I am the spare.");
    const detail = { model: "fast", reason: "the provider is overloaded or failing", next: "spare" };
    expect(await stepsIn(gateway, json.turn_id, "model.unavailable")).toEqual([detail]);
    expect(main.seen).toHaveLength(1);
  });

  it.each([
    "html",
    "half JSON",
    "an endless line",
    "wrong UTF-8",
    "a compression bomb",
    "401",
    "400",
    "redirect",
    "an endless head",
  ] satisfies Fault[])(
    "F08: reports garbage with its own error, passes nothing on, and continues: %s",
    async (fault) => {
      main.failNext(fault);
      const { status, text, json } = await send({ message: "one" });
      expect([502, 504]).toContain(status);
      expect(text).not.toContain(RAW.slice(0, 12));
      const log = JSON.stringify(gateway.logs);
      expect(log).not.toContain("sk-secret");
      expect(log).not.toContain(KEY);
      expect(json.detail).not.toBe("the agent's backend failed");
      expect((await send({ message: "one" })).json.reply).toBe(REPLY);
    },
  );

  it("F21: fails a turn whose model answers nothing readable, and the process continues", async () => {
    main.failNext("no HTTP", "html under a good head", "html under a good head", "html under a good head");
    expect((await send({ message: "one" })).status).toBe(502);
    expect((await send({ message: "one" })).status).toBe(502);
    expect((await send({ message: "one" })).json.reply).toBe(REPLY);
  });
});
