import { inspect } from "node:util";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { type A2aSettings, createA2aBackend } from "#backends/a2a/a2a.ts";
import { systemClock } from "#kit/clock.ts";
import { type A2aForm, type Plan, startA2aAgent } from "./stand-ins/a2a-agent.ts";
import { ENDLESS, FAULTS, type Fault, RAW } from "./stand-ins/faults.ts";
import { failureOf } from "./stand-ins/programs.ts";
import { backendSuite, collect, textOf, turnOf } from "./suite.ts";

const never = new AbortController().signal;
let plan: Plan | undefined;
function planned(text: string): Plan {
  return plan ?? { says: ["You said: ", text, " That is all."] };
}
const FORMS: Record<string, A2aForm> = {
  "JSON-RPC, streamed": { binding: "JSONRPC", streaming: true },
  "JSON-RPC, whole": { binding: "JSONRPC", streaming: false },
  "HTTP+JSON, streamed": { binding: "HTTP+JSON", streaming: true },
  "HTTP+JSON, whole": { binding: "HTTP+JSON", streaming: false },
};
async function start(form: A2aForm) {
  return await startA2aAgent(form, planned);
}
const servers: Record<string, Awaited<ReturnType<typeof start>>> = {};
for (const [name, form] of Object.entries(FORMS)) servers[name] = await start(form);
const slow = await startA2aAgent({ binding: "JSONRPC", streaming: true, paceMs: 100 });
const paced = await startA2aAgent({ binding: "JSONRPC", streaming: true, paceMs: 10 });
const all = [...Object.values(servers), slow, paced];
const streamed = servers["JSON-RPC, streamed"] as (typeof all)[number];
const whole = servers["JSON-RPC, whole"] as (typeof all)[number];
const opened: { close?(): Promise<void> }[] = [];
afterAll(async () => {
  for (const server of all) await server[Symbol.asyncDispose]();
  for (const backend of opened) await backend.close?.();
});
afterEach(() => {
  plan = undefined;
  for (const server of all) server.reset();
});

function open(url: string, more: Partial<A2aSettings> = {}) {
  const backend = createA2aBackend({ url, headers: {}, connectMs: 500, clock: systemClock, ...more });
  opened.push(backend);
  return backend;
}
function say(text: string, more = {}) {
  return turnOf({ message: { text, outside: false, context: undefined }, ...more });
}
function run(url: string, turn = say("hi"), more: Partial<A2aSettings> = {}) {
  return collect(open(url, more).run(turn, never));
}

backendSuite({
  name: "a2a",
  open: async () => open(streamed.url),
  openSlow: async () => open(slow.url),
  openPaced: async () => open(paced.url),
  openFailing: async () => {
    streamed.fail("500");
    return open(streamed.url);
  },
  deterministic: true,
});

