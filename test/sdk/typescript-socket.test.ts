import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { type GatewayOptions, type Push, RpcClient, type RpcSocket } from "#generated/clients/typescript/src/rpc.ts";
import { turnId } from "./answers.ts";
import { serveSocket as serve } from "./socket-server.ts";

const token = "a token with ümlaut/+?";
function clientFor(url: string, options: GatewayOptions = {}): RpcSocket {
  return new RpcClient({
    url,
    rpcToken: token,
    maxRetries: 0,
    WebSocket,
    reconnect: { minMs: 5, maxMs: 20, attempts: 5 },
    ...options,
  }).connect();
}
const lost = { name: "connection-failed" };
async function next(pushes: AsyncIterator<Push>) {
  const { value } = await pushes.next();
  return (value as { params: { seq: number } }).params.seq;
}

test("each pause before an attempt is reported when it starts", async () => {
  await using server = await serve();
  const pauses: number[] = [];
  const onPause = (ms: number) => pauses.push(ms);
  await using client = clientFor(server.url, { reconnect: { minMs: 40, maxMs: 40, onPause } });
  const pushes = client.pushes();
  await client.subscribe({ sessions: { s1: null } });
  expect(pauses).toEqual([]);
  server.sockets[0]?.close(1012);
  server.queued(1);
  await expect.poll(() => server.sockets.length).toBe(2);
  expect(pauses).toHaveLength(1);
  expect(pauses[0]).toBeGreaterThanOrEqual(20);
  expect(pauses[0]).toBeLessThanOrEqual(40);
  await pushes.return?.(undefined);
});

test("calls, batches and notifications share one connection, opened at the first of them", async () => {
  await using server = await serve(({ method }) =>
    method === "agent.list" ? { agents: [] } : { error: { code: -32002, message: "no" } },
  );
  await using client = clientFor(server.url);
  expect(server.sockets).toHaveLength(0);
  expect(await client.agent.list()).toEqual({ agents: [] });
  await expect(client.agent.status({ agentName: "x" })).rejects.toMatchObject({ code: -32002 });
  expect(await client.batch([["agent.list"], ["agent.status", { agentName: "x" }]])).toMatchObject([
    { ok: true },
    { ok: false },
  ]);
  await client.notify("agent.list");
  await client.agent.list();
  expect(server.sockets).toHaveLength(1);
  expect(server.seen.filter(({ id }) => id === undefined)).toHaveLength(1);
});

test("the token is sent in a subprotocol, as a browser would send it, and not in the address", async () => {
  await using server = await serve();
  await using client = clientFor(server.url);
  await client.system.info();
  const [protocol, bearer = ""] = server.protocols[0]?.split(/, ?/) ?? [];
  expect(protocol).toBe("agent-gateway.v1");
  expect(bearer).toMatch(/^bearer\.[\w-]+$/);
  expect(Buffer.from(bearer.slice("bearer.".length), "base64url").toString()).toBe(token);
});

test("pushes reach every reader from the time it started to read, typed by their name", async () => {
  await using server = await serve();
  await using client = clientFor(server.url);
  const first = client.pushes();
  await client.subscribe({ sessions: { s1: null } });
  server.queued(1);
  expect(await next(first)).toBe(1);
  const second = client.pushes();
  server.queued(2);
  expect([await next(first), await next(second)]).toEqual([2, 2]);
  await second.return?.();
  const params = {
    seq: 3,
    cursor: "c3",
    sessionId: "s1",
    turnId,
    at: "",
    reply: "a",
    usage: { input: 1, output: 2, total: 3 },
  };
  server.sockets[0]?.send(JSON.stringify({ jsonrpc: "2.0", method: "turn.completed", params }));
  for await (const push of first) {
    expect(push.method === "turn.completed" && push.params.reply.length + push.params.usage.total).toBe(4);
    break;
  }
});

test("a frame that is not JSON ends the connection, and nothing else", async () => {
  await using server = await serve();
  await using client = clientFor(server.url);
  await client.system.info();
  server.sockets[0]?.send("{");
  await expect.poll(() => server.sockets[0]?.readyState).toBe(WebSocket.CLOSED);
  await client.system.info();
  expect(server.sockets).toHaveLength(2);
});

test("a lost connection is opened again and every stream continues after its last push", async () => {
  await using server = await serve();
  await using client = clientFor(server.url);
  const pushes = client.pushes();
  await client.subscribe({ sessions: { s1: null, s2: "old" }, agents: ["main"], gateway: null });
  server.queued(1);
  server.queued(2, "other");
  expect([await next(pushes), await next(pushes)]).toEqual([1, 2]);

  server.sockets[0]?.terminate();
  await expect.poll(() => server.seen.length).toBe(2);
  expect(server.seen[1]).toMatchObject({
    method: "rpc.subscribe",
    params: { sessions: { s1: "c1", s2: "old", other: "c2" }, agents: ["main"], gateway: null },
  });
  server.queued(3);
  expect(await next(pushes)).toBe(3);
});

test("a stream that was unsubscribed is not subscribed again", async () => {
  await using server = await serve();
  await using client = clientFor(server.url);
  const pushes = client.pushes();
  await client.subscribe({ sessions: { s1: null, s2: null } });
  await client.unsubscribe({ sessions: ["s1"] });
  expect(server.seen[1]).toMatchObject({ method: "rpc.unsubscribe", params: { sessions: ["s1"] } });
  server.sockets[0]?.close(1012);
  await expect.poll(() => server.seen.length).toBe(3);
  expect(server.seen[2]?.params).toEqual({ sessions: { s2: null } });
  await pushes.return?.();
});

