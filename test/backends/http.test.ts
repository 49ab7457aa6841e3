import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Chunk } from "#backends/backend.ts";
import { createHttpBackend, type HttpSettings } from "#backends/http/http.ts";
import { systemClock } from "#kit/clock.ts";
import { Stop } from "#kit/stop-signal.ts";
import { ENDLESS, FAULTS, type Fault, RAW } from "./stand-ins/faults.ts";
import { eventOf, replyTo, startHttpAgent, streamed, whole } from "./stand-ins/http-agent.ts";
import { startHttpStandIn } from "./stand-ins/http-stand-in.ts";
import { failureOf } from "./stand-ins/programs.ts";
import { backendSuite, collect, RICH_DOCUMENT, RICH_TURN, textOf, turnOf } from "./suite.ts";

const stream = await startHttpAgent("stream");
const slow = await startHttpAgent("stream", 150);
const paced = { stream: await startHttpAgent("stream", 10), json: await startHttpAgent("json", 0, () => sleep(30)) };
const json = await startHttpAgent("json");
const text = await startHttpAgent("text");
/** Answers as the test specifies. */
let next = whole({ reply: "" });
const any = await startHttpStandIn(() => next);
const opened: { close?(): Promise<void> }[] = [];
afterAll(async () => {
  const servers = [stream, slow, paced.stream, paced.json, json, text, any];
  for (const server of servers) await server[Symbol.asyncDispose]();
  for (const backend of opened) await backend.close?.();
});
afterEach(() => {
  for (const server of [stream, slow, json, text, any]) server.reset();
});

function open(url: string, more: Partial<HttpSettings> = {}) {
  const backend = createHttpBackend({
    agent: "main",
    models: undefined,
    url: `${url}/turns`,
    headers: {},
    secret: undefined,
    history: true,
    connectMs: 500,
    clock: systemClock,
    ...more,
  });
  opened.push(backend);
  return backend;
}
const never = new AbortController().signal;
function say(said: string) {
  return turnOf({ message: { text: said, outside: false, context: undefined } });
}
function run(url: string, turn = turnOf(), more: Partial<HttpSettings> = {}) {
  return collect(open(url, more).run(turn, never));
}

for (const [form, server] of Object.entries({ stream, json })) {
  backendSuite({
    name: `http (${form})`,
    open: async () => open(server.url),
    openSlow: async () => open(slow.url),
    openPaced: async () => open(paced[form as keyof typeof paced].url),
    openFailing: async () => {
      server.fail("500");
      return open(server.url);
    },
    deterministic: true,
  });
}

describe("the request to a service", () => {
  it("has the turn and the earlier messages", async () => {
    await run(stream.url, RICH_TURN);
    const { method, path, headers, json: body } = await stream.next();
    expect([method, path]).toEqual(["POST", "/turns"]);
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "accept-encoding": "identity",
      "idempotency-key": RICH_TURN.turnId,
      "user-agent": "agent-gateway",
    });
    expect(body).toEqual(RICH_DOCUMENT);
  });

  it("has no conversation if the service stores it, and the conversation is then not read", async () => {
    const history = () => Promise.reject(new Error("asked"));
    await run(stream.url, turnOf({ history }), { history: false });
    expect((await stream.next()).json).toMatchObject({ history: [], historyOmitted: 0 });
  });

  it("has the headers and the credentials of the configuration", async () => {
    await run(stream.url, turnOf(), { headers: { "X-Team": "blue", Accept: "text/plain" } });
    expect((await stream.next()).headers).toMatchObject({
      "x-team": "blue",
      accept: expect.stringContaining("event-stream"),
    });
    await run(stream.url.replace("//", "//me:p%40ss@"));
    expect((await stream.next()).headers.authorization).toBe(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
  });

  it("is signed with Standard Webhooks if there is a secret", async () => {
    const secret = `whsec_${createHash("sha256").update("secret").digest("base64")}`;
    await run(stream.url, turnOf(), { secret });
    const { headers, text: sent } = await stream.next();
    expect(headers["webhook-id"]).toBe("turn_1");
    expect(new Webhook(secret).verify(sent, headers as Record<string, string>)).toMatchObject({ kind: "turn" });
    await run(stream.url);
    expect((await stream.next()).headers).not.toHaveProperty("webhook-signature");
  });

  it("uses the same connection turn after turn", async () => {
    const backend = open(stream.url);
    const before = stream.connections();
    for (let n = 0; n < 5; n++) await collect(backend.run(say(`${n}`), never));
    // The next one may start while the last answer is ending.
    expect(stream.connections() - before).toBeLessThan(3);
  });
});

describe("a silent service", () => {
  it("has failed, and gets no requests for a while after five such turns", async () => {
    const backend = open(any.url);
    any.fail("hang before the first byte");
    const begin = () => {
      const stop = new Stop();
      return { stop, reply: collect(backend.run(say("hi"), stop)) };
    };
    for (let n = 0; n < 5; n++) {
      const { stop, reply } = begin();
      stop.abort("silence");
      await expect(reply).rejects.toBe("silence");
    }
    await expect(begin().reply).rejects.toMatchObject({
      message: expect.stringContaining("gets no requests"),
      retryable: true,
    });
  });
});

