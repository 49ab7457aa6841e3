import { expect, test } from "vitest";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { exchange } from "#test/harness/raw.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { senders } from "#test/harness/senders.ts";
import { upgrade } from "#test/wire/ws/raw-socket.ts";
import { openSocket } from "#test/wire/ws/socket.ts";
import { recorderOf } from "./recorder.ts";

/** Secret texts, each named for the place where it was sent. */
function hidden(place: string): string {
  return `hide-me-${place}-4f1c9a`;
}

const HEADERS: Record<string, string> = {
  cookie: `session=${hidden("cookie")}`,
  "proxy-authorization": `Basic ${hidden("proxy")}`,
  "x-api-key": hidden("api-key"),
  "x-gitlab-token": hidden("gitlab"),
  "x-hub-signature": hidden("hub"),
  "x-shopify-hmac-sha256": hidden("hmac"),
  "x-amz-security-token": hidden("amazon"),
  "cf-access-jwt-assertion": hidden("jwt"),
  "X-Forwarded-Authorization": hidden("forwarded"),
  referer: `https://${hidden("user")}:${hidden("password")}@pages.example/a?token=${hidden("referer")}`,
  "x-original-url": `/hooks/wake?token=${hidden("original")}`,
};
const JSON_TYPE = { "content-type": "application/json" };
const BODY_SECRETS = {
  token: hidden("body-token"),
  nested: [{ client_secret: hidden("body-secret"), Password: `${hidden("body")} \\" ${hidden("quoted")}` }],
  "api-key": hidden("body-key"),
};

/** Everything that the recorder shows, and everything that it stores except bodies, which a replay must send unchanged. */
async function allOf(gateway: TestGateway): Promise<string> {
  const recorder = recorderOf(gateway);
  const listed = await recorder.list({ limit: "500" });
  const shown = await Promise.all(listed.map(({ delivery_id }) => recorder.get(delivery_id)));
  const kept = await Promise.all(listed.map(({ delivery_id }) => gateway.gateway.store.getDelivery(delivery_id)));
  return JSON.stringify([listed, shown, kept.map((delivery) => ({ ...delivery, body: undefined }))]);
}

const SECRET = senders.github.makeSecret(hidden("github"));
const config = {
  webhooks: {
    mappings: {
      signed: { match: { "body.ref": "main" }, message: "x", verify: { type: "github" as const, secret: SECRET } },
      curious: { match: { "headers.x-trace": "another", "body.n": "2" }, message: "x" },
      picky: { match: { "body.token": "another", "body.n": "1" }, message: "x" },
    },
  },
};

test("no secret in any part of a request to any surface, accepted or refused, is in the recorder", async () => {
  await using gateway = await startGateway({ config });
  const { url, hooks } = gateway;
  const wrong = { authorization: `Bearer ${hidden("bearer")}` };
  const good = { authorization: `Bearer ${gateway.key}` };
  const requests: string[] = [];
  const send = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const reply = await exchange(
      url,
      { method, path },
      { ...HEADERS, ...(text !== undefined && JSON_TYPE), ...headers },
      text,
    );
    requests.push(reply.requestId);
    return reply;
  };

  const message = { message: "hi" };
  expect((await send("POST", `/api/v1/chat/send`, good, message)).status).toBe(200);
  expect((await send("POST", `/api/v1/chat/send`, wrong, message)).status).toBe(401);
  expect((await send("POST", `/api/v1/chat/send?key=${hidden("query")}`, {}, message)).status).toBe(401);
  expect((await send("GET", `/api/v1/${hidden("path")}`, {})).status).toBe(401);
  expect((await send("GET", `/api/v1/turns/${hidden("param")}`, wrong)).status).toBe(401);
  expect((await send("GET", `/api/v1/deliveries?token=${hidden("admin")}`, good)).status).toBe(403);
  const call = { jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: { agentName: "main", message: "hi" } };
  const rpc = createRpc(url);
  for (const token of [gateway.rpcToken, hidden("rpc")])
    requests.push((await rpc.send(call, { token, headers: HEADERS })).requestId);
  const offered = `bearer.${Buffer.from(hidden("offered")).toString("base64url")}`;
  const answer = await upgrade(url, {
    path: `/rpc/ws?token=${hidden("socket-query")}`,
    headers: { ...HEADERS, "sec-websocket-protocol": `agent-gateway.v1, ${offered}` },
  });
  answer.socket.destroy();
  requests.push(answer.headers["x-request-id"] ?? "");
  noteChecked(requests.at(-1) as string);
  using socket = await openSocket(gateway, { headers: HEADERS });
  await socket.call("agent.sendMessage", { agentName: "main", message: "hi" });

  const hook = { headers: HEADERS };
  await hooks.wake({ text: "hi", metadata: BODY_SECRETS }, hook);
  await hooks.wake(
    { text: "hi" },
    { headers: { ...HEADERS, "x-gateway-token": hidden("gateway-token") }, token: null },
  );
  await hooks.agent({ message: "hi", context: BODY_SECRETS }, hook);
  await hooks.mapped(BODY_SECRETS, hook);
  await hooks.named(hidden("name"), {}, { ...hook, token: null });
  await hooks.named("picky", BODY_SECRETS, hook);
  const body = JSON.stringify({ ref: "main", ...BODY_SECRETS });
  const signature = await senders.github.sign(SECRET, body);
  expect((await hooks.named("signed", body, { headers: { ...HEADERS, ...signature }, token: null })).status).toBe(200);
  const forged = { "x-hub-signature-256": `sha256=${hidden("forged")}` };
  expect((await hooks.named("signed", body, { headers: { ...HEADERS, ...forged }, token: null })).status).toBe(401);
  expect((await send("POST", `/hooks/wake?token=${hidden("hook-query")}`, {}, { text: "hi" })).status).toBe(401);

  for (const requestId of requests) await gateway.logged("request", { requestId });
  const all = await allOf(gateway);
  expect(all).toContain("[hidden]");
  expect(all).toContain("https://pages.example/a");
  expect(all.match(/"outcome":"refused"/g)?.length).toBeGreaterThanOrEqual(8);
  const secrets = [gateway.key, gateway.rpcToken, gateway.webhookToken, gateway.consoleToken, SECRET, offered];
  for (const secret of secrets) expect(all).not.toContain(secret);
  for (const signed of Object.values(signature).filter((value) => value.startsWith("sha256=")))
    expect(all).not.toContain(signed);
  expect([...new Set(all.match(/hide-me-[a-z-]+/g))]).toEqual([]);
});

