import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { main } from "#test/harness/process.ts";
import { emptyFolder, runCli, startCli } from "./cli.ts";
import { KEY, startMcpServer } from "./mcp-server.ts";

const INFO = { name: "stranger", version: "1.0.0" };
const VERSION = "2026-07-28";

function commandFor(url: string) {
  return {
    command: process.execPath,
    args: [main, "mcp"],
    env: { GATEWAY_URL: url, REST_API_KEY: KEY },
    cwd: emptyFolder(),
  };
}

/** A client that starts the bridge. */
async function connect(url: string, mode: "legacy" | { pin: string } | "auto") {
  const client = new Client(INFO, { versionNegotiation: { mode } });
  onTestFinished(() => client.close());
  await client.connect(new StdioClientTransport(commandFor(url)));
  return client;
}

/** The bridge, with lines for it and the lines that it writes. */
function startBridge(url: string, env: Record<string, string> = {}) {
  const cli = startCli(["mcp"], { env: { GATEWAY_URL: url, REST_API_KEY: KEY, ...env }, isOpen: true });
  const lines = () => cli.result.out.split("\n").slice(0, -1);
  return {
    ...cli,
    lines,
    writeBytes: (bytes: Buffer) => void cli.child.stdin.write(bytes),
    write: (message: unknown) => cli.type(`${typeof message === "string" ? message : JSON.stringify(message)}\n`),
    /** The messages, once there are that many. */
    messages: async (count: number) => {
      await cli.until(() => lines().length >= count);
      return lines().map((line) => JSON.parse(line));
    },
  };
}

const ENVELOPE = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": INFO,
  "io.modelcontextprotocol/clientCapabilities": {},
};
function modern(id: number, method: string, params: object = {}) {
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: ENVELOPE } };
}

describe("a client that starts agent-gateway mcp", () => {
  test.each([["legacy"], ["auto"], [{ pin: VERSION }]] as const)("lists and calls tools: %j", async (mode) => {
    const server = await startMcpServer();
    const client = await connect(server.url, mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(mode === "legacy" ? "2025-11-25" : VERSION);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["echo", "wait"]);
    const text = "a\u2028\u009bä\ud83d\ude00\n".repeat(50_000);
    expect(await client.callTool({ name: "echo", arguments: { text } })).toMatchObject({ content: [{ text }] });
    await expect(client.callTool({ name: "nope", arguments: {} })).rejects.toThrow("nope");
  });

  test("may be one of the SDK 1", async () => {
    const server = await startMcpServer();
    const client = new OldClient(INFO);
    onTestFinished(() => client.close());
    await client.connect(new OldStdioClientTransport(commandFor(server.url)));
    expect((await client.listTools()).tools).toHaveLength(2);
    expect(await client.callTool({ name: "echo", arguments: { text: "x" } })).toMatchObject({
      content: [{ text: "x" }],
    });
  });

  test.each(["legacy", { pin: VERSION }] as const)("gets progress, and cancels a call: %j", async (mode) => {
    const server = await startMcpServer();
    const client = await connect(server.url, mode);
    const stop = new AbortController();
    const progress = await new Promise((resolve) => {
      client.callTool({ name: "wait", arguments: {} }, { onprogress: resolve, signal: stop.signal }).catch(() => {});
    });
    expect(progress).toMatchObject({ progress: 1 });
    await server.until(() => server.waiting.length === 1);
    stop.abort();
    await server.until(() => server.waiting[0]?.isCancelled === true);
    expect(await client.callTool({ name: "echo", arguments: { text: "next" } })).toMatchObject({
      content: [{ text: "next" }],
    });
  });

  test("is notified of a changed list", async () => {
    const server = await startMcpServer();
    const client = await connect(server.url, { pin: VERSION });
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler("notifications/tools/list_changed", () => resolve());
    });
    const subscription = await client.listen({ toolsListChanged: true });
    server.handler.notify.toolsChanged();
    await changed;
    await subscription.close();
  });
});

