import { expect, it } from "vitest";
import { createEvents } from "#observe/events.ts";
import { createLogger, type Level } from "#observe/logger.ts";
import { createRegistry } from "#observe/metrics.ts";

function startEvents(level: Level = "info") {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const logger = createLogger({ level, write });
  const registry = createRegistry();
  const lines = async () => {
    await logger.flush();
    return text
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  return { events: createEvents({ logger, registry }), registry, lines };
}

it("writes one access line per request and counts it by the class of its status", async () => {
  const { events, registry, lines } = startEvents();
  const request = { surface: "rest", operation: "chat.send", ms: 12.34567 } as const;
  events.requestHandled({ ...request, status: 200, requestId: "req_1", traceId: "abc", caller: "ci" });
  events.requestHandled({ ...request, status: 404, requestId: "req_2", error: "skill-not-found" });
  const [good, bad] = await lines();
  expect(good).toMatchObject({
    event: "request",
    level: "info",
    status: 200,
    ms: 12.346,
    requestId: "req_1",
    caller: "ci",
  });
  expect(bad).toMatchObject({ event: "request", status: 404, error: "skill-not-found" });
  const text = registry.text();
  expect(text).toContain('gateway_requests_total{surface="rest",operation="chat.send",status="2xx"} 1\n');
  expect(text).toContain('gateway_requests_total{surface="rest",operation="chat.send",status="4xx"} 1\n');
  expect(text).toContain('gateway_errors_total{surface="rest",error="skill-not-found"} 1\n');
  expect(text).toContain(
    'gateway_request_duration_seconds_bucket{surface="rest",operation="chat.send",le="0.025"} 2\n',
  );
});

it("counts refused work by the limit that refused it", () => {
  const { events, registry } = startEvents();
  const request = { surface: "rest", operation: "chat.send", ms: 1 } as const;
  events.requestHandled({ ...request, status: 503, requestId: "req_1", error: "gateway-busy" });
  events.requestHandled({ ...request, status: 404, requestId: "req_2", error: "turn-not-found" });
  const outcome = { operation: "agent.sendMessage", error: "session-busy", turnId: undefined, changes: true };
  events.socketCallHandled({ outcome, requestId: "req_3", callerName: "ci" }, 1);
  expect(registry.text().match(/^gateway_work_refused_total.*$/gm)).toEqual([
    'gateway_work_refused_total{reason="gateway-busy"} 1',
    'gateway_work_refused_total{reason="session-busy"} 1',
  ]);
});

it("keeps ids out of the metrics", () => {
  const { events, registry } = startEvents();
  const turn = { agent: "main", turnId: "turn_1", sessionId: "chat:1", attempt: 1 };
  events.turnStarted({ ...turn, queuedMs: 5 });
  events.turnEnded({ ...turn, outcome: "failed", ms: 100 });
  events.turnRetried({ ...turn, delayMs: 100 });
  events.backendFailed({ ...turn, error: new Error("reset") });
  const text = registry.text();
  expect(text).not.toMatch(/turn_1|chat:1/);
  expect(text).toContain('gateway_turns_total{agent="main",status="failed"} 1\n');
  expect(text).toContain('gateway_turn_retries_total{agent="main"} 1\n');
  expect(text).toContain('gateway_turn_wait_seconds_count{agent="main"} 1\n');
});

it("counts every failed authentication and logs those that should be logged", async () => {
  const { events, registry, lines } = startEvents();
  events.authFailed({ surface: "rest", address: "127.0.0.1", logged: true });
  events.authFailed({ surface: "rest", address: "127.0.0.1", logged: false });
  expect(registry.text()).toContain('gateway_auth_failures_total{surface="rest"} 2\n');
  expect(await lines()).toEqual([
    expect.objectContaining({ event: "auth.failed", level: "warn", address: "127.0.0.1" }),
  ]);
});

it("logs an unexpected error completely, under its request", async () => {
  const { events, lines } = startEvents();
  events.unexpectedError({ requestId: "req_1", error: new TypeError("boom") });
  const [line] = await lines();
  expect(line).toMatchObject({ level: "error", event: "unexpected.error", requestId: "req_1" });
  expect(line?.error).toMatchObject({
    name: "TypeError",
    message: "boom",
    stack: expect.stringContaining("events.test.ts"),
  });
});

it("has a line for each event, and no event throws", async () => {
  const { events, lines } = startEvents("debug");
  const anything = {
    surface: "rest",
    agent: "main",
    outcome: "completed",
    logged: true,
    status: 200,
    ms: 1,
    queuedMs: 1,
    model: "fast",
    usage: { input: 1, output: 1, more: { cached: 1, reasoning: 1, cost: 1 } },
  };
  for (const event of Object.values(events)) (event as (fields: object) => void)({ ...anything });
  const names = (await lines()).map(({ event }) => event);
  expect(names).toHaveLength(Object.keys(events).length);
  // A call over a WebSocket is also a request.
  expect(new Set(names).size).toBe(names.length - 1);
});
