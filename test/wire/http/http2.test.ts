import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { describe, expect, test } from "vitest";
import { SECRETS, type Start, shareGateway } from "#test/harness/gateway.ts";
import { CERTIFICATE, type Http2Client, OVER_TLS, openHttp2, readReply } from "#test/harness/http2.ts";
import { exchange } from "#test/harness/raw.ts";
import { checkReply } from "#test/harness/rest.ts";

const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const HEALTH = { method: "GET", path: "/healthz" };
const authorization = `Bearer ${SECRETS.key}`;
const json = { authorization, "content-type": "application/json" };
const MIB = 1024 * 1024;
function say(message: string, fields: object = {}) {
  return JSON.stringify({ message, ...fields });
}

const TRANSPORTS: [string, Start][] = [
  ["in clear text by prior knowledge", {}],
  ["over TLS by ALPN", { config: OVER_TLS }],
];

describe.each(TRANSPORTS)("HTTP/2 %s", async (_, start) => {
  const gateway = await shareGateway({
    ...start,
    config: { ...start.config, agents: { main: { backend: "echo", echo: { chunks: 3, delayMs: 1 } } } },
  });
  const client: Http2Client = await openHttp2(gateway.url);

  test("answers a message completely", async () => {
    const { status, json: reply, headers } = await client.send(CHAT, json, say("hi"));
    expect([status, reply.reply]).toEqual([200, "hi"]);
    expect(headers.get("connection")).toBeNull();
  });

  test("streams a reply event by event", async () => {
    const { all } = await client.stream(CHAT, json, say("one two three", { stream: true }));
    const events = await all();
    expect(events[0]?.event).toBe("turn.started");
    expect(events.filter(({ event }) => event === "message.delta").length).toBeGreaterThan(1);
    expect(events.at(-1)).toMatchObject({ event: "turn.completed", data: { reply: "one two three" } });
  });

  test.each([
    ["life", HEALTH, {}, 200],
    ["the REST contract", { method: "GET", path: "/openapi.json" }, {}, 200],
    ["the RPC contract", { method: "GET", path: "/openrpc.json" }, {}, 200],
    ["figures", { method: "GET", path: "/metrics" }, { authorization: `Bearer ${SECRETS.rpcToken}` }, 200],
    ["skills", { method: "GET", path: "/api/v1/skills/list" }, { authorization }, 200],
    ["a head alone", { method: "HEAD", path: "/healthz" }, {}, 200],
    ["nothing here", { method: "GET", path: "/nowhere" }, {}, 404],
    ["an unknown token", CHAT, { authorization: "Bearer nobody" }, 401],
    ["a token that is missing", CHAT, {}, 401],
    ["another method", { method: "PATCH", path: CHAT.path }, { authorization }, 405],
    ["a method that does not exist", { method: "`touch$IFS%pwned`", path: CHAT.path }, { authorization }, 400],
    ["an unknown field of a query", { method: "GET", path: "/api/v1/skills/list?surprise=1" }, { authorization }, 400],
    [
      "another site's page",
      { method: "GET", path: "/api/v1/skills/list" },
      { authorization, origin: "https://x.example" },
      403,
    ],
    [
      "another machine's name",
      { method: "GET", path: "/api/v1/skills/list" },
      { authorization, ":authority": "x.example" },
      403,
    ],
  ] as const)("gives the same answers for %s as HTTP/1.1", async (_, place, headers, status) => {
    expect((await client.send(place, headers)).status).toBe(status);
  });

  test("reports readiness like HTTP/1.1, once it is ready: a gateway on a busy machine may not be ready yet", async () => {
    const ask = async () => (await client.send({ method: "GET", path: "/readyz" }, {})).status;
    await expect.poll(ask).toBe(200);
  });

  test("asks for a body if its sender waits for that", async () => {
    const stream = client.open(CHAT, { ...json, expect: "100-continue" });
    await once(stream, "continue");
    stream.end(say("hi"));
    const { status, headers, text } = await readReply(stream);
    expect(checkReply(CHAT, status, headers, text).json.reply).toBe("hi");
  });

  test("records a request like one of HTTP/1.1", async () => {
    const { json: reply } = await client.send(CHAT, { ...json, "x-trail": "crumbs" }, say("kept"));
    const turn = await client.send({ method: "GET", path: `/api/v1/turns/${reply.turn_id}` }, { authorization });
    const kept = await gateway.gateway.store.getDelivery(String(turn.json.delivery_id));
    expect(kept?.headers.split("\n").sort()).toEqual([
      "content-type: application/json",
      `host: ${new URL(gateway.url).host.replace("127.0.0.1", "localhost")}`,
      "x-trail: crumbs",
    ]);
    expect(kept).toMatchObject({ method: "POST", path: CHAT.path, address: expect.stringMatching(/127\.0\.0\.1|::1/) });
  });

  test("serves HTTP/1.1 on the same port", async () => {
    const reply = await overHttp1(gateway.url);
    expect(reply).toContain('"status":"ok"');
  });

  test("answers a thousand requests at once", async () => {
    const all = Array.from({ length: 1_000 }, (_, n) => client.send(CHAT, json, say(String(n))));
    const replies = await Promise.all(all);
    expect(replies.map(({ json: { reply } }) => reply)).toEqual(replies.map((_, n) => String(n)));
    expect(client.session.remoteSettings.maxConcurrentStreams).toBe(256);
  });

  test("continues after a body that is too large, on the same connection", async () => {
    const slow = client.open(CHAT, { ...json, "content-length": 10 * MIB });
    slow.write("{");
    const { status, headers, text } = await readReply(slow);
    expect(checkReply(CHAT, status, headers, text).error).toBe("too-large");
    const endless = client.open(CHAT, json);
    const reply = readReply(endless);
    for (let sent = 0; sent < 50 * MIB && !endless.closed; sent += MIB) {
      await Promise.race([
        new Promise((resolve) => endless.write(Buffer.alloc(MIB, " "), resolve)),
        once(endless, "close"),
      ]);
    }
    const refused = await reply;
    expect(checkReply(CHAT, refused.status, refused.headers, refused.text).error).toBe("too-large");
    expect((await client.send(HEALTH)).status).toBe(200);
    expect(client.session.destroyed).toBe(false);
  });
});

async function overHttp1(url: string): Promise<string> {
  if (url.startsWith("http:")) return (await exchange(url, HEALTH)).text;
  const [response] = (await once(request(`${url}/healthz`, { ca: CERTIFICATE }).end(), "response")) as [
    IncomingMessage,
  ];
  expect(response.httpVersion).toBe("1.1");
  const headers = new Headers(response.headers as Record<string, string>);
  const text = Buffer.concat(await response.toArray()).toString();
  return checkReply(HEALTH, response.statusCode ?? 0, headers, text).text;
}
