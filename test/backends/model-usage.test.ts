import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Chunk } from "#backends/backend.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { KIND_NAMES, KINDS, type KindName, modelAt, openModels } from "./model-kinds.ts";
import { USAGE } from "./stand-ins/model-answers.ts";
import { collect, turnOf } from "./suite.ts";

const PIECE = "x".repeat(3_429);
/** These report the input with the first piece. */
const TELLS_INPUT: readonly KindName[] = ["anthropic", "google"];

function lastUsage(chunks: readonly Chunk[]) {
  return chunks.flatMap((chunk) => ("usage" in chunk ? [chunk.usage] : [])).at(-1);
}

/** The chunks of a run that fails or is stopped. `onText` is called for each one with text. */
async function collectAll(run: AsyncIterable<Chunk>, onText = () => {}) {
  const chunks: Chunk[] = [];
  try {
    for await (const chunk of run) {
      chunks.push(chunk);
      if ("text" in chunk) onText();
    }
  } catch {
    // It was stopped.
  }
  return chunks;
}

describe.each(KIND_NAMES)("the usage of a turn of the type %s that did not end normally", async (kind) => {
  const standIn = await KINDS[kind].start();
  const gateway = await startGateway({
    config: {
      gateway: { defaultAgent: "main" },
      providers: { theirs: { type: kind, baseUrl: `${standIn.url}${KINDS[kind].base}`, apiKey: "key-of-the-tests" } },
      agents: { main: { backend: "model", models: { only: { provider: "theirs", model: "the-model" } } } },
    },
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await standIn[Symbol.asyncDispose]();
  });
  afterEach(() => standIn.reset());
  const open = () => openModels({ main: modelAt(kind, standIn.url) });

  it.each(["the first", "another"])(
    "F09: is the received part of its reply when it is cancelled: %s of a gateway",
    async () => {
      standIn.say({ text: Array.from({ length: 14 }, () => PIECE) });
      standIn.failNext("hang in the middle");
      const { rest } = gateway;
      const stream = await rest.stream("chat.send", { body: { message: "one" } });
      let turnId = "";
      let length = 0;
      for await (const { event, data } of stream.events) {
        const { turn_id, text = "" } = data as { turn_id?: string; text?: string };
        turnId ||= String(turn_id ?? "");
        if (event === "message.delta") length += text.length;
        if (length >= 3 * PIECE.length) break;
      }
      await rest.call("turns.cancel", { path: { turn_id: turnId } });
      expect(await standIn.seen.at(-1)?.left).toBe(true);
      const { json } = await rest.call("turns.get", { path: { turn_id: turnId } });
      const { status, reply, usage } = json as {
        status: string;
        reply: string;
        usage: { input: number; output: number };
      };
      expect(status).toBe("cancelled");
      expect(reply.length).toBeGreaterThanOrEqual(3 * PIECE.length);
      expect(usage.output).toBe(Math.ceil(reply.length / 4));
      if (TELLS_INPUT.includes(kind)) expect(usage.input).toBe(USAGE.input);
      else expect(usage.input).toBeGreaterThan(0);
    },
  );

  it("includes its reasoning, and the usage that its provider reported", async () => {
    standIn.say({ thought: "hm, ".repeat(1_000), text: Array.from({ length: 14 }, () => PIECE) });
    standIn.failNext("hang in the middle");
    const controller = new AbortController();
    const running = open().run(turnOf(), controller.signal);
    // Its SDK reads events without text a little later.
    const chunks = await collectAll(running, () => setTimeout(() => controller.abort("cancelled"), 50));
    const said = chunks.reduce((sum, chunk) => sum + ("text" in chunk ? chunk.text.length : 0), 0);
    // OpenAI does not return the reasoning of its models.
    const thought = kind === "openai" ? 0 : 4_000;
    expect(running.used?.()?.output).toBe((said + thought + 3) >> 2);
  });

  it("is the received part before its provider disconnected", async () => {
    standIn.say({ text: Array.from({ length: 14 }, () => PIECE) });
    standIn.failNext("reset in the middle");
    const running = open().run(turnOf(), new AbortController().signal);
    const chunks = await collectAll(running);
    const said = chunks.reduce((sum, chunk) => sum + ("text" in chunk ? chunk.text.length : 0), 0);
    expect(running.used?.()?.output).toBe(Math.ceil(said / 4));
    if (TELLS_INPUT.includes(kind)) expect(running.used?.()?.input).toBe(USAGE.input);
  });

  it("is empty for a call that never started, and the provider's count for one that ended", async () => {
    standIn.failNext("reset before the answer");
    const running = open().run(turnOf(), new AbortController().signal);
    expect(lastUsage(await collectAll(running))).toBeUndefined();
    const whole = await collect(open().run(turnOf(), new AbortController().signal));
    expect(lastUsage(whole)).toMatchObject({ input: USAGE.input, output: USAGE.output });
  });
});