test("a call that was sent when the connection was lost fails, because its result is unknown; the next one works", async () => {
  await using server = await serve(({ method }, socket) => (method === "agent.list" ? void socket.terminate() : {}));
  await using client = clientFor(server.url);
  await expect(client.agent.list()).rejects.toMatchObject(lost);
  await client.system.info();
  expect(server.sockets).toHaveLength(2);
});

test("a message whose connection was lost is sent again with its key", async () => {
  let sent = 0;
  await using server = await serve((_, socket) => (++sent === 1 ? void socket.terminate() : { turnId }));
  await using client = clientFor(server.url, { maxRetries: 1 });
  expect(await client.agent.sendMessage({ agentName: "main", message: "hi" })).toEqual({ turnId });
  const keys = server.seen.map(({ params }) => params.idempotencyKey);
  expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
});

test("a restarting gateway says when to reconnect, and one that removed the token is not called again", async () => {
  await using server = await serve();
  await using client = clientFor(server.url, { reconnect: { minMs: 60_000, maxMs: 60_000 } });
  const pushes = client.pushes();
  await client.system.info();
  server.sockets[0]?.close(1012, "the gateway restarts; retry-after-ms=20");
  await expect.poll(() => server.sockets.length).toBe(2);
  await client.system.info();
  server.sockets[1]?.close(4401, "the token is no longer valid");
  await expect(pushes.next()).rejects.toThrow("The connection ended with 4401 the token is no longer valid.");
});

test("calls wait for a connection that is being reopened", async () => {
  await using server = await serve();
  await using client = clientFor(server.url);
  const pushes = client.pushes();
  await client.system.info();
  server.sockets[0]?.terminate();
  await expect.poll(() => server.sockets[0]?.readyState).toBe(WebSocket.CLOSED);
  await client.system.info();
  await pushes.return?.();
});

test("readers get an error if a connection cannot be reopened, or if the gateway refuses to continue", async () => {
  const server = await serve();
  await using client = clientFor(server.url);
  const pushes = client.pushes();
  await client.system.info();
  await server[Symbol.asyncDispose]();
  await expect(pushes.next()).rejects.toMatchObject(lost);

  let refuses = false;
  await using other = await serve(() =>
    refuses ? { error: { code: -32001, message: "Permission denied", data: { name: "forbidden" } } } : {},
  );
  await using second = clientFor(other.url);
  const reader = second.pushes();
  await second.subscribe({ sessions: { s1: null } });
  refuses = true;
  other.sockets[0]?.terminate();
  await expect(reader.next()).rejects.toMatchObject({ name: "forbidden" });
});

test("a connection that cannot be opened fails the call at once", async () => {
  await using client = clientFor("http://127.0.0.1:1");
  await expect(client.agent.list()).rejects.toMatchObject(lost);
});

test("a refusal of a complete message ends the calls that it may refer to", async () => {
  const error = { code: -32600, message: "Invalid request", data: { name: "invalid-request" } };
  await using server = await serve(
    (_, socket) => void socket.send(JSON.stringify({ jsonrpc: "2.0", id: null, error })),
  );
  await using client = clientFor(server.url);
  await expect(client.batch([["agent.list"]])).rejects.toMatchObject({ name: "invalid-request" });
});

test("closing ends waiting calls and readers permanently", async () => {
  await using server = await serve(() => undefined);
  const client = clientFor(server.url);
  const reader = client.pushes();
  const call = client.agent.list();
  const failed = expect(call).rejects.toThrow("The client was closed.");
  const ended = reader.next();
  await expect.poll(() => server.seen.length).toBe(1);
  client.close();
  await failed;
  expect(await ended).toMatchObject({ done: true });
  await expect(client.agent.list()).rejects.toThrow("The client was closed.");
  await expect.poll(() => server.sockets[0]?.readyState).toBe(WebSocket.CLOSED);
});

test("without a WebSocket the client says what it needs", () => {
  const had = (globalThis as { WebSocket?: unknown }).WebSocket;
  (globalThis as { WebSocket?: unknown }).WebSocket = undefined;
  try {
    expect(() => new RpcClient({ url: "http://x", rpcToken: "t" }).connect()).toThrow("Node 20 has no WebSocket.");
  } finally {
    if (had !== undefined) (globalThis as { WebSocket?: unknown }).WebSocket = had;
  }
});

test("continues after the pushes that arrived in one read with the answer to its subscription", async () => {
  type Heard = { open: () => void; message: (event: { data: unknown }) => void; close: (event: object) => void };
  const sent: { params: { sessions: Record<string, string | null> } }[] = [];
  const sockets: Partial<Heard>[] = [];
  class OneRead {
    readonly #heard: Partial<Heard> = {};
    constructor() {
      sockets.push(this.#heard);
      setImmediate(() => this.#heard.open?.());
    }
    addEventListener(type: keyof Heard, listener: never) {
      this.#heard[type] = listener;
    }
    close() {}
    send(text: string) {
      const { id, ...request } = JSON.parse(text);
      sent.push(request);
      const hear = (message: object) => this.#heard.message?.({ data: JSON.stringify({ jsonrpc: "2.0", ...message }) });
      setImmediate(() => {
        hear({ id, result: { sessions: { "chat:a": "before" } } });
        hear({ method: "turn.queued", params: { sessionId: "chat:a", cursor: "behind", seq: 2 } });
      });
    }
  }
  const client = clientFor("http://gateway.test", { WebSocket: OneRead as never, reconnect: { minMs: 1 } });
  const pushes = client.pushes();
  await client.subscribe({ sessions: { "chat:a": null } });
  expect((await pushes.next()).value.params.cursor).toBe("behind");
  sockets[0]?.close?.({ code: 1006, reason: "" });
  await pushes.next();
  expect(sent.map(({ params }) => params.sessions["chat:a"])).toEqual([null, "behind"]);
  client.close();
});
