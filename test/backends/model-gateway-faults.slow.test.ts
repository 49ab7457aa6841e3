import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRest } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { startAnthropic } from "./stand-ins/anthropic.ts";
import type { Fault } from "./stand-ins/faults.ts";
import { startHttpAgent } from "./stand-ins/http-agent.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";
import { stepsIn } from "./told.ts";

const main = await startChatCompletions();
const spare = await startAnthropic({ text: ["I am", " the spare."] });
const http = await startHttpAgent("stream");
const standIns = [main, spare, http];
afterAll(async () => {
  for (const standIn of standIns) await standIn[Symbol.asyncDispose]();
});
afterEach(() => {
  for (const standIn of standIns) standIn.reset();
});

const LATE = "the model did not begin its reply in time";
const models = {
  fast: { provider: "local", model: "the-model" },
  spare: { provider: "anthropic", model: "claude-sonnet-4-5" },
};
const timeouts = { firstByte: "400ms", silence: "400ms" };
const agents: SomeConfig["agents"] = {
  main: { backend: "model", models, fallbacks: ["spare"], timeouts },
  alone: { backend: "model", models: { fast: models.fast } },
  service: { backend: "http", http: { url: http.url } },
};
function open() {
  return startGateway({
    config: {
      gateway: { defaultAgent: "main", openai: { enabled: true } },
      providers: {
        local: { type: "openai-compatible", baseUrl: `${main.url}/v1` },
        anthropic: { type: "anthropic", baseUrl: `${spare.url}/v1`, apiKey: "key-of-the-tests" },
      },
      agents,
    },
  });
}

function send({ rest }: TestGateway, body: object) {
  return rest.call("chat.send", { body });
}

describe("F06: a hanging model with a fallback", () => {
  it.each(["hang before the first byte", "hang after the head"] satisfies Fault[])(
    "is replaced by the next one within the turn: %s",
    async (fault) => {
      await using gateway = await open();
      main.fail(fault);
      const { json } = await send(gateway, { message: "one" });
      expect(json.reply).toBe("I am the spare.");
      expect(main.seen).toHaveLength(1);
      expect(await main.seen[0]?.left).toBe(true);
      expect(await stepsIn(gateway, json.turn_id, "turn.started")).toHaveLength(1);
      expect(await stepsIn(gateway, json.turn_id, "model.unavailable")).toEqual([
        { model: "fast", reason: LATE, next: "spare" },
      ]);
    },
  );

  it("is also replaced if it becomes silent while it reasons, and its reasoning is counted", async () => {
    await using gateway = await open();
    main.say({ thought: "hm, ".repeat(1_000) });
    main.failNext("hang in the middle");
    const { json } = await send(gateway, { message: "one" });
    expect(json.reply).toBe("I am the spare.");
    expect((json.usage as { output: number }).output).toBeGreaterThan(1_000);
  });

  it("fails its turn after its first text", async () => {
    await using gateway = await open();
    main.fail("hang in the middle");
    const { status, problem } = await send(gateway, { message: "one" });
    expect([status, problem.detail]).toEqual([504, "the agent's backend stopped sending in the middle of its reply"]);
    expect(spare.seen).toHaveLength(0);
  });

  it("is reported with all others if each of them hangs, and each attempt calls them all", async () => {
    await using gateway = await open();
    main.fail("hang before the first byte");
    spare.fail("hang before the first byte");
    const { status, problem } = await send(gateway, { message: "one" });
    expect([status, problem.detail]).toEqual([
      504,
      `none of the 2 models that were tried answered; the last, spare: ${LATE}`,
    ]);
    expect([main.seen.length, spare.seen.length]).toEqual([3, 3]);
    const one = [
      { model: "fast", reason: LATE, next: "spare" },
      { model: "spare", reason: LATE },
    ];
    expect(await stepsIn(gateway, problem.turn_id, "model.unavailable")).toEqual([...one, ...one, ...one]);
  });
});

describe("F07: an agent with five failures in a row", () => {
  const wearOut = async (gateway: TestGateway, agent: string) => {
    while ((await send(gateway, { message: "hi", agent })).status !== 503);
  };

  it.each(["alone", "service"])("is refused at once to waiting callers, and nothing is stored: %s", async (agent) => {
    await using gateway = await open();
    main.fail("500");
    http.fail("500");
    await wearOut(gateway, agent);
    const asked = main.seen.length + http.seen.length;
    const session_id = "chat:refused";
    const { status, problem, headers } = await send(gateway, { message: "one", agent, session_id });
    expect({ status, type: problem.type, detail: problem.detail }).toEqual({
      status: 503,
      type: "/docs/errors.html#agent-unavailable",
      detail: `The backend of the agent ${agent} has failed several times in a row and gets no requests for a while.`,
    });
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(Number(headers.get("retry-after"))).toBeLessThanOrEqual(5);
    expect((await send(gateway, { message: "one", agent, stream: true })).status).toBe(503);
    expect(main.seen.length + http.seen.length).toBe(asked);
    expect(await gateway.gateway.store.getSession(session_id)).toBeUndefined();
  });

  it("is in health and in the metrics, accepts messages without a waiting caller, and answers when it recovers", async () => {
    await using gateway = await open();
    const rpc = createRpc(gateway.url);
    main.fail("500");
    await wearOut(gateway, "alone");
    const part = async () => {
      const { parts } = (await rpc.call("system.health", {})).result;
      return parts.find(({ name }) => name === "agents.alone");
    };
    expect(await part()).toMatchObject({
      status: "degraded",
      detail: expect.stringMatching(/failed repeatedly and gets no requests for \d s\.$/),
    });
    const metrics = async () => (await createRest(gateway.url, gateway.rpcToken).call("ops.metrics")).text;
    expect(await metrics()).toMatch(/gateway_agent_rest_seconds\{agent="alone"\} [1-9]/);
    expect(await metrics()).toContain('gateway_agent_rest_seconds{agent="main"} 0');
    expect(await metrics()).toMatch(/gateway_errors_total\{surface="rest",error="agent-unavailable"\} [1-9]/);

    main.reset();
    const { result } = await rpc.call("agent.sendMessage", { agentName: "alone", message: "later" });
    await expect.poll(async () => (await gateway.gateway.store.getTurn(result.turnId))?.status).toBe("completed");
    expect((await send(gateway, { message: "one", agent: "alone" })).status).toBe(200);
    expect(await metrics()).toContain('gateway_agent_rest_seconds{agent="alone"} 0');
  });

  it("continues with its other model, and refuses no caller", async () => {
    await using gateway = await open();
    main.fail("500");
    for (let n = 0; n < 7; n++) expect((await send(gateway, { message: "hi" })).json.reply).toBe("I am the spare.");
    expect(main.seen).toHaveLength(5);
  });
});
