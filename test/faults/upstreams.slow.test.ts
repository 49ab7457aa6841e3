import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { queryObjects } from "node:v8";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createLiveReplies, readSince } from "#core/turns/live-replies.ts";
import { systemClock } from "#kit/clock.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { createLineCutter } from "#kit/programs/lines.ts";
import { outputOf } from "#kit/programs/output.ts";
import type { RunningProgram } from "#kit/programs/start.ts";
import { ask, MIB, openAgent } from "#outbound/ask.ts";
import { eventsOf, type Sent } from "#outbound/server-events.ts";
import { KINDS, modelAt, openModels } from "#test/backends/model-kinds.ts";
import { startRaw } from "#test/backends/stand-ins/raw-server.ts";
import { turnOf } from "#test/backends/suite.ts";
import { startGateway } from "#test/harness/gateway.ts";

const PIECES = 100_000;
/** The number of buffers that other parts may hold meanwhile. */
const FEW = 10_000;
/** The limit for reading one connection in one turn of the event loop. */
const TURN_BYTES = 128 * 1024;

function buffers() {
  return queryObjects(Buffer, { format: "count" });
}
/** It scans the complete heap, which takes a second. */
const others = buffers();
function turn() {
  return new Promise<void>((resolve) => setImmediate(resolve));
}

/** Counts something in each turn of the event loop; returns the largest number of one turn. */
function mostOfATurn(count: () => number): () => number {
  let [last, most, isOver] = [count(), 0, false];
  const look = () => {
    const now = count();
    most = Math.max(most, now - last);
    last = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isOver = true;
    look();
    return most;
  };
}

function head(type: string) {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`;
}
function chunk(text: string) {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
const LAST = "0\r\n\r\n";
function piece(content: string) {
  return `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`;
}
const MODEL_END = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const SERVICE_END = 'data: {"text":"all"}\n\nevent: done\ndata: {}\n\n';
const [MODEL_FROM, MODEL_TO] = piece("|").split("|") as [string, string];

/** The bytes of an upstream: the beginning, a piece that repeats, and the end. `reply` is the result. */
const ANSWERS = {
  "an agent's JSON": { agent: "http", type: "application/json", from: '{"reply":"', one: "a", to: '"}' },
  "an agent's text": { agent: "http", type: "text/plain", from: "", one: "a", to: "" },
  "an agent's event": {
    agent: "http",
    type: "text/event-stream",
    from: 'data: {"text":"',
    one: "a",
    to: `"}\n\n${SERVICE_END}`,
  },
  "an agent's comments": { agent: "http", type: "text/event-stream", from: "", one: ":\n\n", to: SERVICE_END },
  "a model's event": {
    agent: "model",
    type: "text/event-stream",
    from: MODEL_FROM,
    one: "a",
    to: MODEL_TO + MODEL_END,
  },
  "a model's comments": {
    agent: "model",
    type: "text/event-stream",
    from: "",
    one: ":\n\n",
    to: piece("all") + MODEL_END,
  },
  "an A2A agent's card": { agent: "a2a", type: "application/json", from: '{"name":"', one: "a", to: '"}' },
};

describe("F34: an upstream that answers in tiny pieces", async () => {
  let sockets: Socket[] = [];
  const onSocket = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
  const bytesRead = () => sockets.reduce((all, { bytesRead }) => all + bytesRead, 0);
  const raw = await startRaw();
  const gateway = await startGateway({
    config: {
      gateway: { defaultAgent: "http" },
      providers: {
        tiny: { type: "openai-compatible", baseUrl: `${raw.url}${KINDS["openai-compatible"].base}`, apiKey: "key" },
      },
      agents: {
        http: { backend: "http", http: { url: raw.url } },
        model: { backend: "model", models: { main: { provider: "tiny", model: "the-model" } } },
        a2a: { backend: "a2a", a2a: { url: raw.url } },
      },
    },
  });
  afterAll(async () => {
    unsubscribe("net.client.socket", onSocket);
    await gateway[Symbol.asyncDispose]();
    await raw[Symbol.asyncDispose]();
  });
  beforeAll(() => subscribe("net.client.socket", onSocket));
  afterEach(() => {
    for (const socket of raw.sockets.splice(0)) socket.destroy();
    sockets = [];
  });

  it.each(Object.entries(ANSWERS))("MUST have its pieces joined, and yield to other turns: %s", async (_, answer) => {
    const { agent, type, from, one, to } = answer;
    const pieces = Array.from(one, chunk)
      .join("")
      .repeat(Math.ceil(PIECES / one.length));
    const begun = head(type) + (from && chunk(from)) + pieces;
    raw.say({ bytes: begun });
    const most = mostOfATurn(bytesRead);
    const sent = gateway.rest.call("chat.send", { body: { message: "hello", agent } });
    await expect.poll(bytesRead).toBeGreaterThanOrEqual(begun.length);
    await turn();
    expect(buffers() - others).toBeLessThan(FEW);
    // The connection of an A2A agent is read in larger parts, and a few pieces are passed on in each turn: see below.
    if (agent !== "a2a") expect(most()).toBeLessThanOrEqual(TURN_BYTES);
    raw.sockets.at(-1)?.write((to && chunk(to)) + LAST);
    const { json, problem } = await sent;
    if (agent === "a2a") expect(problem.detail).toContain("has no agent card");
    else expect(String(json.reply).replace("all", "")).toBe(one === "a" ? "a".repeat(PIECES) : "");
  });
});