test("credentials and secrets of the configuration are hidden in any header on any surface", async () => {
  await using gateway = await startGateway({ config, hidden: [SECRET] });
  const { url, hooks } = gateway;
  const { json } = await gateway.console.call("keys.create", { body: { name: "ci" } });
  const minted = String(json.key);
  const headers = {
    "x-debug": `Bearer ${hidden("debug")}`,
    "x-trace": `user=ada, auth=bearer ${hidden("trace")}; next`,
    "x-note": `basic:${hidden("note")} and bearer%20${hidden("escaped")}`,
    "user-agent": `curl/8 (BASIC  ${hidden("agent")})`,
    "x-see": `see ${SECRET}.`,
    "x-config": encodeURIComponent(SECRET),
    "x-made": `it is ${minted}`,
    "x-rest": gateway.key,
    "x-rpc": `token=${gateway.rpcToken}, next`,
    "x-hook": `They sent ${gateway.webhookToken}.`,
    "x-page": `(${gateway.consoleToken})`,
    "x-kept": "basically bearers",
  };
  const message = { message: "hi" };
  const withKey = (key: string) => ({ ...headers, ...JSON_TYPE, authorization: `Bearer ${key}` });
  const chat = { method: "POST", path: "/api/v1/chat/send" };
  expect((await exchange(url, chat, withKey(gateway.key), JSON.stringify(message))).status).toBe(200);
  expect((await exchange(url, chat, withKey("wrong"), JSON.stringify(message))).status).toBe(401);
  const call = { jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params: { agentName: "main", ...message } };
  const rpc = createRpc(url);
  for (const token of [gateway.rpcToken, "wrong"]) await rpc.send(call, { token, headers });
  using socket = await openSocket(gateway, { headers });
  await socket.call("agent.sendMessage", { agentName: "main", message: "hi" });
  await hooks.wake({ text: "hi" }, { headers });
  await hooks.wake({ text: "hi" }, { headers, token: "wrong" });
  await hooks.mapped({ n: 2 }, { headers });

  await gateway.logged("request", { operation: "hooks.mapped" });
  const all = await allOf(gateway);
  expect(all).toContain("Bearer [hidden]");
  expect(all).toContain("basically bearers");
  expect([...new Set(all.match(/hide-me-[a-z-]+/g))]).toEqual([]);
  const tokens = [gateway.key, gateway.rpcToken, gateway.webhookToken, gateway.consoleToken];
  for (const secret of [SECRET, minted, ...tokens]) expect(all).not.toContain(secret);
});

test("a body is sent again unchanged, with the parts that are hidden in the recorder", async () => {
  await using gateway = await startGateway();
  const recorder = recorderOf(gateway);
  const { json } = await gateway.hooks.wake({ text: "hi", metadata: BODY_SECRETS });
  const shown = await recorder.get(String(json.deliveryId));
  expect(JSON.parse(String(shown.body))).toEqual({
    text: "hi",
    metadata: {
      token: "[hidden]",
      nested: [{ client_secret: "[hidden]", Password: "[hidden]" }],
      "api-key": "[hidden]",
    },
  });
  const { json: replayed } = await recorder.replay(String(json.deliveryId));
  const event = await gateway.console.call("events.get", { path: { event_id: String(replayed.event_id) } });
  expect(event.json.metadata).toEqual(BODY_SECRETS);
});

test("hiding secrets in a hostile body blocks no other request", async () => {
  await using gateway = await startGateway();
  const recorder = recorderOf(gateway);
  const texts = [
    '"token'.repeat(14_000),
    `"${"token".repeat(20_000)}`,
    `{"a${" ".repeat(100_000)}token`,
    '\\"'.repeat(28_000),
    `"token${" ".repeat(100_000)}`,
    `"token":"${"\\\\".repeat(28_000)}`,
  ];
  for (const text of texts) {
    const { json, status } = await gateway.hooks.wake({ text, metadata: { text } });
    expect(status).toBe(200);
    expect((await recorder.get(String(json.deliveryId))).delivery_id).toBe(json.deliveryId);
  }
});
