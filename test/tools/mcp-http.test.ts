import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { openHttpTransport } from "#tools/mcp/http.ts";
import { ToolError } from "#tools/tool.ts";
import { open, signal } from "./open-tools.ts";
import { acknowledgementOf, answerOf, MODERN, requestOf } from "./stand-in-answers.mjs";

const OLD = "2025-11-25";

type Played = {
  how:
    | "json"
    | "stream"
    | "redirect"
    | "gzip"
    | "endless"
    | "refuse"
    | "html"
    | "crowd"
    | "half"
    | "latin"
    | "line"
    | "stuck"
    | "asks"
    | "lists"
    | "tells";
  /** The number of messages before its answer to a call. */
  count?: number;
  revision?: string;
};

/** An MCP server over streamable HTTP. */
async function serveAs({ how, count = 0, revision = OLD }: Played) {
  const seen: IncomingMessage["headers"][] = [];
  const left: string[] = [];
  /** The answers to its own requests. */
  const answers: unknown[] = [];
  let sessions = 0;
  let quiet = false;
  const gone = new Set<string>();
  const onRequest = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    seen.push(req.headers);
    if (req.method !== "POST") return void res.writeHead(405).end();
    const message = JSON.parse(await text(req)) as { id?: unknown; method: string; error?: { code: number } };
    if (message.method === undefined) {
      answers.push(message.error?.code);
      return void res.writeHead(202).end();
    }
    if (how === "refuse") return void res.writeHead(401).end("who are you?");
    if (how === "redirect") return void res.writeHead(307, { location: "http://127.0.0.1:9/" }).end();
    if (gone.has(String(req.headers["mcp-session-id"]))) return void res.writeHead(404).end();
    if (message.method === "subscriptions/listen") {
      res.writeHead(200, { "content-type": "text/event-stream" });
      return void res.write(`data: ${JSON.stringify(acknowledgementOf(message))}\n\n`);
    }
    const answer = answerOf(message, how === "crowd" ? "crowd" : "good", revision);
    if (!answer) return void res.writeHead(202).end();
    const session = message.method === "initialize" ? { "mcp-session-id": `s${++sessions}` } : {};
    if (how === "gzip") return void res.writeHead(200, { ...session, "content-encoding": "gzip" }).end("x");
    if (how === "endless" && message.method === "tools/list") {
      res.writeHead(200, { ...session, "content-type": "application/json" });
      const more = () => {
        if (!res.destroyed) res.write("x".repeat(1024 ** 2), () => setImmediate(more));
      };
      return more();
    }
    const head = { ...session, "content-type": "application/json" };
    const isCall = message.method === "tools/call";
    const words = JSON.stringify(answer);
    if (how === "html") return void res.writeHead(200, { "content-type": "text/html" }).end("<html>secret</html>");
    if (how === "half") return void res.writeHead(200, head).end(words.slice(0, -9));
    if (how === "latin" && isCall) {
      return void res.writeHead(200, head).end(Buffer.from(words.replace("You", "Y\u00fc"), "latin1"));
    }
    if (how === "line" && isCall) {
      res.writeHead(200, { ...session, "content-type": "text/event-stream" });
      const more = () => {
        if (!res.destroyed) res.write("x".repeat(1024 ** 2), () => setImmediate(more));
      };
      return void res.write("data: ", more);
    }
    if (how === "stuck" && isCall) {
      res.once("close", () => left.push(message.method));
      return void res.writeHead(200, { ...session, "content-type": "text/event-stream" }).flushHeaders();
    }
    if (isCall && count > 0 && !quiet) {
      const told = JSON.stringify({
        jsonrpc: "2.0",
        method: "notifications/message",
        params: { level: "info", data: "a" },
      });
      const sent = Array.from({ length: count }, (_, n) => (how === "tells" ? told : requestOf("roots/list", n)));
      if (how === "lists") return void res.writeHead(200, head).end(`[${[...sent, words].join()}]`);
      res.writeHead(200, { ...session, "content-type": "text/event-stream" });
      for (const one of sent) res.write(`event: message\ndata: ${one}\n\n`);
      return void res.end(`event: message\ndata: ${words}\n\n`);
    }
    const body = words;
    const isStream = how === "stream";
    res.writeHead(200, { ...session, "content-type": isStream ? "text/event-stream" : "application/json" });
    res.end(isStream ? `event: message\ndata: ${body}\n\n` : body);
  };
  const server: Server = createServer((req, res) => void onRequest(req, res));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    reach: { type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: { authorization: "Bearer t" } } as const,
    seen,
    answers,
    /** The requests whose connection the caller closed. */
    left,
    initialized: () => sessions,
    /** From now on it sends only its answers. */
    calm: () => {
      quiet = true;
    },
    expire: () => gone.add(`s${sessions}`),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe.each([OLD, MODERN])("an MCP server of %s over HTTP", (revision) => {
  const serve = (played: Played) => serveAs({ ...played, revision });

  it.each(["json", "stream"] as const)("is called, and answers as %s", async (how) => {
    await using server = await serve({ how });
    await using files = open(server.reach);
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    expect(server.seen.every(({ authorization }) => authorization === "Bearer t")).toBe(true);
  });

  it.each([
    ["redirect", "it answered 307, and redirects are not followed"],
    ["gzip", "it compressed its answer, although the request did not allow it"],
    ["endless", "it sent more than 4 MiB"],
    ["refuse", "it answered 401: who are you?"],
    ["crowd", "it sent more than 4 MiB"],
    ["html", "Unexpected content type: text/html"],
    ["half", "JSON"],
  ] as const)("that %ss is omitted with the reason", async (how, reason) => {
    await using server = await serve({ how });
    await using files = open(server.reach);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing[0]?.reason).toContain(reason);
  });

  it.each(["stream", "json"] as const)(
    "F35: MUST fail a call whose answer has too many values: in a %s",
    async (how) => {
      await using server = await serve({ how });
      await using files = open(server.reach);
      const reason = "The call failed: it sent a message that holds more than 100000 values, and was ended.";
      await expect(files.call("values")).rejects.toThrow(reason);
      expect(await files.call("say", { text: "a" })).toBe("You said a.");
    },
  );

  it("F28: also gets the hops in a header", async () => {
    await using server = await serve({ how: "json" });
    await using files = open(server.reach);
    await files.call("say", { text: "a" }, signal, 1);
    expect(server.seen.flatMap((headers) => headers["x-gateway-hops"] ?? [])).toEqual(["2"]);
  });

  it("F08: fails a call with an endless answer, and the connection of an answer that stops is closed", async () => {
    await using endless = await serve({ how: "line" });
    await using one = open(endless.reach, { callMs: 500 });
    await expect(one.call("say", { text: "a" })).rejects.toThrow(ToolError);
    await using stuck = await serve({ how: "stuck" });
    await using two = open(stuck.reach, { callMs: 1_000 });
    await expect(two.call("say", { text: "a" })).rejects.toThrow("it did not answer in time");
    // A connection that the client leaves open is closed when its time is over.
    const { transport, close } = openHttpTransport({
      ...stuck.reach,
      clock: systemClock,
      longestMs: 1_000,
      mayTell: () => true,
      refuse: () => {},
    });
    await transport.start();
    await transport.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "say", arguments: {} } });
    await expect.poll(() => stuck.left).toEqual(["tools/call"]);
    await close();
  });

  it.each([
    ["asks", "it sent too many requests of its own, and was ended"],
    ["tells", "it sent too many messages, and was ended"],
    ["lists", "it answered with more than 64 messages at once"],
  ] as const)(
    "F35: MUST be disconnected if it sends too much, and the next call opens a new connection: it %s",
    async (how, reason) => {
      const played: Played = { how, count: 20_000 };
      await using server = await serve(played);
      await using files = open(server.reach, { callMs: 60_000 });
      await expect(files.call("say", { text: "a" })).rejects.toThrow(`The call failed: ${reason}.`);
      expect(server.answers.length).toBeLessThanOrEqual(20);
      server.calm();
      expect(await files.call("say", { text: "a" })).toBe("You said a.");
    },
  );

  it("F34: MUST have the pieces of an answer joined, and a few lines passed on in each turn of the event loop", async () => {
    await using server = await serve({ how: "tells", count: 2_000 });
    const { transport, close } = openHttpTransport({
      ...server.reach,
      clock: systemClock,
      longestMs: 10_000,
      mayTell: () => true,
      refuse: () => {},
    });
    let [heard, inTurn, most] = [0, 0, 0];
    const count = () => {
      if (inTurn++ === 0) setImmediate(() => (inTurn = 0));
      [heard, most] = [heard + 1, Math.max(most, inTurn)];
    };
    transport.onmessage = count;
    await transport.start();
    await transport.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "say", arguments: {} } });
    await expect.poll(() => heard).toBe(2_001);
    expect(most).toBeLessThanOrEqual(8);
    await close();
  });

  it("F08: shows a model no invalid UTF-8 as text", async () => {
    await using server = await serve({ how: "latin" });
    await using files = open(server.reach);
    await expect(files.call("say", { text: "a" })).rejects.toThrow("it sent text that is not UTF-8");
  });

  it("that does not exist is omitted", async () => {
    const free = await serve({ how: "json" });
    await free[Symbol.asyncDispose]();
    await using files = open(free.reach);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "it cannot be reached: nothing listens at its address" }]);
    // Within the pause, a repeated call is not tried and not logged.
    await files.source.tools(signal, 0);
    expect(files.failures).toEqual(["it cannot be reached: nothing listens at its address"]);
  });
});

describe("an MCP server with sessions", () => {
  it.each(["asks", "lists"] as const)("F35: MUST be refused most requests of its own: it %s", async (how) => {
    await using server = await serveAs({ how, count: 3 });
    await using files = open(server.reach);
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    await expect.poll(() => server.answers).toEqual([-32601, -32601, -32601]);
  });

  it("gets a new session when its session has ended, for the same call", async () => {
    await using server = await serveAs({ how: "json" });
    await using files = open(server.reach);
    await files.names();
    server.expire();
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    expect(server.initialized()).toBe(2);
  });

  it("gets one new session for all calls that find the old one ended", async () => {
    await using server = await serveAs({ how: "json" });
    await using files = open(server.reach);
    await files.names();
    server.expire();
    const calls = ["a", "b", "c"].map((text) => files.call("say", { text }));
    expect(await Promise.all(calls)).toEqual(["You said a.", "You said b.", "You said c."]);
    expect(server.initialized()).toBe(2);
  });
});
