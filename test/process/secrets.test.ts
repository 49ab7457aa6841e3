import { expect, test } from "vitest";
import { type GatewayProcess, startProcess } from "#test/harness/process.ts";
import { exchange, openConnection } from "#test/harness/raw.ts";
import { createRest } from "#test/harness/rest.ts";

const secrets = {
  key: "secret-rest-key-0123456789",
  admin: "secret-admin-key-0123456789",
  rpc: "secret-rpc-token-0123456789",
  console: "secret-console-token-0123456789",
  webhook: "secret-webhook-token-0123456789",
  older: "secret-older-token-0123456789",
  verify: "secret-to-verify-0123456789",
  replaced: "secret-that-was-replaced-0123456789",
  channel: "secret-of-a-channel-0123456789",
  slack: "https://hooks.slack.example/services/T0/B0/secret-0123456789",
  strange: "secret-of-nobody-0123456789",
};

const VERIFY = { type: "github", secret: [secrets.verify, secrets.replaced] };
function config(keyed = secrets.key) {
  return {
    gateway: {
      rest: {
        auth: {
          keys: [
            { name: "ci", key: keyed },
            { name: "admin", key: secrets.admin, scopes: ["admin"] },
          ],
        },
      },
      rpc: { auth: { tokens: [{ name: "ops", token: secrets.rpc, permissions: "*" }] } },
      console: { token: secrets.console },
      announceTo: "ops",
    },
    webhooks: {
      token: [secrets.webhook, { value: secrets.older, since: "2026-03-01" }],
      mappings: { push: { match: {}, message: "{body.x}", verify: VERIFY } },
    },
    channels: {
      ops: { type: "webhook", url: "https://example.com", secret: secrets.channel },
      team: { type: "slack", url: secrets.slack },
    },
    agents: { main: { backend: "echo" } },
  };
}

/** Sends a secret in every possible place of a request. */
async function spread({ url }: GatewayProcess, secret: string): Promise<void> {
  const rest = createRest(url, secrets.key);
  const chat = { method: "POST", path: "/api/v1/chat/send" };
  const good = { authorization: `Bearer ${secrets.key}`, "content-type": "application/json" };
  const hidden = encodeURIComponent(secret);
  await Promise.all([
    rest.call("chat.send", { key: secret, body: { message: "Hi" } }),
    rest.call("chat.send", { body: { message: secret, session_id: `s ${secret}`, user_id: secret, model: secret } }),
    rest.call("chat.send", { body: { message: "Hi" }, headers: { "idempotency-key": secret, traceparent: secret } }),
    rest.call("chat.send", { body: { message: "Hi", agent: secret } }),
    rest.call("chat.send", { body: { message: "Hi", skill_ids: [secret] } }),
    rest.call("chat.send", { body: { message: "Hi", [secret]: secret } }),
    rest.call("chat.send", { body: { message: 1, session_id: [secret] } }),
    rest.call("chat.send", { body: `{"message": ${secret}` }),
    rest.call("keys.revoke", { key: secrets.console, path: { key_id: secret } }),
    rest.call("turns.get", { path: { turn_id: secret } }),
    rest.send("GET", `/api/v1/${hidden}?token=${hidden}`),
    rest.send("GET", `/${hidden}?access_token=${hidden}`, { key: secret }),
    post(`${url}/hooks/wake`, { "x-gateway-token": secret }, { text: secret }),
    post(`${url}/rpc`, { authorization: `Bearer ${secret}` }, { jsonrpc: "2.0", id: secret, method: secret }),
    rest.send("GET", `/metrics?token=${hidden}`, { key: secret }),
    exchange(url, { method: "GET", path: "/openapi.json" }, { cookie: `session=${secret}`, "user-agent": secret }),
    exchange(url, { method: "GET", path: "/api/v1/skills/list" }, { ...good, origin: `https://${secret}.example` }),
    exchange(url, { method: "GET", path: "/api/v1/skills/list" }, { ...good, host: `${secret}.example` }),
    exchange(url, chat, { ...good, "content-type": `text/plain; secret=${secret}` }, secret),
    exchange(url, chat, { ...good, "content-encoding": secret }, secret),
    garbage(url, `${secret} / HTTP/1.1\r\nauthorization ${secret}\r\n\r\n`),
    garbage(url, `GET / HTTP/1.1\r\nhost: x\r\n${secret}\u0000: ${secret}\r\n\r\n`),
  ]);
}

/** To a surface that this version may not serve, with any answer. */
async function post(url: string, headers: Record<string, string>, body: object): Promise<void> {
  await (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).text();
}

/** Bytes that are not a request. */
async function garbage(url: string, bytes: string): Promise<void> {
  await using connection = await openConnection(url);
  connection.write(bytes);
  await connection.closed;
}

test.each(["json", "pretty"])(
  "no secret is in the log, wherever it was sent or configured (%s)",
  async (LOG_FORMAT) => {
    await using gateway = await startProcess({ config: config(), env: { LOG_LEVEL: "debug", LOG_FORMAT } });
    const minted = await createRest(gateway.url, secrets.console).call("keys.create", { body: { name: "made" } });
    const all = [...Object.values(secrets), String(minted.json.key)];
    for (const secret of all) await spread(gateway, secret);

    gateway.configure(config("short-secret"));
    await gateway.until(() => gateway.output.includes("config.reloaded"));
    gateway.configure(JSON.stringify(config()).replace(`"${secrets.rpc}"`, secrets.rpc));
    await gateway.until(() => gateway.output.includes("config.refused"));
    gateway.kill("SIGTERM");
    await gateway.exited;

    const lines = gateway.output.split("\n");
    expect(lines.length).toBeGreaterThan(all.length * 20);
    for (const secret of [...all, "short-secret"]) expect(lines.filter((line) => line.includes(secret))).toEqual([]);
  },
);