describe("F34: tiny pieces", () => {
  it("MUST be read a few at a time in each turn of the event loop", async () => {
    await using raw = await startRaw();
    raw.say({ bytes: head("application/json") + chunk("a").repeat(PIECES) + LAST });
    const agent = openAgent(1_000);
    const request = { origin: raw.url, path: "/", method: "GET", headers: {} } as const;
    const answer = await ask(agent, "it", request, undefined);
    let bytes = 0;
    const most = mostOfATurn(() => bytes);
    for (let piece = await answer.next(MIB); piece; piece = await answer.next(MIB)) bytes += piece.length;
    expect(bytes).toBe(PIECES);
    expect(most()).toBeLessThanOrEqual(TURN_BYTES);
    await agent.close();
  });
});

describe("F34: many small events that arrive at once", () => {
  it("MUST be read from a model a few at a time in each turn of the event loop", async () => {
    await using raw = await startRaw();
    // The model's reasoning arrives with the text.
    const event = 'data: {"choices":[{"delta":{"content":"a","reasoning_content":"b"}}]}\n\n';
    raw.say({ bytes: `${head("text/event-stream")}${chunk(event.repeat(1_000) + MODEL_END)}${LAST}` });
    const backend = openModels({ main: modelAt("openai-compatible", raw.url) });
    let text = "";
    const most = mostOfATurn(() => text.length);
    for await (const chunk of backend.run(turnOf(), new AbortController().signal))
      if ("text" in chunk) text += chunk.text;
    expect(text).toBe("a".repeat(1_000));
    expect(most()).toBeLessThanOrEqual(256);
    await backend.close?.();
  });

  it("MUST be read from a program a few at a time in each turn of the event loop", async () => {
    const stdout = new PassThrough();
    const ended = new Promise<never>(() => {});
    stdout.end("{}\n".repeat(20_000));
    let read = 0;
    const most = mostOfATurn(() => read);
    for await (const bytes of outputOf({ stdout, ended } as unknown as RunningProgram, systemClock))
      read += bytes.length;
    expect(read).toBe(60_000);
    expect(most()).toBeLessThanOrEqual(8 * 1024);
  });
});

describe("F34: a text of tiny pieces", () => {
  it("MUST have the same bytes, in a buffer of at most twice their limit", () => {
    for (const size of [1, 3, 7, 8, 100]) {
      const joined = new JoinedBytes(1_000);
      const whole = Buffer.from(Array.from({ length: 1_000 }, (_, n) => n % 251));
      for (let from = 0; from < 1_000; from += size) joined.add(whole, from, Math.min(1_000, from + size));
      const all = joined.take();
      expect(all.equals(whole)).toBe(true);
      expect(all.buffer.byteLength === 8 * 1024 || all.buffer.byteLength <= 2_000).toBe(true);
      expect(joined.take()).toHaveLength(0);
    }
  });

  it("MUST have no buffer for each piece of a line of a program", () => {
    const lines = createLineCutter(1024 * 1024);
    for (let n = 0; n < PIECES; n++)
      for (const line of lines.push(Buffer.from("a"))) throw new Error(`a line: ${line}`);
    expect(buffers() - others).toBeLessThan(FEW);
    expect(lines.rest()).toHaveLength(PIECES);
  });

  it("MUST have no text for each line of an event, and one sign of life for many comments", async () => {
    const read = async (...pieces: string[]) => {
      const sent: Sent[] = [];
      const left = pieces.map((piece) => Buffer.from(piece, "latin1"));
      const answer = { who: "it", next: async () => left.shift() };
      for await (const events of eventsOf(answer, MIB)) sent.push(...events);
      return sent;
    };
    const all = `${":\n\n".repeat(1_000)}data: first\n${"data:\n".repeat(1_000)}data: last\n\n`;
    expect(await read(all)).toEqual(["comment", { name: "", id: undefined, data: `first${"\n".repeat(1_001)}last` }]);
    await expect(read("data:\ndata: \xff\n\n")).rejects.toThrow("not UTF-8");
    await expect(read(...Array(65).fill("data:\n".repeat(16 * 1024)))).rejects.toThrow("longer than 1 MiB");
  });

  it("MUST be a few texts of a reply, whatever pieces it arrived in", () => {
    const live = createLiveReplies();
    const reply = live.open("turn", "session", "message", 1);
    for (let n = 0; n < PIECES; n++) live.append(reply, "ab");
    expect(reply.pieces.length).toBeLessThan(2_000);
    expect(reply.pieces.join("")).toBe("ab".repeat(PIECES));
    expect(readSince(reply, reply.length - 3)).toBe("bab");
    expect(readSince(reply, 1)).toHaveLength(reply.length - 1);
  });
});
