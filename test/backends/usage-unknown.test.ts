import { afterAll, describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { startA2aAgent } from "./stand-ins/a2a-agent.ts";
import { agentProgram } from "./stand-ins/acp.ts";
import { startHttpAgent } from "./stand-ins/http-agent.ts";
import { startHttpStandIn } from "./stand-ins/http-stand-in.ts";
import { sh } from "./stand-ins/programs.ts";
import { stepsIn, turnIn } from "./told.ts";

const http = await startHttpAgent("text");
const telling = await startHttpAgent("json");
const a2a = await startA2aAgent({ binding: "JSONRPC", streaming: true });
/** A self-hosted server of chat completions that reports no usage. */
const local = await startHttpStandIn(() => ({
  headers: { "content-type": "text/event-stream" },
  body: [{ delta: { content: "Hello" } }, { delta: {}, finish_reason: "stop" }]
    .map((choice) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`)
    .concat("data: [DONE]\n\n"),
}));
const agents = {
  http: { backend: "http", http: { url: http.url } },
  a2a: { backend: "a2a", a2a: { url: a2a.url } },
  command: { backend: "command", command: { run: sh("command-agent.sh", "echo", "text") } },
  acp: { backend: "acp", acp: { run: agentProgram() } },
  model: { backend: "model", models: { own: { provider: "local", model: "own" } } },
  telling: { backend: "http", http: { url: telling.url } },
  failing: { backend: "echo", echo: { fail: "It is away." } },
} as const satisfies SomeConfig["agents"];
const gateway = await startGateway({
  config: {
    gateway: { defaultAgent: "http", openai: { enabled: true } },
    providers: { local: { type: "openai-compatible", baseUrl: local.url } },
    agents,
  },
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const server of [http, telling, a2a, local]) await server[Symbol.asyncDispose]();
});

const { rest } = gateway;
const { call } = createRpc(gateway.url);
const NOTHING_TOLD = { input: 0, output: 0, total: 0, unknown: true };
const ESTIMATE = { input: 2, output: expect.any(Number), total: expect.any(Number) };

describe("the usage of an agent that does not report it", () => {
  it.each([
    ["http", NOTHING_TOLD, { reason: "the agent's service does not report its token usage" }],
    ["a2a", NOTHING_TOLD, { reason: "the remote agent does not report its token usage" }],
    ["command", ESTIMATE, { reason: "the agent's program does not report its token usage", estimated: true }],
    ["acp", ESTIMATE, { reason: "the agent's program does not report its token usage", estimated: true }],
    ["model", ESTIMATE, { reason: "the provider does not report its token usage", estimated: true }],
  ])("is marked as unknown: %s", async (agent, usage, detail) => {
    const sent = (await rest.call("chat.send", { body: { message: "Hello", agent } })).json;
    expect(sent.usage).toEqual(usage);
    expect((await turnIn(gateway, sent.turn_id)).usage).toEqual(usage);
    expect(await stepsIn(gateway, sent.turn_id, "usage.unknown")).toEqual([detail]);
    const events = await (await rest.stream("chat.send", { body: { message: "Hello", agent } })).all();
    expect(events.at(-1)?.data).toMatchObject({ usage });
    using socket = await openSocket(gateway);
    await socket.call("agent.sendMessage", { agentName: agent, message: "Hello" });
    expect(await socket.pushed("turn.completed")).toMatchObject({ usage });
    const messages = [{ role: "user", content: "Hello" }];
    const completed = await rest.call("completions.create", { body: { model: agent, messages } });
    expect((completed.json.usage as { unknown?: true }).unknown).toBe((usage as { unknown?: true }).unknown);
    const { groups } = (await call("usage.stats", { groupBy: "agent" })).result;
    const tokens = groups.find(({ key }) => key === agent)?.counts.tokens;
    expect([tokens?.unknown, tokens?.total]).toEqual(
      agent in { http, a2a } ? [true, 0] : [undefined, expect.any(Number)],
    );
    const { text: metrics } = await gateway.console.call("ops.metrics");
    expect(metrics).toContain(`gateway_usage_unknown_total{agent="${agent}"} 4\n`);
  });

  it("is missing in sums, which have the number of such turns", async () => {
    for (const agent of ["http", "telling"]) await rest.call("chat.send", { body: { message: "Hello", agent } });
    const { groups, total } = (await call("usage.stats", { groupBy: "token" })).result;
    const { groups: apart } = (await call("usage.stats", { groupBy: "agent" })).result;
    const of = (agent: string) => apart.find(({ key }) => key === agent)?.counts;
    expect(of("telling")?.turns.untold).toBeUndefined();
    expect(of("http")?.turns.untold).toBe(of("http")?.turns.completed);
    const missing = (among: typeof groups) => among.reduce((sum, { counts }) => sum + (counts.turns.untold ?? 0), 0);
    expect(missing(groups)).toBe(missing(apart));
    expect(total.turns.untold).toBe(missing(apart));
    expect([total.tokens.unknown, total.tokens.total > 0]).toEqual([undefined, true]);
  });

  it("is not marked as unknown if it was reported, or if a turn failed before anything was used", async () => {
    const sent = (await rest.call("chat.send", { body: { message: "Hello", agent: "telling" } })).json;
    expect(sent.usage).toEqual({ input: 7, output: 4, total: 11 });
    expect(await stepsIn(gateway, sent.turn_id, "usage.unknown")).toEqual([]);
    const failed = await rest.call("chat.send", { body: { message: "Hello", agent: "failing" } });
    const { turn_id } = failed.problem as { turn_id?: string };
    expect(await turnIn(gateway, turn_id)).toMatchObject({
      status: "failed",
      usage: { input: 0, output: 0, total: 0 },
    });
    expect((await turnIn(gateway, turn_id)).usage).not.toHaveProperty("unknown");
  });
});
