import { expect, test } from "vitest";
import { applyReload, diffConfig } from "#config/diff.ts";
import { good, load, withSections } from "./configs.ts";

async function config(sections: object) {
  return (
    await load(withSections({ skills: { dirs: ["/"] }, ...sections }), {
      built: { stores: ["memory", "sqlite"], backends: ["echo"] },
    })
  ).config;
}
async function diff(a: object, b: object) {
  return diffConfig(await config(a), await config(b));
}

test("a change is named by its innermost key, and a list is one value", async () => {
  const token = (n: number) => ({ name: "a", token: good(n), permissions: "*" });
  const before = { gateway: { rpc: { auth: { tokens: [token(1)] } } }, limits: { turns: 1 } };
  const after = {
    gateway: { rpc: { auth: { tokens: [token(2)] } }, concurrency: 5 },
    limits: { turns: 2 },
    agents: { main: { backend: "echo", heartbeat: { every: "1m" } } },
  };
  expect(await diff(before, after)).toEqual({
    changed: ["gateway.concurrency", "gateway.rpc.auth.tokens", "agents.main.heartbeat.every", "limits.turns"],
    needsRestart: [],
  });
});

test("an added or removed agent is named", async () => {
  const agents = { main: { backend: "echo" }, helper: { backend: "echo" } };
  const both = { agents, gateway: { defaultAgent: "main" } };
  expect((await diff({}, both)).changed).toEqual(["agents.helper"]);
  expect((await diff(both, {})).changed).toEqual(["agents.helper"]);
});

test("another order is a change: lists show it, and mappings are tried in it", async () => {
  const mapping = { match: {}, message: "x" };
  const before = { webhooks: { mappings: { a: mapping, b: mapping } } };
  const after = { webhooks: { mappings: { b: mapping, a: mapping } } };
  expect((await diff(before, after)).changed).toEqual(["webhooks.mappings"]);
});

test("settings of webhooks and announcements take effect at a reload, and are named by the keys of the file", async () => {
  const verified = (...secret: string[]) => ({ match: {}, message: "x", verify: { type: "github", secret } });
  const hook = (secret: string) => ({ type: "webhook", url: "https://example.com", secret });
  const before = {
    webhooks: { token: good(1), mappings: { push: verified(good(2)) } },
    channels: { ops: hook(good(3)) },
  };
  const after = {
    webhooks: {
      token: [good(1), { value: good(4), since: "2026-03-01" }],
      allowedIps: ["192.0.2.0/24"],
      rateLimit: { maxRequests: 0 },
      mappings: { push: verified(good(2), good(5)) },
    },
    channels: { ops: hook(good(6)), team: { type: "slack", url: "https://example.com/x" } },
    gateway: { announceTo: "team" },
    agents: { main: { backend: "echo", heartbeat: { every: "off" } } },
    sessions: { eventRetention: "1h" },
    recorder: { entries: 7, bodies: false },
  };
  const { changed, needsRestart } = await diff(before, after);
  expect(changed.toSorted()).toEqual([
    "agents.main.heartbeat.every",
    "channels.ops.secret",
    "channels.team",
    "gateway.announceTo",
    "recorder.bodies",
    "recorder.entries",
    "sessions.eventRetention",
    "webhooks.allowedIps",
    "webhooks.mappings.push.verify.secret",
    "webhooks.rateLimit",
    "webhooks.token",
  ]);
  expect(needsRestart).toEqual([]);
});

test.each([
  [{ gateway: { host: "127.0.0.2" } }, "gateway.host"],
  [{ gateway: { port: 1 } }, "gateway.port"],
  [{ gateway: { listeners: [{ port: 1 }, { port: 2 }] } }, "gateway.listeners"],
  [{ gateway: { listeners: [{ port: 18789, surfaces: ["rpc"] }] } }, "gateway.listeners"],
  [{ gateway: { tracing: { endpoint: "http://127.0.0.1:4318/v1/traces" } } }, "gateway.tracing"],
  [{ store: { type: "sqlite", path: "/x.db" } }, "store"],
  [{ webhooks: { path: "/in" } }, "webhooks.path"],
])("%j needs a restart", async (sections, key) => {
  expect(await diff({}, sections)).toEqual({ changed: [], needsRestart: [key] });
});

test("a reload changes everything except the settings that need a restart", async () => {
  const running = await config({});
  const next = await config({
    gateway: { port: 1, concurrency: 5 },
    webhooks: { path: "/in", rateLimit: { maxRequests: 7 } },
    store: { type: "sqlite", path: "/x.db" },
  });
  const applied = applyReload(running, next);
  expect(applied.gateway).toMatchObject({ concurrency: 5, listeners: [{ port: 18789 }] });
  expect(applied.webhooks).toMatchObject({ path: "/hooks", rateLimit: { maxRequests: 7 } });
  expect(applied.store).toEqual({ type: "memory" });
  // It is reported each time, until the gateway is restarted.
  expect(diffConfig(applied, next)).toEqual({ changed: [], needsRestart: ["gateway.port", "webhooks.path", "store"] });
});

test("another certificate takes effect without a restart", async () => {
  const listening = (more: object) => ({ gateway: { listeners: [{ port: 1, ...more }] } });
  const at = (file: string) => `${process.cwd()}/test/config/tls/${file}`;
  const running = await config(listening({ tls: { cert: at("cert.pem"), key: at("key.pem") } }));
  const [listener] = running.gateway.listeners;
  const renewed = {
    ...running,
    gateway: { ...running.gateway, listeners: [{ ...listener, tls: { cert: "new", key: "new", hsts: true } }] },
  };
  const next = renewed as typeof running;
  expect(diffConfig(running, next)).toEqual({ changed: ["gateway.listeners[0].tls"], needsRestart: [] });
  expect(applyReload(running, next).gateway.listeners[0]?.tls?.cert).toBe("new");
  expect(diffConfig(running, await config(listening({})))).toEqual({
    changed: [],
    needsRestart: ["gateway.listeners"],
  });
});
