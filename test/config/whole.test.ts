import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { good, load } from "./configs.ts";

/** Every existing key, once. */
const everything = `{
  $schema: "./config.schema.json",
  gateway: {
    host: "127.0.0.1", port: 18789,
    listeners: [
      { host: "127.0.0.1", port: 8443, tls: { cert: "TLS/cert.pem", key: "TLS/key.pem", hsts: true }, surfaces: ["rest", "rpc", "webhooks"] },
      { port: 18789 },
    ],
    defaultAgent: "main",
    concurrency: 4096, connectionsPerAddress: 20000,
    trustedProxies: ["10.0.0.1"], clearTextFrom: ["172.17.0.0/16"], allowedOrigins: ["https://example.com"],
    announceTo: "ops",
    rest: {
      enabled: true,
      auth: { keys: [{ name: "ci", key: "\${REST_API_KEY}", scopes: ["chat", "admin"], expiresAt: "2035-01-31", budget: { per: "day", tokens: 9 } }] },
      rateLimit: { maxRequests: 10, windowMs: 1000 },
    },
    rpc: {
      enabled: true,
      auth: { type: "bearer", tokens: [
        { name: "ops", token: "\${RPC_TOKEN}", permissions: ["*"] },
        { name: "dashboard", token: "\${RPC_READ_TOKEN}", permissions: ["agent.list", "session.list", "system.health"] } ] },
      rateLimit: { maxRequests: 10, windowMs: 1000 }, socketsPerAddress: 20000,
    },
    mcp: { enabled: true, agents: ["main"], operator: "read", skills: false },
    console: { enabled: true, token: "\${CONSOLE_TOKEN}" },
    tracing: { endpoint: "https://collector.example.com/v1/traces", headers: { "x-api-key": "key" }, content: false },
  },
  webhooks: {
    enabled: true,
    token: ["\${WEBHOOK_TOKEN}", { name: "old", value: "\${OLD_WEBHOOK_TOKEN}", since: "2026-03-01" }],
    path: "/hooks",
    allowedIps: ["192.0.2.0/24"],
    rateLimit: { maxRequests: 100, windowMs: 60000 },
    mappings: {
      "github-push": {
        match: { "headers.x-github-event": "push", "body.ref": "refs/heads/main" },
        message: "{body.pusher.name} pushed {body.head_commit.message}",
        agent: "main", session: "webhook:github", model: "fast", channel: "bot", delivery: "announce",
        to: "C1", thread: "{body.ts}", coalesce: { key: "{body.ref}", window: "30s", maxWait: "5m", take: "last" },
        verify: { type: "github", secret: "\${GITHUB_SECRET}" },
      },
    },
  },
  agents: {
    main: {
      backend: "echo", description: "Says it again.", instructions: "Repeat.", model: "fast", models: ["slow"], skills: ["*"],
      heartbeat: { every: "30m" }, concurrency: 256, deadline: "10m",
      echo: { delayMs: 1, chunks: 2, failTimes: 1, fail: "on purpose" },
    },
    helper: {
      backend: "model", instructionsFile: "FILES/whole.test.ts", model: "fast", fallbacks: ["slow"], summaryModel: "slow",
      models: {
        fast: {
          provider: "openai", model: "gpt", contextTokens: 128000, maxOutputTokens: 4000, temperature: 0.5,
          options: { reasoningEffort: "low" }, price: { input: 1.25, cachedInput: 0.125, output: 10 },
        },
        slow: { provider: "local", model: "llama", price: { input: 0, output: 0 } },
      },
      tools: ["files/*", "web/search"], steps: 10, timeouts: { connect: "1s", firstByte: "10s", silence: "5s" },
    },
    remote: { backend: "http", http: { url: "https://example.com/turns", headers: { "x-a": "b" }, secret: "\${AGENT_SECRET}" } },
    other: { backend: "a2a", a2a: { url: "https://example.com", headers: {} } },
    program: { backend: "command", command: { run: ["cat"], cwd: ".", env: { A: "b" }, output: "text" } },
    coder: { backend: "acp", acp: { run: ["cat"], cwd: ".", env: {}, permissions: "allow", idle: "5m", processes: 4 } },
  },
  providers: {
    openai: { type: "openai", apiKey: "\${OPENAI_API_KEY}", baseUrl: "https://api.example.com/v1", headers: {} },
    local: { type: "openai-compatible", baseUrl: "http://127.0.0.1:11434/v1" },
  },
  tools: {
    files: { type: "stdio", run: ["cat"], cwd: ".", env: {}, callTimeout: "10s", maxOutput: "4KiB" },
    web: { type: "http", url: "https://example.com/mcp", headers: {} },
  },
  skills: { dirs: [{ path: "./skills", optional: true }, "FILES/"] },
  channels: {
    ops: { type: "webhook", url: "https://example.com/hook", secret: "\${OPS_SECRET}" },
    team: { type: "slack", url: "\${SLACK_URL}" },
    bot: { type: "slack", botToken: "\${SLACK_BOT_TOKEN}", to: "C0123456789" },
  },
  notify: {
    ops: {
      url: "https://example.com/events", secret: "\${NOTIFY_SECRET}", events: ["turn.failed", "alert.*"], agents: ["main"], content: "reply",
    },
  },
  store: { type: "memory" },
  sessions: { retention: "30d", webhookRetention: "7d", eventRetention: "7d", compactAt: 5000 },
  limits: {
    turnsPerSession: 100, turns: 10000, events: 100000, messagesPerSession: 10000,
    storeBytes: "1GiB", share: 0.25, notifications: 10000, usageModels: 100, webhookBody: "256KiB", restBody: "1MiB", rpcBody: 1048576, toolArguments: "1MiB", toolMessages: "8MiB",
  },
  budgets: {
    daily: {
      per: "day", timeZone: "Europe/Berlin", agents: ["helper"], keys: ["ci"], sources: ["rest"], tokens: 1000, cost: 25, warnAt: 0.5, then: "pause",
    },
  },
  schedules: {
    brief: {
      cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", agent: "main", message: "Write the daily brief.", session: "schedule:brief",
      channel: "ops", delivery: "announce", missed: "once", missedWithin: "2h", overlap: "queue",
    },
    poll: { every: "15m", skill: "tls", params: { channel: "news" } },
  },
  recorder: { entries: 10000, bytes: "64MiB", bodies: true, toolContent: true },
}`
  .replaceAll("TLS/", `${process.cwd()}/test/config/tls/`)
  .replaceAll("FILES/", `${process.cwd()}/test/config/`);

