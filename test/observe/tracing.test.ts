import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tracingSettingsOf } from "#gateway/tracing-settings.ts";
import { startChatCompletions } from "#test/backends/stand-ins/openai.ts";
import { answer, hang, startReceiver } from "#test/channels/receiver.ts";
import { emptyFolder, runCli } from "#test/cli/cli.ts";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { type SeenSpan, startCollector } from "./collector.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const traceparent = `00-${TRACE}-${PARENT}-01`;
const SOON = { OTEL_BSP_SCHEDULE_DELAY: "10" };

async function start(env: Record<string, string>, config: SomeConfig = {}) {
  const gateway = await startGateway({ config, env: { ...SOON, ...env } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}
async function collect(...behave: Parameters<typeof startCollector>) {
  const collector = await startCollector(...behave);
  onTestFinished(() => collector[Symbol.asyncDispose]());
  return collector;
}
function named(spans: readonly SeenSpan[], name: string): SeenSpan {
  const found = spans.find((span) => span.name === name);
  if (!found) throw new Error(`no span ${name} among ${spans.map(({ name }) => name).join(", ")}`);
  return found;
}
async function dropped(gateway: Awaited<ReturnType<typeof start>>): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${gateway.rpcToken}` };
  const { text } = await gateway.rest.send("GET", "/metrics", { key: null, headers });
  return /gateway_spans_dropped_total\{reason="\w+"\} \d+/.exec(text)?.[0];
}

describe("the trace of a turn", () => {
  it("MUST continue the caller's trace, from the request over the queue to the agent, without content", async () => {
    const collector = await collect();
    const gateway = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: "front door" });
    const { json } = await gateway.rest.call("chat.send", { body: { message: "a secret" }, headers: { traceparent } });
    await collector.received(1);
    const spans = collector.spans();
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
    const request = named(spans, "chat.send");
    expect(request).toMatchObject({ parentSpanId: PARENT, kind: 2 });
    expect(request.attributes).toMatchObject({
      "http.request.method": "POST",
      "url.path": "/api/v1/chat/send",
      "agent_gateway.turn.id": json.turn_id,
      "agent_gateway.surface": "rest",
    });
    expect(named(spans, "queue").parentSpanId).toBe(request.spanId);
    const agent = named(spans, "invoke_agent main");
    expect(agent).toMatchObject({ parentSpanId: request.spanId, kind: 1, status: {} });
    expect(agent.attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "main",
      "gen_ai.conversation.id": json.session_id,
      "gen_ai.usage.input_tokens": 2,
      "gen_ai.usage.output_tokens": 2,
    });
    expect(JSON.stringify(collector.bodies())).not.toContain("a secret");
    expect(collector.bodies()[0]).toMatchObject({ method: "POST", path: "/v1/traces" });
    expect(collector.resource()).toMatchObject({ "service.name": "front door", "service.version": expect.any(String) });
  });

  it("has the model's parts and the tools between them", async () => {
    const collector = await collect();
    await using model = await startChatCompletions();
    model.say(
      {
        calls: [
          { name: "files__say", args: '{"text":"hi"}' },
          { name: "files__fail", args: "{}" },
        ],
      },
      { text: ["Done."] },
    );
    const gateway = await start(
      {},
      {
        gateway: { tracing: { endpoint: `${collector.url}/own/path`, headers: { "x-api-key": "key" }, content: true } },
        providers: { local: { type: "openai-compatible", baseUrl: `${model.url}/v1`, apiKey: "none" } },
        tools: { files: { type: "stdio", run: [process.execPath, resolve("test/tools/stand-in.mjs")] } },
        agents: {
          main: {
            backend: "model",
            tools: ["files/*"],
            models: { fast: { provider: "local", model: "the-model" } },
            model: "fast",
          },
        },
      },
    );
    await gateway.rest.call("chat.send", { body: { message: "Say hi." } });
    await collector.received(1);
    const spans = collector.spans();
    const agent = named(spans, "invoke_agent main");
    const chats = spans.filter(({ attributes }) => attributes["gen_ai.operation.name"] === "chat");
    expect(chats.length).toBeGreaterThan(0);
    for (const chat of chats) {
      expect(chat).toMatchObject({ parentSpanId: agent.spanId, kind: 3 });
      expect(chat.attributes["gen_ai.provider.name"]).toBe("openai-compatible");
      expect(chat.from >= agent.from && chat.to <= agent.to).toBe(true);
    }
    expect(named(spans, "execute_tool files__say")).toMatchObject({ parentSpanId: agent.spanId, status: {} });
    expect(named(spans, "execute_tool files__fail")).toMatchObject({ status: { code: 2 } });
    expect(agent.attributes["gen_ai.input.messages"]).toContain("Say hi.");
    expect(agent.attributes["gen_ai.output.messages"]).toContain("Done.");
    expect(collector.bodies()[0]).toMatchObject({ path: "/own/path", headers: { "x-api-key": "key" } });
  });

  it("ends with the announcement of its reply, in the same trace", async () => {
    const collector = await collect();
    await using channel = await startReceiver();
    const gateway = await start(
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
      {
        gateway: { announceTo: "ops" },
        channels: { ops: { type: "webhook", url: channel.url, secret: "a-secret-of-the-channel-ops" } },
      },
    );
    await gateway.hooks.agent({ message: "Hello", delivery: "announce" });
    // Both may arrive at once.
    await gateway.logged("announcement.delivered");
    await gateway[Symbol.asyncDispose]();
    const spans = collector.spans();
    const announced = named(spans, "announce ops");
    const request = named(spans, "hooks.agent");
    expect(announced).toMatchObject({ traceId: request.traceId, parentSpanId: request.spanId, kind: 3, status: {} });
    expect(announced.attributes["http.response.status_code"]).toBe(200);
  });

  it("has the reason for a failed attempt", async () => {
    const collector = await collect();
    const gateway = await start(
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
      { agents: { main: { backend: "command", command: { run: [process.execPath, "-e", "process.exit(3)"] } } } },
    );
    await gateway.rest.call("chat.send", { body: { message: "Hello" } });
    await collector.received(1);
    const agent = collector
      .spans()
      .filter(({ name }) => name === "invoke_agent main")
      .at(-1);
    expect(agent).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "turn-failed" } });
  });

  it("is not sent if its caller, or the ratio, excludes it", async () => {
    const collector = await collect();
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const unsampled = await start(endpoint);
    const headers = { traceparent: traceparent.replace(/01$/, "00") };
    await unsampled.rest.call("chat.send", { body: { message: "not this" }, headers });
    await unsampled.rest.call("chat.send", { body: { message: "but this" } });
    await collector.received(1);
    expect(collector.spans().filter(({ name }) => name === "chat.send")).toHaveLength(1);
    const none = await start({ ...endpoint, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" });
    await none.rest.call("chat.send", { body: { message: "nor this" } });
    await none[Symbol.asyncDispose]();
    expect(collector.requests).toHaveLength(1);
  });
});

describe("a collector", () => {
  it("that is busy is called again", async () => {
    const collector = await collect([answer(503, { "retry-after": 0 }), answer(200)]);
    const gateway = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await gateway.rest.call("chat.send", { body: { message: "Hello" } });
    await collector.received(2);
    const [first, second] = collector.bodies();
    expect(second?.sent).toEqual(first?.sent);
  });

  it("that refuses, or does not exist, loses only spans: they are counted and logged", async () => {
    const collector = await collect([answer(400)]);
    const gateway = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    expect((await gateway.rest.call("chat.send", { body: { message: "Hello" } })).status).toBe(200);
    expect(await gateway.logged("spans.dropped")).toMatchObject({ reason: "collector", count: 3, level: "warn" });
    expect(await dropped(gateway)).toBe('gateway_spans_dropped_total{reason="collector"} 3');
  });

  it("that hangs fills a bounded queue, and does not delay the end of the gateway for long", async () => {
    const collector = await collect([hang]);
    const gateway = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_MAX_QUEUE_SIZE: "6",
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "3",
      OTEL_EXPORTER_OTLP_TIMEOUT: "300",
    });
    for (let n = 0; n < 5; n++) await gateway.rest.call("chat.send", { body: { message: "Hello" } });
    await gateway.logged("spans.dropped", { reason: "queue" });
    expect(await dropped(gateway)).toContain("gateway_spans_dropped_total");
    await gateway[Symbol.asyncDispose]();
  });

  it("gets the remaining spans when the gateway stops", async () => {
    const collector = await collect();
    const gateway = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "600000" });
    await gateway.rest.call("chat.send", { body: { message: "Hello" } });
    await gateway[Symbol.asyncDispose]();
    expect(collector.spans().map(({ name }) => name)).toContain("chat.send");
  });
});

describe("the settings of tracing", () => {
  const tracing = { endpoint: undefined, headers: {}, content: false };
  const settings = (env: Record<string, string>, own: object = {}) =>
    tracingSettingsOf({ gateway: { tracing: { ...tracing, ...own } } } as never, env, "1.2.3");

  it.each([
    [{}],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_SDK_DISABLED: "true" }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_TRACES_EXPORTER: "none" }],
  ])("are off with %j", (env) => {
    expect(settings(env as never)).toBeUndefined();
  });

  it("come from OpenTelemetry's variables", () => {
    const read = settings({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=x%20y",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=prod,service.name=theirs",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.25",
    });
    expect(read).toMatchObject({
      url: "http://c:4318/v1/traces",
      headers: { a: "1", b: "x y" },
      resource: { "service.name": "theirs", "service.version": "1.2.3", "deployment.environment.name": "prod" },
      ratio: 0.25,
      followsCaller: true,
    });
    const own = { endpoint: "https://own/x", headers: { a: "2" } };
    expect(
      settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_EXPORTER_OTLP_HEADERS: "a=1" }, own),
    ).toMatchObject({
      url: "https://own/x",
      headers: { a: "2" },
    });
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "c:4318" }, "http://"],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, "http/json"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "no equals sign" }, "OTEL_EXPORTER_OTLP_HEADERS"],
    [{ OTEL_EXPORTER_OTLP_HEADERS: "a=%zz" }, "percent-encoded"],
    [{ OTEL_TRACES_SAMPLER: "sometimes" }, "parentbased_always_on"],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" }, "from 0 to 1"],
    [{ OTEL_BSP_MAX_QUEUE_SIZE: "many" }, "OTEL_BSP_MAX_QUEUE_SIZE"],
  ])("refuse %j with the valid values", (env, words) => {
    expect(() => settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", ...(env as object) })).toThrow(words);
  });

  it("that cannot be used are reported by `check` and refuse the start, in a sentence", async () => {
    const cwd = emptyFolder();
    writeFileSync(join(cwd, "gateway.json5"), `{ agents: { main: { backend: "echo" } } }`);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
    const words = "OTEL_EXPORTER_OTLP_PROTOCOL is grpc: traces are sent as http/json. Set it so, or leave it out.";
    const checked = await runCli(["check"], { cwd, env });
    expect([checked.code, checked.out + checked.err]).toEqual([1, expect.stringContaining(words)]);
    const started = await runCli(["serve", "--port", "0"], { cwd, env });
    expect([started.code, started.err]).toEqual([1, `${words}\nNext: agent-gateway check\n`]);
  });
});