describe("the answer of a service", () => {
  it("is passed on as it arrives, with its usage", async () => {
    const chunks = await run(slow.url, say("hi"));
    expect(textOf(chunks)).toBe(replyTo("hi"));
    expect(chunks.filter((chunk) => "text" in chunk).length).toBeGreaterThan(1);
    expect(chunks).toContainEqual({ alive: true });
    expect(chunks.at(-1)).toEqual({ usage: { input: 7, output: 6, cached: 2, reasoning: undefined } });
  });

  it("may be JSON or plain text", async () => {
    expect(await run(json.url, say("hi"))).toEqual([
      { text: replyTo("hi") },
      { usage: { input: 7, output: 4, cached: undefined, reasoning: undefined } },
    ]);
    // The service reports no usage, which is different from a usage of 0.
    expect(await run(text.url, say("hi"))).toEqual([
      { text: replyTo("hi") },
      { note: { name: "usage.unknown", detail: { reason: "the agent's service does not report its token usage" } } },
      { usage: { input: 0, output: 0 } },
    ]);
  });

  it("is read however its bytes are split", async () => {
    const bytes = Buffer.from(
      `:\r\n\r\nid: 7\nretry: 5\nevent: delta\r\ndata: {"text":\r\ndata: "ä🙂 "}\r\n\r\n${eventOf("", { text: "b" })}` +
        `event: ping\ndata: not ours\n\ndata:{"text":"\\ufffd\ufffd"}\n\nevent: done\ndata: {"usage":{"input":1,"output":2}}\n\n`,
    );
    for (const size of [1, 2, 3, 7, 64, bytes.length]) {
      const body = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      next = { headers: { "content-type": "Text/Event-Stream; charset=utf-8" }, body };
      const chunks = await run(any.url);
      expect(textOf(chunks), `in pieces of ${size}`).toBe("ä🙂 b\ufffd\ufffd");
      expect(chunks.at(-1)).toMatchObject({ usage: { input: 1, output: 2 } });
    }
  });

  it("is one piece if it was received at once, and its other events remain in order", async () => {
    const deltas = (...texts: string[]) => texts.map((text) => eventOf("delta", { text })).join("");
    const usage = { input: 1, output: 2 };
    const end = eventOf("usage", { usage }) + deltas("e") + eventOf("done", { usage });
    const body = [":\n\n", deltas("a", "b"), ":\n\n", eventOf("ping", {}), deltas("c", "", "d"), end].join("");
    next = { headers: { "content-type": "text/event-stream" }, body: [body] };
    expect(await run(any.url)).toEqual([{ alive: true }, { text: "abcd" }, { usage }, { text: "e" }, { usage }]);
  });

  it("is passed on up to the failing event", async () => {
    const fine = eventOf("delta", { text: "good " }) + eventOf("delta", { text: "morning" });
    for (const failing of [eventOf("error", { error: { message: "the lamp went out" } }), "data: garbage\n\n"]) {
      next = { headers: { "content-type": "text/event-stream" }, body: [fine + failing + eventOf("done", {})] };
      const chunks: Chunk[] = [];
      const reading = async () => {
        for await (const chunk of open(any.url).run(turnOf(), never)) chunks.push(chunk);
      };
      await failureOf(reading());
      expect(chunks).toEqual([{ text: "good morning" }]);
    }
  });

  it("ends with `done`, whatever follows", async () => {
    next = streamed("good morning");
    next = { ...next, body: [...next.body, eventOf("delta", { text: "more" }), "garbage", eventOf("error", {})] };
    expect(textOf(await run(any.url))).toBe("good morning");
  });

  it("may name the model", async () => {
    next = whole({ reply: "hi", model: "big" });
    expect(await run(any.url)).toContainEqual({ model: "big" });
  });
});

describe("a failing service", () => {
  it("F34: MUST fail if its answer would block others while it is parsed", async () => {
    const values = `[${"0,".repeat(100_000)}0]`;
    const many = "the agent's answer holds more than 100000 values";
    next = { headers: { "content-type": "application/json" }, body: [`{"reply":"a","more":${values}}`] };
    expect(await failureOf(run(any.url))).toMatchObject({ name: "BackendError", message: many });
    next = { headers: { "content-type": "text/event-stream" }, body: [`data: {"text":"a","more":${values}}\n\n`] };
    expect(await failureOf(run(any.url))).toMatchObject({ message: many });
    const nested = `{"reply":"hi","more":${"[".repeat(2_000)}${"]".repeat(2_000)}}`;
    next = { headers: { "content-type": "application/json" }, body: [nested] };
    expect((await failureOf(run(any.url))).message).toBe("the agent's answer is nested deeper than 1000 levels");
  });

  it.each((Object.keys(FAULTS) as Fault[]).filter((fault) => !ENDLESS.includes(fault)))(
    "fails with %s, in words of ours, and the next turn is answered",
    async (fault) => {
      // The core ends an endless stream, at 4 MiB of text.
      for (const server of fault === "100 MB" ? [json] : [stream, json]) {
        server.failNext(fault);
        const backend = open(server.url);
        const error = await failureOf(collect(backend.run(say("good morning to all of you"), never)));
        expect(error).toMatchObject({ name: "BackendError" });
        expect(error.message).toMatch(/service|lamp/);
        for (const raw of [RAW, "sk-secret", "Bad Gateway", "169.254"]) expect(error.message).not.toContain(raw);
        expect(error.message.length).toBeLessThan(200);
        expect(textOf(await collect(backend.run(say("hi"), never)))).toBe(replyTo("hi"));
      }
    },
  );
});