const variables = [...everything.matchAll(/\$\{(\w+)\}/g)].map(([, name = ""], n) => [name, good(n)] as const);
const env = { ...Object.fromEntries(variables), SLACK_URL: "https://hooks.slack.com/services/T0/B0/x" };

const built = { stores: ["memory"], backends: ["echo", "model", "http", "a2a", "command", "acp"] };

test("a configuration with every key is accepted for production, except for the address that it repeats", async () => {
  const { config, warnings } = await load(everything, { built, env: { ...env, NODE_ENV: "production" } });
  expect(warnings.map((line) => line.replace(/^\S+ /, ""))).toEqual([
    "gateway.host is not read, because gateway.listeners says where to listen: remove one of them.",
    "gateway.port is not read, because gateway.listeners says where to listen: remove one of them.",
  ]);
  expect(config.webhooks.mappings["github-push"]).toMatchObject({
    agent: "main",
    delivery: "announce",
    channel: "bot",
  });
  expect(config.channels.team).toEqual({ type: "slack", url: env.SLACK_URL });
  expect(config.webhooks.token.map(({ name }) => name)).toEqual(["shared", "old"]);
  expect(config.agents.main?.echo).toEqual({ delayMs: 1, chunks: 2, failTimes: 1, fail: "on purpose" });
});

test("the schema has no further keys except those of other stores", () => {
  const schema = parse(readFileSync("specs/config.schema.yaml", "utf8")) as object;
  const keys = new Set<string>();
  const visit = (node: unknown) => {
    if (typeof node !== "object" || node === null) return;
    const { properties } = node as { properties?: object };
    for (const key of Object.keys(properties ?? {})) keys.add(key);
    for (const inner of Object.values(node)) visit(inner);
  };
  visit(schema);
  const missing = [...keys].filter((key) => !new RegExp(`["\\s{]${key.replace("$", "\\$")}"?:`).test(everything));
  expect(missing).toEqual(["path", "url"].filter((key) => missing.includes(key)));
});
