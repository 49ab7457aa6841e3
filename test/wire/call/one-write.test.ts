import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { openSocket } from "#test/wire/ws/socket.ts";

// Pieces of a reply that an agent sends at once leave the gateway in one write, on any transport.

const PIECES = 200;
const LAST = `word${PIECES - 1}`;
const DELTAS = Array.from({ length: PIECES }, (_, n) => `data: ${JSON.stringify({ text: ` word${n}` })}\n\n`).join("");
const DONE = `event: done\ndata: ${JSON.stringify({ usage: { input: 1, output: PIECES } })}\n\n`;

/** An agent's service whose answers the test writes. */
const turns: ServerResponse[] = [];
const service = createServer((req, res) => {
  req.resume();
  res.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
  turns.push(res);
  service.emit("turn");
}).listen(0, "127.0.0.1");
await once(service, "listening");
afterAll(() => void service.close().closeAllConnections());

async function nextTurn(): Promise<ServerResponse> {
  if (turns.length === 0) await once(service, "turn");
  return turns.shift() as ServerResponse;
}

const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}/turns`;
const gateway = await shareGateway({
  config: {
    gateway: { defaultAgent: "main", openai: { enabled: true } },
    agents: { main: { backend: "http", http: { url } } },
  },
});

/** The writes of the gateway to its clients. */
let writes = 0;
beforeAll(() => {
  const port = Number(new URL(gateway.url).port);
  for (const method of ["_write", "_writev"] as const) {
    const write = Socket.prototype[method] as (...args: unknown[]) => void;
    vi.spyOn(Socket.prototype, method).mockImplementation(function (this: Socket, ...args: unknown[]) {
      if (this.localPort === port) writes++;
      return write.apply(this, args);
    });
  }
  return () => vi.restoreAllMocks();
});
beforeEach(() => {
  writes = 0;
});

const CHAT = { method: "POST", path: "/api/v1/chat/send" };
const COMPLETIONS = { method: "POST", path: "/v1/chat/completions" };

async function send(place: typeof CHAT, body: object) {
  const connection = await openConnection(gateway.url);
  const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" };
  connection.write(requestText(place, headers, JSON.stringify(body)));
  return connection;
}

describe.each([
  { what: "pieces", sent: DELTAS, end: undefined },
  { what: "pieces and their end", sent: DELTAS + DONE, end: "turn.completed" },
])("$what that are ready at once are sent in one write", ({ sent, end }) => {
  test("as server-sent events", async () => {
    await using connection = await send(CHAT, { message: "hi", stream: true });
    await connection.until((text) => text.includes("event: turn.started"));
    await connection.head(CHAT);
    const turn = await nextTurn();
    writes = 0;
    turn.write(sent);
    await connection.until((text) => text.includes(end ?? LAST));
    expect(writes).toBe(1);
    turn.end();
  });

  test("over WebSocket", async () => {
    using socket = await openSocket(gateway);
    await socket.call("agent.sendMessage", { agentName: "main", message: "hi", stream: true });
    const turn = await nextTurn();
    writes = 0;
    turn.write(sent);
    await (end ? socket.pushed(end as "turn.completed") : socket.pushed("message.delta"));
    expect(socket.pushesOf("message.delta").map(({ text }) => text.endsWith(LAST))).toEqual([true]);
    expect(writes).toBe(1);
    turn.end();
  });

  test("over the OpenAI-compatible API", async () => {
    const messages = [{ role: "user", content: "hi" }];
    await using connection = await send(COMPLETIONS, { model: "main", messages, stream: true });
    const turn = await nextTurn();
    turn.write(sent);
    await connection.until((text) => text.includes(end ? "[DONE]" : LAST));
    await connection.head(COMPLETIONS);
    expect(writes).toBe(1);
    turn.end();
  });
});