describe.each(Object.keys(FORMS))("an A2A agent over %s", (form) => {
  const server = servers[form] as (typeof all)[number];

  it("answers with the artifacts of its task", async () => {
    const chunks = await run(server.url);
    expect(textOf(chunks)).toBe("You said: hi That is all.");
    // The agent reports no usage, which is different from a usage of 0.
    expect(chunks.slice(-2)).toEqual([
      { note: { name: "usage.unknown", detail: { reason: "the remote agent does not report its token usage" } } },
      { usage: { input: 0, output: 0 } },
    ]);
    const [card, call] = server.seen;
    expect(card).toMatchObject({ method: "GET", path: "/.well-known/agent-card.json" });
    expect(call?.headers).toMatchObject({ "a2a-version": "1.0", "accept-encoding": "identity" });
  });

  it("reports usage if the agent does, in various formats", async () => {
    const whole = { input: 5, output: 4, cached: 2 };
    for (const [metadata, usage] of [
      [{ usage: { input: 5, output: 4, cached: 2 } }, whole],
      [{ usage: { prompt_tokens: 5, completion_tokens: 4, cached_tokens: 2 } }, whole],
      [
        { adk_usage_metadata: { promptTokenCount: 5, candidatesTokenCount: 4, thoughtsTokenCount: 1 } },
        { input: 5, output: 4, reasoning: 1 },
      ],
      [{ usage: { output_tokens: 4 } }, { input: 0, output: 4 }],
    ] as const) {
      for (const isMessage of [true, false]) {
        plan = { says: ["Hi."], metadata, isMessage };
        const chunks = await run(server.url);
        expect(chunks.at(-1)).toEqual({ usage });
        expect(chunks.filter((chunk) => "note" in chunk)).toEqual([]);
      }
    }
    for (const usage of [{ input: -5, output: 1.5 }, { input: "5" }, null, [7], "7"]) {
      plan = { says: ["Hi."], metadata: { usage } };
      expect((await run(server.url)).slice(-2)).toMatchObject([{ note: {} }, { usage: { input: 0, output: 0 } }]);
    }
  });

  it("answers with a message instead of a task", async () => {
    plan = { says: ["Hello."], isMessage: true };
    expect(textOf(await run(server.url))).toBe("Hello.");
  });

  it("answers with its last status message if it made no artifact", async () => {
    plan = { says: [], words: "Nothing to do." };
    expect(textOf(await run(server.url))).toBe("Nothing to do.");
  });

  it.each([
    ["FAILED", "the remote agent failed: the lamp went out"],
    ["REJECTED", "the remote agent refuses this message: the lamp went out"],
    ["CANCELED", "the remote agent cancelled its task: the lamp went out"],
    ["AUTH_REQUIRED", "the remote agent requires credentials that are not configured: the lamp went out"],
  ])("fails with its own message if its task is %s", async (ends, message) => {
    plan = { says: [], ends, words: "the lamp\nwent out" };
    expect(await failureOf(run(server.url))).toMatchObject({ name: "BackendError", message, retryable: false });
  });
});

