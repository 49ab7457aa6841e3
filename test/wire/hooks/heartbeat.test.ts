import { describe, expect, it } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { BackendError } from "#kit/errors.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRest } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { readExposition, readSeries } from "#test/process/exposition.ts";
import { openSocket } from "#test/wire/ws/socket.ts";

async function follow(gateway: TestGateway) {
  const socket = await openSocket(gateway);
  await socket.call("rpc.subscribe", { gateway: null });
  return socket;
}

async function eventOf({ console }: TestGateway, eventId: unknown) {
  return (await console.call("events.get", { path: { event_id: String(eventId) } })).json;
}
async function metricOf({ url, rpcToken }: TestGateway, name: string, labels?: Record<string, string>) {
  const { text } = await createRest(url, rpcToken).call("ops.metrics");
  return readSeries(readExposition(text), name, labels);
}
function isOf(eventId: unknown) {
  return (push: { eventId: string }): boolean => push.eventId === eventId;
}
function agentsWith(every: string): SomeConfig {
  return { agents: { main: { backend: "echo", heartbeat: { every } } } };
}

describe("a wake", () => {
  it("is handled at the agent's next heartbeat, and each step can be read", async () => {
    await using gateway = await startGateway({ config: agentsWith("200ms") });
    using socket = await follow(gateway);
    const { json } = await gateway.hooks.wake({ text: "The build is green.", metadata: { source: "ci" } });
    const { eventId } = json;
    const { turnId } = await socket.pushed("event.handled", isOf(eventId));
    expect(await eventOf(gateway, eventId)).toMatchObject({ status: "handled", attempts: 0, turn_id: turnId });
    const turn = await gateway.rest.call("turns.get", { path: { turn_id: turnId } });
    expect(turn.json).toMatchObject({ status: "completed", session_id: "agent:main:main", agent: "main" });
    expect(turn.json.reply).toContain(`${eventId}`);
    expect(turn.json.reply).toContain('The build is green.\nmetadata: {"source":"ci"}');
    expect(await socket.pushed("heartbeat.ran")).toMatchObject({
      agentName: "main",
      events: 1,
      turnIds: [turnId],
    });
    expect(socket.order.filter((name) => /^(event|heartbeat)\./.test(name)).slice(0, 3)).toEqual([
      "event.queued",
      "event.handled",
      "heartbeat.ran",
    ]);
  });

  it("with mode: now is handled immediately", async () => {
    await using gateway = await startGateway({ config: agentsWith("30d") });
    using socket = await follow(gateway);
    const plain = await gateway.hooks.wake({ text: "can wait" });
    const { json } = await gateway.hooks.wake({ text: "cannot wait", mode: "now" });
    for (const { eventId } of [plain.json, json]) await socket.pushed("event.handled", isOf(eventId));
    expect(await metricOf(gateway, "gateway_beats_total", { agent: "main" })).toBe(1);
  });

  it("for an agent whose heartbeat is off is refused, except with mode: now", async () => {
    await using gateway = await startGateway({ config: agentsWith("off") });
    using socket = await follow(gateway);
    expect(await gateway.hooks.wake({ text: "plain" })).toMatchObject({ status: 409, error: "heartbeat-off" });
    const { json } = await gateway.hooks.wake({ text: "now", mode: "now" });
    await socket.pushed("event.handled", isOf(json.eventId));
  });

  it("above limits.events is refused with Retry-After, and counted in metrics and health", async () => {
    await using gateway = await startGateway({ config: { ...agentsWith("30m"), limits: { events: 2, share: 1 } } });
    for (const text of ["one", "two"]) expect(await gateway.hooks.wake({ text })).toMatchObject({ status: 200 });
    for (let n = 0; n < 3; n++) {
      const refused = await gateway.hooks.wake({ text: "too much" });
      expect(refused).toMatchObject({ status: 503, error: "gateway-busy" });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    }
    expect(await metricOf(gateway, "gateway_events_refused_total", { reason: "gateway-busy" })).toBe(3);
    expect(await metricOf(gateway, "gateway_events_queued")).toBe(2);
    const { result } = await createRpc(gateway.url).call("system.health");
    expect(result.status).toBe("degraded");
    expect(result.parts.find(({ name }) => name === "events")).toMatchObject({
      status: "degraded",
      detail: expect.stringMatching(/limits\.events.*\. 3 events were refused/),
    });
  });

  it("whose turns fail three times is dead, and is handled when it is replayed", async () => {
    let isBroken = true;
    await using gateway = await startGateway({
      config: agentsWith("20ms"),
      makeBackend: () => backendThat(() => isBroken),
    });
    using socket = await follow(gateway);
    const { eventId } = (await gateway.hooks.wake({ text: "poison" })).json;
    const dead = await socket.pushed("event.dead", isOf(eventId));
    expect(dead).toMatchObject({ attempts: 3, reason: "told to fail" });
    expect(await eventOf(gateway, eventId)).toMatchObject({ status: "dead", attempts: 3, reason: "told to fail" });
    expect(await metricOf(gateway, "gateway_events_dead")).toBe(1);
    isBroken = false;
    const path = { event_id: String(eventId) };
    expect((await gateway.console.call("events.replay", { path })).json).toMatchObject({
      status: "queued",
      attempts: 0,
    });
    await socket.pushed("event.handled", isOf(eventId));
    expect(await metricOf(gateway, "gateway_events_dead")).toBe(0);
  });

  it("for an agent that is removed from the configuration is dead, and one for an added agent is handled", async () => {
    const other = { backend: "echo", heartbeat: { every: "20ms" } } as const;
    await using gateway = await startGateway({ config: agentsWith("30m") });
    using socket = await follow(gateway);
    const gone = await gateway.hooks.wake({ text: "for main" });
    await gateway.reload({ agents: { other } });
    expect(await socket.pushed("event.dead", isOf(gone.json.eventId))).toMatchObject({ attempts: 0 });
    const { json } = await gateway.hooks.wake({ text: "for other" });
    expect(json.agent).toBe("other");
    await socket.pushed("event.handled", isOf(json.eventId));
  });
});

describe("a gateway that stops while a beat runs", () => {
  it("waits for the end of its turn, starts no other, and logs the events that it loses", async () => {
    const { backend, next } = createPuppet();
    const gateway = await startGateway({ config: agentsWith("30d"), makeBackend: () => backend });
    using socket = await follow(gateway);
    const first = await gateway.hooks.wake({ text: "event 1" });
    for (let n = 2; n <= 101; n++) await gateway.hooks.wake({ text: `event ${n}` });
    const last = await gateway.hooks.wake({ text: "the last", mode: "now" });
    const run = await next();
    const drained = gateway.gateway.drain("a test", 30_000);
    await gateway.logged("draining");
    run.end();
    await drained;
    await gateway[Symbol.asyncDispose]();
    expect(gateway.linesOf("events.given-up")).toMatchObject([{ agent: "main", count: 2 }]);
    expect(gateway.linesOf("drained")).toMatchObject([{ handedBack: 0 }]);
    await socket.pushed("event.handled", isOf(first.json.eventId));
    await socket.pushed("event.dead", isOf(last.json.eventId));
  });
});

/** Repeats its message, unless the message says to fail. */
function backendThat(fails: () => boolean, hear: (text: string) => void = () => {}): Backend {
  return {
    kind: "told",
    models: undefined,
    async *run({ message: { text } }) {
      await new Promise((resolve) => setTimeout(resolve, 3));
      if (fails()) throw new BackendError("told to fail");
      hear(text);
      yield { text };
    },
    summarise: async () => "a summary",
  };
}