describe("agent-gateway mcp", () => {
  test("runs requests at the same time, and finishes them when its input ends", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    bridge.write(modern(1, "tools/call", { name: "wait", arguments: {} }));
    await server.until(() => server.waiting.length === 1);
    bridge.write(modern(2, "tools/call", { name: "echo", arguments: { text: "x" } }));
    bridge.write(modern(3, "subscriptions/listen", { notifications: { toolsListChanged: true } }));
    expect((await bridge.messages(2)).some(({ id }) => id === 2)).toBe(true);
    await bridge.messages(2);
    bridge.child.stdin.end();
    server.waiting[0]?.release("late");
    const { code, err } = await bridge.ended;
    expect([code, err]).toEqual([0, ""]);
    expect(bridge.lines().map((line) => JSON.parse(line).result?.content?.[0]?.text)).toContain("late");
  });

  test("sends the headers that the protocol derives from a message", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    bridge.write({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: INFO },
    });
    await bridge.messages(1);
    bridge.write({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    await bridge.messages(2);
    bridge.write(modern(3, "tools/call", { name: "häufig", arguments: {} }));
    await bridge.messages(3);
    const headers = server.seen.map(({ headers }) => [
      headers["mcp-protocol-version"],
      headers["mcp-method"],
      headers["mcp-name"],
    ]);
    expect(headers).toEqual([
      [undefined, undefined, undefined],
      ["2025-06-18", undefined, undefined],
      [VERSION, "tools/call", "=?base64?aMOkdWZpZw==?="],
    ]);
  });

  test("continues after lines that are not messages", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    for (const line of [
      "",
      "not JSON",
      "5",
      `[${JSON.stringify(modern(1, "tools/list"))}]`,
      " ".repeat(16 * 1024 * 1024 + 1),
    ])
      bridge.write(line);
    bridge.write({ jsonrpc: "2.0", id: 9, result: {} });
    bridge.write(modern(2, "tools/call", { name: "echo", arguments: { text: "x" } }));
    const messages = await bridge.messages(5);
    expect(messages.slice(0, 4).map(({ id, error }) => [id, error.code, error.message])).toEqual([
      [null, -32700, "A line of standard input is not JSON."],
      [null, -32600, "A line of standard input is not one JSON-RPC message."],
      [null, -32600, "A line of standard input is not one JSON-RPC message."],
      [null, -32600, "A message is longer than 16 MiB."],
    ]);
    expect(messages[4]).toMatchObject({ id: 2, result: {} });
  });

  test("continues after any JSON", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    const values = fc.oneof(
      fc.json({ maxDepth: 3 }),
      fc
        .record({ id: fc.jsonValue(), method: fc.jsonValue(), params: fc.jsonValue() }, { requiredKeys: [] })
        .map((message) => JSON.stringify({ jsonrpc: "2.0", ...message })),
      fc
        .constantFrom("subscriptions/listen", "tools/call", "initialize", "notifications/cancelled")
        .map((method) => JSON.stringify({ jsonrpc: "2.0", id: null, method, params: { _meta: null, requestId: {} } })),
    );
    for (const line of fc.sample(values, 80)) bridge.write(line);
    bridge.write(modern(12_345, "tools/call", { name: "echo", arguments: { text: "x" } }));
    await bridge.until(({ out }) => out.includes('"id":12345'));
    for (const line of bridge.lines()) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  });

  test("answers while the gateway is stopped, and works again when it is back", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    const call = (id: number, name = "echo") =>
      bridge.write(modern(id, "tools/call", { name, arguments: { text: "x" } }));
    call(1, "wait");
    await server.until(() => server.waiting.length === 1);
    await server.stop();
    expect((await bridge.messages(1))[0].error.message).toMatch(
      `The connection to ${server.url}/mcp broke: other side closed. The call may have taken effect.`,
    );
    call(2);
    call(3);
    const unreachable = `No answer from ${server.url}/mcp: connect ECONNREFUSED ${server.url.slice(7)}. Start the gateway, or set GATEWAY_URL.`;
    expect((await bridge.messages(3)).slice(1).map(({ error }) => [error.code, error.message])).toEqual([
      [-32603, unreachable],
      [-32603, unreachable],
    ]);
    await server.start();
    call(4);
    expect((await bridge.messages(4))[3]).toMatchObject({ id: 4, result: { content: [{ text: "x" }] } });
    await bridge.until(({ err }) => err.includes("again"));
    expect(bridge.result.err.split("\n").slice(1)).toEqual([
      unreachable,
      `The gateway at ${server.url}/mcp answers again.`,
      "",
    ]);
  });

  test.each([
    [
      { REST_API_KEY: "wrong" },
      undefined,
      /^The gateway at \S+ does not accept the REST key in REST_API_KEY\. Set a valid key in REST_API_KEY\.$/,
    ],
    [
      {},
      { status: 404, type: "application/problem+json", body: '{"title":"Not found","detail":"MCP is off here."}' },
      /^MCP is off here\.$/,
    ],
    [
      {},
      { status: 404, type: "text/html", body: "<h1>no</h1>" },
      /^The server at \S+ does not serve MCP\. Set GATEWAY_URL to the address of an Agent Gateway\.$/,
    ],
    [{}, { status: 502, type: "text/html", body: "<h1>no</h1>" }, /^The server at \S+ answered HTTP 502\.$/],
    [
      {},
      { status: 302, type: "text/html", body: "", location: "https://x.example/" },
      /points to https:\/\/x\.example\/, which this command does not follow/,
    ],
    [{}, { status: 202, type: "text/html", body: "" }, /did not answer the request/],
    [{}, { status: 200, type: "application/json", body: "[1]" }, /did not answer the request/],
    [
      {},
      { status: 200, type: "text/event-stream", body: "data: [1]\n\n" },
      /cannot be read: a message is not a JSON object/,
    ],
    [{}, { status: 200, type: "text/event-stream", body: ": nothing\n\n" }, /did not answer the request/],
  ])("reports a refusal to the client and to people: %j %j", async (env, answer, words) => {
    const server = await startMcpServer();
    if (answer)
      server.answerWith((_, res) => {
        res.writeHead(answer.status, {
          "content-type": answer.type,
          ...("location" in answer && { location: answer.location }),
        });
        res.end(answer.body);
      });
    const bridge = startBridge(server.url, env);
    bridge.write(modern(1, "tools/list"));
    const [{ id, error }] = await bridge.messages(1);
    expect([id, error.code]).toEqual([1, -32603]);
    expect(error.message).toMatch(words);
    expect(bridge.result.err).toBe(`${error.message}\n`);
  });

  test.each([
    ["unauthenticated", 401, -32000, /does not accept the REST key/],
    ["not-found", 404, -32002, /^Not found: the server is off$/],
  ])("keeps the code of the gateway's refusal: %s", async (name, status, code, words) => {
    const server = await startMcpServer();
    server.answerWith((_, res) => {
      const error = { code, message: "Not found: the server is off", data: { name, status } };
      res.writeHead(status, { "content-type": "application/json" });
      res.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
    });
    const bridge = startBridge(server.url);
    bridge.write(modern(1, "tools/list"));
    const message = expect.stringMatching(words);
    expect(await bridge.messages(1)).toEqual([
      { jsonrpc: "2.0", id: 1, error: { code, message, data: { name, status } } },
    ]);
    expect(bridge.result.err.trimEnd()).toMatch(words);
  });

  test("passes on an error of the protocol as it is", async () => {
    const server = await startMcpServer();
    const answer = '{"jsonrpc":"2.0",\r\n"id":1,"error":{"code":-32020,"message":"no"}}';
    server.answerWith((_, res) => void res.writeHead(400, { "content-type": "application/json" }).end(answer));
    const bridge = startBridge(server.url);
    bridge.write(modern(1, "tools/list"));
    expect(await bridge.messages(1)).toEqual([JSON.parse(answer)]);
    expect(bridge.result.err).toBe("");
  });

  test("refuses a line that is not UTF-8, and sends nothing of it", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    const line = JSON.stringify(modern(1, "tools/call", { name: "echo", arguments: { text: "\xff" } }));
    bridge.writeBytes(Buffer.from(`${line}\n`, "latin1"));
    const [{ id, error }] = await bridge.messages(1);
    expect([id, error.code, error.message]).toEqual([null, -32700, "A line of standard input is not UTF-8."]);
    bridge.write(modern(2, "tools/call", { name: "echo", arguments: { text: "\xff" } }));
    expect((await bridge.messages(2))[1]).toMatchObject({ id: 2, result: { content: [{ text: "\xff" }] } });
    expect(server.seen).toHaveLength(1);
  });

  test("a request ends with its answer, also if its stream stays open", async () => {
    const server = await startMcpServer();
    let closed = 0;
    server.answerWith((req, res) => {
      res.on("close", () => closed++);
      req.toArray().then((body) => {
        const { id } = JSON.parse(Buffer.concat(body).toString());
        res.writeHead(200, { "content-type": "text/event-stream" });
        res.write(`data: {"jsonrpc":"2.0","id":${id},"result":{}}\n\n`);
      });
    });
    const bridge = startBridge(server.url);
    for (let id = 1; id <= 101; id++) {
      bridge.write(modern(id, "tools/list"));
      expect((await bridge.messages(id))[id - 1]).toMatchObject({ id, result: {} });
    }
    bridge.child.stdin.end();
    expect(await bridge.ended).toMatchObject({ code: 0, err: "" });
    expect(closed).toBeGreaterThan(0);
  });

  test.each([
    ["a refusal", 413, "application/problem+json", '{"title":"Too large"}', "Too large\n"],
    ["an answer that cannot be read", 200, "text/event-stream", "data: 5\n\n", /cannot be read/],
  ])("does not report that the gateway answers again after %s", async (_, status, type, body, words) => {
    const server = await startMcpServer();
    server.answerWith((_, res) => void res.writeHead(status, { "content-type": type }).end(body));
    const bridge = startBridge(server.url);
    bridge.write(modern(1, "tools/list"));
    await bridge.messages(1);
    server.answerWith(undefined);
    bridge.write(modern(2, "tools/list"));
    await bridge.messages(2);
    bridge.child.stdin.end();
    const { err } = await bridge.ended;
    expect(err).toMatch(words);
    expect(err).not.toContain("again");
  });

  test("reports that the gateway answers again after a proxy answered for it", async () => {
    const server = await startMcpServer();
    server.answerWith((_, res) => void res.writeHead(502, { "content-type": "text/html" }).end("<h1>no</h1>"));
    const bridge = startBridge(server.url);
    bridge.write(modern(1, "tools/list"));
    await bridge.messages(1);
    server.answerWith(undefined);
    bridge.write(modern(2, "tools/list"));
    await bridge.until(({ err }) => err.endsWith(`The gateway at ${server.url}/mcp answers again.\n`));
  });

  test("refuses more than 100 requests at once", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    for (let id = 1; id <= 101; id++) bridge.write(modern(id, "tools/call", { name: "wait", arguments: {} }));
    const [{ id, error }] = await bridge.messages(1);
    expect([id, error.message]).toEqual([101, "100 requests are already in progress."]);
    await server.until(() => server.waiting.length === 100);
    for (const { release } of server.waiting) release("x");
    await bridge.messages(101);
    bridge.child.stdin.end();
    expect((await bridge.ended).err).toBe("");
  });

  test("escapes the characters that control a terminal, which does not change the JSON", async () => {
    const server = await startMcpServer();
    const bridge = startBridge(server.url);
    bridge.write(modern(1, "tools/call", { name: "echo", arguments: { text: "\u001b[2J\u009b31m\u202e" } }));
    expect(await bridge.messages(1)).toMatchObject([{ result: { content: [{ text: "\u001b[2J\u009b31m\u202e" }] } }]);
    expect(bridge.result.out).toContain("\\u009b31m\\u202e");
  });

  test.each([
    ["ftp://x", /^The gateway's url "ftp:\/\/x" does not begin with http:\/\/ or https:\/\/\. Write it as /],
    ["127.0.0.1:8921", /such as http:\/\/127\.0\.0\.1:8921\.\n/],
    ["http://", /^The gateway's url "http:\/\/" is not a url\. /],
  ])("refuses the address %s, as other commands do", async (url, words) => {
    const { code, out, err } = await runCli(["mcp", "--url", url, "--key", KEY], { input: "{}\n" });
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(words);
    const call = await runCli(["call", "ops.healthz", "--url", url]);
    expect([call.code, call.err.split("\n")[0]]).toEqual([code, err.split("\n")[0]]);
  });

  test("needs a key", async () => {
    expect(await runCli(["mcp"], { input: "" })).toEqual({
      code: 4,
      out: "",
      err: "There is no key for the gateway.\nNext: set REST_API_KEY\n",
    });
  });

  test("ends when its input ends, also without a gateway", async () => {
    const input = `${JSON.stringify(modern(1, "tools/list"))}\n`;
    const { code, out } = await runCli(["mcp"], {
      input,
      env: { GATEWAY_URL: "http://127.0.0.1:9", REST_API_KEY: KEY },
    });
    expect([code, JSON.parse(out).error.code]).toEqual([0, -32603]);
  });
});
