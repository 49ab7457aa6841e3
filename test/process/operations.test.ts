import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key, opsToken } from "./configs.ts";
import { readExposition, readSeries } from "./exposition.ts";

const reader = "rpc-token-that-may-not-see-health";
const watcher = "rpc-token-that-sees-health-alone";
const consoleToken = "console-token-of-the-process-tests";
const base = agentWith({});
const config = {
  ...base,
  gateway: {
    ...base.gateway,
    rpc: {
      auth: {
        tokens: [
          { name: "ops", token: opsToken, permissions: "*" },
          { name: "reader", token: reader, permissions: ["agent.list"] },
          { name: "watcher", token: watcher, permissions: ["system.health"] },
        ],
      },
    },
    console: { token: consoleToken },
  },
  webhooks: { path: "/in/here" },
};

test("/metrics is for RPC tokens with system.health, and reports events in Prometheus's format", async () => {
  await using gateway = await startProcess({ config });
  const rest = createRest(gateway.url, key);
  await rest.call("chat.send", { body: { message: "Hi" } });
  const metrics = (withKey: string | null) => rest.call("ops.metrics", { key: withKey });

  const none = await metrics(null);
  expect(none).toMatchObject({ status: 401, error: "unauthenticated" });
  expect(none.headers.get("www-authenticate")).toMatch(/^Bearer/);
  expect(await metrics(key)).toMatchObject({ status: 401 });
  expect(await metrics(reader)).toMatchObject({ status: 403, error: "forbidden" });
  expect(await metrics(consoleToken)).toMatchObject({ status: 200 });
  expect(await metrics(opsToken)).toMatchObject({ status: 200 });
  const seen = await metrics(watcher);
  expect(seen.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");

  const samples = readExposition(seen.text);
  const requests = { surface: "rest", operation: "chat.send" };
  expect(readSeries(samples, "gateway_requests_total", { ...requests, status: "2xx" })).toBe(1);
  expect(readSeries(samples, "gateway_request_duration_seconds_count", requests)).toBe(1);
  expect(readSeries(samples, "gateway_request_duration_seconds_bucket", { ...requests, le: "+Inf" })).toBe(1);
  expect(readSeries(samples, "gateway_turns_total", { agent: "main", status: "completed" })).toBe(1);
  expect(readSeries(samples, "gateway_auth_failures_total", { surface: "public" })).toBe(2);
  expect(readSeries(samples, "gateway_sessions")).toBe(1);
  expect(readSeries(samples, "gateway_log_lines_dropped_total")).toBe(0);
  expect(readSeries(samples, "process_resident_memory_bytes")).toBeGreaterThan(2 ** 20);
});

test("/metrics does not exist without an RPC token", async () => {
  const { gateway: doors, agents } = base;
  await using gateway = await startProcess({ config: { gateway: { rest: doors?.rest }, agents } });
  expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404);
});

test("both specs are public, with the address and the webhook path", async () => {
  await using gateway = await startProcess({ config });
  const rest = createRest(gateway.url, key);
  const { json: openapi } = await rest.call("ops.openapi", { key: null });
  expect(openapi.servers).toMatchObject([{ url: gateway.url }]);
  const paths = Object.keys(openapi.paths as object);
  expect(paths).toEqual(expect.arrayContaining(["/api/v1/chat/send", "/in/here/wake", "/in/here/agent", "/in/here"]));
  expect(paths.filter((path) => path.startsWith("/hooks"))).toEqual([]);
  const { json: openrpc } = await rest.call("ops.openrpc", { key: null });
  expect(openrpc.servers).toMatchObject([{ url: `${gateway.url}/rpc` }]);
  expect(openrpc.methods).toHaveLength(17);
});

test("/healthz answers at once and /readyz once the contract is compiled, with the name of each part", async () => {
  await using gateway = await startProcess({ config });
  const rest = createRest(gateway.url, key);
  expect(await rest.call("ops.healthz", { key: null })).toMatchObject({ status: 200, json: { status: "ok" } });
  await expect.poll(async () => (await rest.call("ops.readyz", { key: null })).status).toBe(200);
  const { json } = await rest.call("ops.readyz", { key: null });
  expect(json).toMatchObject({ ready: true, parts: { store: { ok: true }, rest: { ok: true }, intake: { ok: true } } });
});