describe("a conversation with an A2A agent", () => {
  it("has the same context in every turn of a session, and another one in another session or with other credentials", async () => {
    const key = { authorization: "Bearer one" };
    await run(streamed.url, say("a"), { headers: key });
    await run(streamed.url, say("b", { turnId: "turn_2" }), { headers: key });
    await run(streamed.url, say("c", { sessionId: "chat:b" }), { headers: key });
    await run(streamed.url, say("d"), { headers: { authorization: "Bearer two" } });
    const [one, two, three, four] = streamed.messages();
    expect(one?.contextId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(two).toMatchObject({ contextId: one?.contextId, messageId: "turn_2" });
    expect(new Set([one, three, four].map((message) => message?.contextId)).size).toBe(3);
  });

  it("continues the task that required more input", async () => {
    const backend = open(streamed.url);
    plan = { says: [], ends: "INPUT_REQUIRED", words: "Which city?" };
    expect(textOf(await collect(backend.run(say("weather"), never)))).toBe("Which city?");
    plan = undefined;
    await collect(backend.run(say("Bern"), never));
    await collect(backend.run(say("thanks"), never));
    const [asked, answered, after] = streamed.messages();
    expect([asked?.taskId ?? "", after?.taskId ?? ""]).toEqual(["", ""]);
    expect(answered?.taskId).toMatch(/^task-/);
  });

  it("fails if more input is required without a description", async () => {
    plan = { says: [], ends: "INPUT_REQUIRED" };
    expect((await failureOf(run(streamed.url))).message).toBe(
      "the remote agent asks for more input without a question",
    );
  });

  it("polls a task until it is completed", async () => {
    plan = { says: ["Done."], polls: 2 };
    const chunks = await run(whole.url);
    expect(chunks.filter((chunk) => "alive" in chunk)).toHaveLength(2);
    expect(textOf(chunks)).toBe("Done.");
  });

  it("sends instructions, skills and context, and marks text from outside", async () => {
    const turn = turnOf({
      instructions: "Be kind.",
      skills: [{ skillId: "sums", body: "How to add." }],
      message: { text: "two and two?", outside: true, context: '{"a":1}' },
    });
    await run(streamed.url, turn);
    const texts = streamed.messages()[0]?.parts.map(({ text }) => text ?? "") ?? [];
    expect(texts[0]).toBe("Be kind.");
    expect(texts.join("\n")).toContain("Use this skill, sums:\n\nHow to add.");
    expect(texts.at(-1)).toMatch(/^The message\..*\n<outside-[0-9a-f]+>\ntwo and two\?\n<\/outside-/);
  });

  it("sends the messages from before the session, which the agent does not know", async () => {
    const instructions = { role: "system", text: "Be brief.", outside: false, instructions: true } as const;
    const earlier = [instructions, { role: "user", text: "Hello", outside: false } as const];
    await run(streamed.url, say("And now?", { earlier, instructions: "Be kind." }));
    // A caller's instructions follow the agent's own, and are not part of the conversation.
    expect(
      streamed
        .messages()[0]
        ?.parts.map(({ text }) => text)
        .slice(0, 2),
    ).toEqual(["Be kind.", "Be brief."]);
    expect(streamed.messages()[0]?.parts).toHaveLength(4);
    const texts = streamed
      .messages()[0]
      ?.parts?.map((part) => JSON.stringify(part))
      .join("\n");
    expect(texts).toMatch(/you are the assistant:.*Hello.*And now\?/s);
  });

  it("cancels its task at the agent when its turn is cancelled", async () => {
    const controller = new AbortController();
    const chunks = open(slow.url).run(say("hi"), controller.signal)[Symbol.asyncIterator]();
    for (let n = 0; n < 2; n++) await chunks.next();
    const [, streaming] = slow.seen;
    controller.abort("cancelled");
    await chunks.next().catch(() => undefined);
    expect(await streaming?.left).toBe(true);
    await expect.poll(() => slow.seen.map(({ json }) => json.method)).toContain("CancelTask");
  });
});

describe("an A2A agent that does not end its stream", () => {
  it("has answered with the end of its task, and its connection is closed", async () => {
    plan = { says: ["Done."], staysOpen: true };
    expect(textOf(await run(streamed.url))).toBe("Done.");
    expect(await streamed.seen.at(-1)?.left).toBe(true);
  });
});

describe("the card of an A2A agent", () => {
  const cards = () => streamed.seen.filter(({ method }) => method === "GET").length;

  it("is read once for many turns, and again after a failure", async () => {
    const backend = open(streamed.url);
    for (let n = 0; n < 3; n++) await collect(backend.run(say("hi"), never));
    expect(cards()).toBe(1);
    streamed.failNext("500");
    expect(await failureOf(collect(backend.run(say("hi"), never)))).toBeDefined();
    await collect(backend.run(say("hi"), never));
    expect(cards()).toBe(2);
  });

  it.each([
    [
      "another host",
      {
        supportedInterfaces: [
          { url: "http://169.254.169.254/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        ],
      },
      "another host",
    ],
    [
      "another version",
      { supportedInterfaces: [{ url: "http://127.0.0.1/", protocolBinding: "JSONRPC", protocolVersion: "0.3" }] },
      "supports neither",
    ],
    ["no interface", { supportedInterfaces: undefined, url: "http://127.0.0.1/" }, "no agent card of A2A 1.0"],
  ])("is refused with %s", async (_, more, words) => {
    await using other = await start({ binding: "JSONRPC", streaming: true });
    other.setCard(more);
    expect((await failureOf(run(other.url))).message).toContain(words);
  });
});

describe("a failing A2A agent", () => {
  it.each((Object.keys(FAULTS) as Fault[]).filter((fault) => !ENDLESS.includes(fault)))(
    "fails with %s, in words of ours, and the next turn is answered",
    async (fault) => {
      // The core ends an endless stream, at 4 MiB of text.
      const streams = fault === "100 MB" ? [] : [streamed, servers["HTTP+JSON, streamed"] as typeof whole];
      for (const server of [whole, ...streams]) {
        const backend = open(server.url);
        await collect(backend.run(say("hi"), never));
        server.failNext(fault);
        const error = await failureOf(collect(backend.run(say("good morning to all of you"), never)));
        expect(error, server === whole ? "whole" : "streamed").toMatchObject({ name: "BackendError" });
        expect(error.message).toMatch(/^the remote agent /);
        for (const raw of [RAW, "raw-words", "sk-secret", "Bad Gateway", "169.254"])
          expect(error.message).not.toContain(raw);
        // The log has the cause, too.
        expect(inspect(error, { depth: 8 })).not.toContain("sk-secret");
        expect(textOf(await collect(backend.run(say("hi"), never)))).toBe("You said: hi That is all.");
      }
    },
  );
});
