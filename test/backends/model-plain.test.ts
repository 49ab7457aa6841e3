import { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import type { BackendTurn } from "#backends/backend.ts";
import { BackendError } from "#kit/errors.ts";
import { modelAt, openModels } from "./model-kinds.ts";
import type { ModelStandIn } from "./stand-ins/model-answers.ts";
import { startChatCompletions } from "./stand-ins/openai.ts";
import { collect, textOf, turnOf } from "./suite.ts";

let standIn: ModelStandIn;
beforeAll(async () => {
  standIn = await startChatCompletions();
});
afterAll(() => standIn[Symbol.asyncDispose]());
beforeEach(() => standIn.reset());

type Settings = Parameters<typeof modelAt>[2];
const open = (settings: Settings = {}) =>
  openModels({ main: modelAt("openai-compatible", standIn.url, settings) }, { steps: 1 });
const run = (backend: ReturnType<typeof open>, turn: BackendTurn = turnOf()) =>
  collect(backend.run(turn, new AbortController().signal));
/** A backend whose first request the SDK has made already, so that it makes the next one itself. */
const openKnown = async (settings?: Settings) => {
  const backend = open(settings);
  await run(backend);
  standIn.reset();
  return backend;
};

const CONVERSATION: Partial<BackendTurn> = {
  instructions: 'Be kind, and say "hello" 🙂\n\u2028 \ud800 half.',
  history: async () => [
    { role: "user", text: "What is the largest planet?", outside: false },
    { role: "assistant", text: "Jupiter.", outside: false },
    { role: "user", text: "Seen from outside?", outside: true },
    { role: "assistant", text: "Still Jupiter.", outside: false },
  ],
};

it.each<[string, Settings]>([
  ["as it is", {}],
  ["with limits of its own", { maxOutputTokens: 100, temperature: 0.5 }],
  ["with options", { options: { seed: 7, reasoningEffort: "low" } }],
])("sends to the byte what the SDK sends, where it does without it: a model %s", async (_, settings) => {
  const known = await openKnown(settings);
  for (const turn of [turnOf(), turnOf(CONVERSATION)]) {
    standIn.reset();
    const bySdk = await run(open(settings), turn);
    const without = await run(known, turn);
    const [one, other] = standIn.seen.map(({ method, path, headers, text }) => ({ method, path, headers, text }));
    expect(other).toEqual(one);
    expect(textOf(without)).toBe(textOf(bySdk));
  }
});

it("asks the SDK for the first request alone, and for each that has options", async () => {
  const asked = vi.spyOn(OpenAICompatibleChatLanguageModel.prototype, "doStream");
  const [plain, optional] = [open(), open({ options: { seed: 7 } })];
  for (let n = 0; n < 3; n++) await run(plain);
  expect(asked).toHaveBeenCalledTimes(1);
  for (let n = 0; n < 3; n++) await run(optional);
  expect(asked).toHaveBeenCalledTimes(4);
  asked.mockRestore();
});

it("has the SDK read what is more than text, and asks no second time for it", async () => {
  const backend = await openKnown();
  standIn.say({ thought: "Hm.", text: ["Well", " then."] });
  expect(textOf(await run(backend))).toBe("Well then.");
  expect(standIn.seen).toHaveLength(1);
});

it("is told of a failure as it is", async () => {
  const backend = await openKnown();
  standIn.failNext("429 with Retry-After");
  await expect(run(backend)).rejects.toMatchObject({ retryable: true, retryAfterMs: 7_000 });
  standIn.failNext("401");
  await expect(run(backend)).rejects.toBeInstanceOf(BackendError);
  expect(textOf(await run(backend))).toContain("Good morning");
});

it("stops at its signal, and its provider sees it go", async () => {
  const backend = await openKnown();
  standIn.say({ text: ["One", " two"], paceMs: 5_000 });
  const controller = new AbortController();
  const running = collect(backend.run(turnOf(), controller.signal));
  const { left } = await standIn.next();
  controller.abort("cancelled");
  await expect(running).rejects.toBe("cancelled");
  expect(await left).toBe(true);
});
