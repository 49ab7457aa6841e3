import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { heldClock, open, signal } from "./open-tools.ts";
import { acknowledgementOf, answerOf, MODERN } from "./stand-in-answers.mjs";

type Message = { id?: unknown; method: string; params?: { name?: string } };
/** True if it has answered. */
type Trick = (message: Message, res: ServerResponse, req: IncomingMessage) => boolean;

const STREAM = { "content-type": "text/event-stream" };

/** An MCP server of 2026-07-28 over HTTP with a trick of its own. */
async function serve(trick: Trick) {
  const seen: { method: string; headers: IncomingMessage["headers"] }[] = [];
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const message = (await json(req)) as Message;
    seen.push({ method: message.method, headers: req.headers });
    if (trick(message, res, req)) return;
    if (message.method === "subscriptions/listen") {
      res.writeHead(200, STREAM);
      return void res.write(`data: ${JSON.stringify(acknowledgementOf(message))}\n\n`);
    }
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answerOf(message, "good", MODERN)));
  };
  const server = createServer((req, res) => void answer(req, res).catch(() => res.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const headers = { authorization: "Bearer t" };
  return {
    reach: { type: "http", url: `http://127.0.0.1:${port}/mcp`, headers } as const,
    count: (method: string) => seen.filter((one) => one.method === method).length,
    last: () => seen.at(-1)?.headers ?? {},
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function sendJson(res: ServerResponse, id: unknown, result: object, headers: Record<string, string> = {}): true {
  const body = { jsonrpc: "2.0", id, result: { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result } };
  res.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  return true;
}

/** An MCP server of 2025-11-25 over HTTP with a trick of its own. */
function serveOld(trick: Trick) {
  return serve((message, res, req) => {
    if (trick(message, res, req)) return true;
    if (message.id === undefined) res.writeHead(202).end();
    else res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answerOf(message, "good")));
    return true;
  });
}

const ONE_TOOL = { name: "one", inputSchema: { type: "object" } };

describe("an MCP server of 2026-07-28 over HTTP", () => {
  it("cannot set a session, or another header than those of its tool's parameters", async () => {
    const values = ["city", "authorization", "mcp-session-id"].map((name) => [
      name,
      { type: "string", "x-mcp-header": name },
    ]);
    const inputSchema = { type: "object", properties: Object.fromEntries(values) };
    await using server = await serve(({ id, method }, res) => {
      if (method === "tools/list")
        return sendJson(res, id, { tools: [{ name: "go", inputSchema }] }, { "mcp-session-id": "s" });
      return method === "tools/call" && sendJson(res, id, { content: [{ type: "text", text: "gone" }] });
    });
    await using files = open(server.reach);
    const args = { city: "Köln\r\nx-evil: 1", authorization: "Bearer stolen", "mcp-session-id": "x" };
    expect(await files.call("go", args)).toBe("gone");
    const headers = server.last();
    expect(headers).toMatchObject({
      authorization: "Bearer t",
      "mcp-method": "tools/call",
      "mcp-name": "go",
      "mcp-protocol-version": MODERN,
      "mcp-param-authorization": "Bearer stolen",
      "mcp-param-city": `=?base64?${Buffer.from(args.city).toString("base64")}?=`,
      "x-gateway-hops": "1",
    });
    expect(headers).not.toHaveProperty("mcp-session-id");
    expect(headers).not.toHaveProperty("x-evil");
  });

  const text = { type: "string" };
  const wrong: [title: string, schema: object][] = [
    ["a name that no header has", { properties: { a: { ...text, "x-mcp-header": "a\r\nx-evil: 1" } } }],
    ["an empty name", { properties: { a: { ...text, "x-mcp-header": "" } } }],
    ["a number as its name", { properties: { a: { ...text, "x-mcp-header": 1 } } }],
    ["one name twice", { properties: { a: { ...text, "x-mcp-header": "a" }, b: { ...text, "x-mcp-header": "A" } } }],
    ["a header for an object", { properties: { a: { type: "object", "x-mcp-header": "a" } } }],
    ["a header for all arguments", { "x-mcp-header": "a" }],
    ["a header for the items of a list", { properties: { a: { items: { ...text, "x-mcp-header": "a" } } } }],
    ["a header in a definition", { $defs: { a: { properties: { b: { ...text, "x-mcp-header": "a" } } } } }],
  ];
  it.each(wrong)("MUST have a tool left out that asks for %s", async (_, schema) => {
    await using server = await serve(({ id, method }, res) => {
      const good = {
        name: "say",
        inputSchema: { type: "object", properties: { text: { ...text, "x-mcp-header": "Text" } } },
      };
      const tools = [{ name: "bad", inputSchema: { type: "object", ...schema } }, good];
      return method === "tools/list" && sendJson(res, id, { tools });
    });
    await using files = open(server.reach);
    const { tools, missing } = await files.source.tools(signal, 0);
    expect(tools.map(({ name }) => name)).toEqual(["files__say"]);
    expect(missing).toEqual([{ server: "files", reason: "with an invalid x-mcp-header: bad" }]);
    await files.call("say", { text: "a" });
    expect(server.last()["mcp-param-text"]).toBe("a");
  });

  it("is read once for its tools, whatever it says about how long they are valid", async () => {
    await using server = await serve(() => false);
    await using files = open(server.reach);
    await files.names();
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    await files.names();
    expect(server.count("tools/list")).toBe(1);
  });

  it("has its list read again after its `ttlMs`, and a minute at least, if it does not report changes", async () => {
    let passed = 0;
    const clock = { ...systemClock, monotonic: () => passed };
    let ttlMs = 0;
    await using server = await serve(({ id, method }, res) => {
      if (method === "tools/list") {
        const name = `tool-${server.count("tools/list")}`;
        return sendJson(res, id, { tools: [{ name, inputSchema: { type: "object" } }], ttlMs });
      }
      return (
        method === "server/discover" && sendJson(res, id, { supportedVersions: [MODERN], capabilities: { tools: {} } })
      );
    });
    await using files = open(server.reach, { clock });
    for (passed of [0, 59_999]) expect(await files.names()).toEqual(["files__tool-1"]);
    ttlMs = 3_600_000;
    passed = 60_000;
    await files.names();
    await expect.poll(() => files.names()).toEqual(["files__tool-2"]);
    passed = 3_659_999;
    expect(await files.names()).toEqual(["files__tool-2"]);
    expect(server.count("tools/list")).toBe(2);
    expect(server.count("subscriptions/listen")).toBe(0);
  });

  it("has its list read again after its `ttlMs`, although it claims to report changes", async () => {
    let passed = 0;
    await using server = await serve(({ id, method }, res) => {
      if (method === "subscriptions/listen") {
        const error = { code: -32601, message: "Method not found" };
        res.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, error }));
        return true;
      }
      const tools = [{ ...ONE_TOOL, name: `tool-${server.count("tools/list")}` }];
      return method === "tools/list" && sendJson(res, id, { tools, ttlMs: 3_600_000 });
    });
    await using files = open(server.reach, { clock: { ...systemClock, monotonic: () => passed } });
    for (passed of [0, 3_599_999]) expect(await files.names()).toEqual(["files__tool-1"]);
    passed = 3_600_000;
    await expect.poll(() => files.names()).toEqual(["files__tool-2"]);
  });

  it("has its list read again after a day, even if it changes before its subscription and names a longer time", async () => {
    let passed = 0;
    await using server = await serve(({ id, method }, res) => {
      const tools = [{ ...ONE_TOOL, name: `tool-${server.count("tools/list")}` }];
      return method === "tools/list" && sendJson(res, id, { tools, ttlMs: Number.MAX_SAFE_INTEGER });
    });
    await using files = open(server.reach, { clock: { ...systemClock, monotonic: () => passed } });
    for (passed of [0, 86_399_999]) expect(await files.names()).toEqual(["files__tool-1"]);
    passed = 86_400_000;
    await expect.poll(() => files.names()).toEqual(["files__tool-2"]);
  });

  it("has its list read again a minute after a change whose list could not be read", async () => {
    let passed = 0;
    let subscription: ServerResponse | undefined;
    await using server = await serve((message, res) => {
      const { id, method } = message;
      const lists = server.count("tools/list");
      if (method === "subscriptions/listen") {
        subscription = res.writeHead(200, STREAM);
        return res.write(`data: ${JSON.stringify(acknowledgementOf(message))}\n\n`);
      }
      if (method !== "tools/list") return false;
      if (lists !== 2) return sendJson(res, id, { tools: [{ ...ONE_TOOL, name: `tool-${lists}` }], ttlMs: 3_600_000 });
      res.writeHead(503).end();
      return true;
    });
    await using files = open(server.reach, { clock: { ...systemClock, monotonic: () => passed } });
    await files.names();
    await expect.poll(() => subscription).toBeDefined();
    const change = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    subscription?.write(`data: ${JSON.stringify(change)}\n\n`);
    await expect.poll(() => server.count("tools/list")).toBe(2);
    expect(await files.names()).toEqual(["files__tool-1"]);
    passed = 60_000;
    await expect.poll(() => files.names(), { timeout: 4_000 }).toEqual(["files__tool-3"]);
  });

  it.each([undefined, null, -5, 0.5, 1e308, "soon"])(
    "may name a wrong time for its list, which is used: %s",
    async (ttlMs) => {
      let passed = 0;
      await using server = await serve(({ id, method }, res) => {
        const tools = [{ ...ONE_TOOL, name: `tool-${server.count("tools/list")}` }];
        return method === "tools/list" && sendJson(res, id, { tools, ttlMs, cacheScope: "nobody" });
      });
      await using files = open(server.reach, { clock: { ...systemClock, monotonic: () => passed } });
      for (passed of [0, 59_999]) expect(await files.names()).toEqual(["files__tool-1"]);
      passed = 60_000;
      await expect.poll(() => files.names()).toEqual(["files__tool-2"]);
    },
  );

  it.each([400, 404])("MUST get no call twice that it refuses with %i", async (status) => {
    await using server = await serve(({ method }, res) => {
      if (method !== "tools/call") return false;
      res.writeHead(status).end("bad");
      return true;
    });
    await using files = open(server.reach);
    await files.names();
    const calls = Array.from({ length: 3 }, () => files.call("say").catch((error: Error) => error.message));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([`The call failed: it answered ${status}: bad.`]));
    expect(server.count("tools/call")).toBe(3);
  });

  it("is omitted with the reason of its first refusal if it does not know `initialize`", async () => {
    await using server = await serve(({ method }, res) => {
      if (method !== "server/discover") return false;
      res.writeHead(503).end("It starts");
      return true;
    });
    await using files = open(server.reach);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "it answered 503: It starts" }]);
  });

  it("is not asked for its list again because a call's headers disagree", async () => {
    await using server = await serve(({ id, method }, res) => {
      if (method !== "tools/call") return false;
      const error = { code: -32020, message: "Header mismatch" };
      res.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, error }));
      return true;
    });
    await using files = open(server.reach);
    await expect(files.call("say")).rejects.toThrow("The call failed: MCP error -32020: Header mismatch.");
    expect(server.count("tools/list")).toBe(1);
    expect(server.count("tools/call")).toBe(1);
  });

  it("MUST wait for a pause after a subscription that ends at once", async () => {
    const { waits, clock } = heldClock();
    await using server = await serve((message, res) => {
      if (message.method !== "subscriptions/listen") return false;
      res.writeHead(200, STREAM).end(`data: ${JSON.stringify(acknowledgementOf(message))}\n\n`);
      return true;
    });
    await using files = open(server.reach, { clock });
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    await expect.poll(() => waits).toContain(1_000);
    expect(server.count("subscriptions/listen")).toBe(1);
  });

  it.each([
    ["acknowledges without end", (id: unknown) => acknowledgementOf({ id, method: "", params: { notifications: {} } })],
    ["changes without end", () => ({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })],
  ])(
    "F35: MUST be ended if its subscription %s",
    async (_, told) => {
      await using server = await serve(({ id, method }, res) => {
        if (method !== "subscriptions/listen") return false;
        const event = `data: ${JSON.stringify(told(id))}\n\n`;
        res.writeHead(200, STREAM);
        const more = () => {
          if (!res.destroyed) res.write(event.repeat(100), () => setImmediate(more));
        };
        more();
        return true;
      });
      await using files = open(server.reach);
      await files.names();
      await expect
        .poll(() => files.failures, { timeout: 20_000 })
        .toContain("it sent too many messages, and was ended");
    },
    30_000,
  );

  it("F06: is omitted if its first answer has no end", async () => {
    // A wait of 10 s is 100 ms here.
    const clock = { ...systemClock, after: (ms: number, fire: () => void) => systemClock.after(ms / 100, fire) };
    await using server = await serve((_, res) => {
      res.writeHead(200, STREAM).write(": wait\n\n");
      return true;
    });
    await using files = open(server.reach, { clock });
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "it did not answer in time" }]);
  });

  it.each([
    ["500", (res: ServerResponse) => res.writeHead(500).end("unknown method")],
    ["an empty answer", (res: ServerResponse) => res.writeHead(200, { "content-type": "application/json" }).end()],
    ["a page", (res: ServerResponse) => res.writeHead(200, { "content-type": "text/html" }).end("<p>Hello</p>")],
    [
      "another version",
      (res: ServerResponse) => res.writeHead(400).end('{"error":{"code":-32022,"data":{"supported":[1]}}}'),
    ],
  ])("may be an older one that answers `server/discover` with %s", async (_, refuse) => {
    await using server = await serveOld((message, res) => {
      if (message.method !== "server/discover") return false;
      refuse(res);
      return true;
    });
    const { waits, clock } = heldClock();
    await using files = open(server.reach, { clock });
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    // Its time to start begins again after the refusal.
    expect(waits.filter((ms) => ms === 10_000)).toHaveLength(2);
  });
});

describe("a server of 2025-11-25 whose session has ended", () => {
  it("is asked by `initialize` first", async () => {
    let isOver = false;
    await using server = await serveOld(({ method }, res) => {
      if (method === "server/discover" || (isOver && method === "tools/call")) {
        isOver = false;
        res.writeHead(404).end();
        return true;
      }
      return false;
    });
    await using files = open(server.reach);
    await files.names();
    isOver = true;
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    expect(server.count("initialize")).toBe(2);
    expect(server.count("server/discover")).toBe(1);
  });

  it("F09: MUST NOT delay a turn that is stopped while it starts again", async () => {
    const controller = new AbortController();
    let isOver = false;
    await using server = await serveOld(({ method }, res) => {
      if (isOver && method !== "tools/call") {
        controller.abort(new Error("stopped"));
        return true;
      }
      if (method !== "server/discover" && !isOver) return false;
      res.writeHead(404).end();
      return true;
    });
    await using files = open(server.reach);
    const [tool] = (await files.source.tools(signal, 0)).tools;
    isOver = true;
    await expect(tool?.call({ text: "a" }, controller.signal)).rejects.toThrow("stopped");
  });
});
