import { describe, expect, test } from "vitest";
import { agreed, block, FLAG, frame, openFrames, PREFACE, requestBlock, settings, TYPE } from "#test/harness/frames.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { openHttp2 } from "#test/harness/http2.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { exchange, openConnection, requestText } from "#test/harness/raw.ts";
import { upgrade } from "#test/wire/ws/raw-socket.ts";

const gateway = await shareGateway({ config: { gateway: { openai: { enabled: true } } } });
const { host } = new URL(gateway.url);
const PROTOCOL_ERROR = 1;
const TWO_TOKENS = "The request has two Authorization headers. Send one.";
const TWO_HOSTS = "The request has two hosts. Send one Host.";

type Door = [method: string, path: string, token: string, body?: string];
const doors: Door[] = [
  ["GET", "/api/v1/skills/list", gateway.key],
  ["POST", "/api/v1/chat/send", gateway.key, '{"message":"hi"}'],
  ["GET", "/v1/models", gateway.key],
  ["POST", "/rpc", gateway.rpcToken, '{"jsonrpc":"2.0","id":7,"method":"agent.list"}'],
  ["POST", "/hooks/wake", gateway.webhookToken, '{"text":"hi"}'],
  ["GET", "/metrics", gateway.rpcToken],
  ["GET", "/readyz", gateway.rpcToken],
  ["GET", "/healthz", gateway.rpcToken],
  ["GET", "/openapi.json", gateway.rpcToken],
  ["GET", "/docs", gateway.rpcToken],
];

/** One request over HTTP/1.1 with these additional lines. */
async function send([method, path, token, body]: Door, lines: readonly string[]) {
  await using connection = await openConnection(gateway.url);
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const text = requestText({ method, path }, headers, body).toString();
  connection.write(text.replace("\r\n\r\n", `\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`));
  return await connection.reply({ method, path });
}

function detailOf({ json }: { json: Record<string, unknown> }): unknown {
  const { error, detail } = json as { error?: { message?: string; data?: { detail?: string } }; detail?: string };
  return detail ?? error?.data?.detail ?? error?.message;
}

describe.each(doors)("over HTTP/1.1, %s %s", (...door) => {
  const [method, path, token, body] = door;

  test("is 400 with two Authorization headers, even if they are equal", async () => {
    const good = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    expect((await exchange(gateway.url, { method, path }, good, body)).status).toBe(200);
    for (const second of ["Bearer wrong", `Bearer ${token}`, ""]) {
      const reply = await send(door, [`aUTHORIZATION: ${second}`]);
      expect([reply.status, detailOf(reply)]).toEqual([400, expect.stringContaining(TWO_TOKENS)]);
      if (path === "/rpc") expect(reply.json).toMatchObject({ id: null, error: { code: -32600 } });
    }
  });

  test("is 400 with two Host headers, even if they are equal", async () => {
    for (const second of ["127.0.0.1", "rebound.example"]) {
      const reply = await send(door, [`HOST: ${second}`]);
      expect([reply.status, detailOf(reply)]).toEqual([400, expect.stringContaining(TWO_HOSTS)]);
      if (path === "/rpc") expect(reply.json).toMatchObject({ id: null, error: { code: -32600 } });
    }
  });
});

// An error in the format of OpenAI does not name its request, which the ledger needs.
const inHttp2 = doors.filter(([, path]) => path !== "/v1/models");

describe.each(inHttp2)("over HTTP/2, %s %s", (method, path, token, body = "") => {
  const INDEXED_400 = 0x8c;
  const start = [
    [":method", method],
    [":path", path],
    [":scheme", "http"],
    ["content-type", "application/json"],
  ] as const;
  const one = ["authorization", `Bearer ${token}`] as const;
  const authority = [":authority", "localhost"] as const;

  test.each([
    ["two authorization headers", [authority, ...start, one, ["authorization", "Bearer wrong"]], TWO_TOKENS],
    ["the same authorization twice", [authority, ...start, one, one], TWO_TOKENS],
    ["a host that is not its :authority", [authority, ...start, one, ["host", "rebound.example"]], TWO_HOSTS],
  ] as const)("is 400 with %s", async (_, pairs, detail) => {
    await using connection = await openFrames(gateway.url);
    // Pseudo-headers come first.
    const sorted = [...pairs].sort(([a], [b]) => Number(b[0] === ":") - Number(a[0] === ":"));
    connection.write(PREFACE, settings, agreed, frame(TYPE.headers, FLAG.endHeaders, 1, block(sorted)));
    connection.write(frame(TYPE.data, FLAG.endStream, 1, Buffer.from(body)));
    const head = await connection.until(({ type }) => type === TYPE.headers);
    expect(head.payload[0]).toBe(INDEXED_400);
    const { payload } = await connection.until(({ type, payload }) => type === TYPE.data && payload.length > 0);
    const json = JSON.parse(payload.toString());
    noteChecked(json.request_id ?? json.error?.data?.requestId ?? json.error?.request_id);
    expect(detailOf({ json })).toContain(detail);
    if (path === "/rpc") expect(json).toMatchObject({ id: null, error: { code: -32600 } });
  });

  test("accepts a host that equals its :authority", async () => {
    await using client = await openHttp2(gateway.url);
    const headers = { ":authority": "localhost", host: "LOCALHOST", "content-type": "application/json" };
    const reply = await client.send({ method, path }, { ...headers, authorization: one[1] }, body);
    expect(reply.status).toBe(200);
  });
});

test("over HTTP/2, two host headers end their stream before any handler runs", async () => {
  await using connection = await openFrames(gateway.url);
  const head = requestBlock("GET", "/healthz");
  const hosts = block([
    ["host", "localhost"],
    ["host", "localhost"],
  ]);
  const flags = FLAG.endHeaders | FLAG.endStream;
  connection.write(PREFACE, settings, agreed, frame(TYPE.headers, flags, 1, Buffer.concat([head, hosts])));
  const { payload } = await connection.until(({ type }) => type === TYPE.reset || type === TYPE.goaway);
  expect(payload.readUInt32BE(payload.length - 4)).toBe(PROTOCOL_ERROR);
  expect(connection.frames.some(({ type }) => type === TYPE.headers)).toBe(false);
});

test.each([
  ["Authorization", { Authorization: `Bearer ${gateway.rpcToken}` }, TWO_TOKENS],
  ["Host", { Host: host }, TWO_HOSTS],
])("a WebSocket is refused with two %s headers", async (_, second, detail) => {
  const headers = { authorization: `Bearer ${gateway.rpcToken}`, ...second };
  const answer = await upgrade(gateway.url, { headers });
  answer.socket.destroy();
  noteChecked(answer.headers["x-request-id"] ?? "");
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.body)).toMatchObject({ id: null, error: { code: -32600, data: { detail } } });
});
