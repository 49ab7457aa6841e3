import type { Chunk } from "#backends/backend.ts";
import type { ModelBackendSettings } from "#backends/model/model.ts";
import { createModelBackend } from "#backends/model/model.ts";
import type { ModelSettings, ProviderSettings } from "#backends/model/model-table.ts";
import { systemClock } from "#kit/clock.ts";
import type { BackendError } from "#kit/errors.ts";
import { startAnthropic } from "./stand-ins/anthropic.ts";
import { startGoogle } from "./stand-ins/google.ts";
import type { ModelAnswer, ModelStandIn } from "./stand-ins/model-answers.ts";
import { startChatCompletions, startResponses } from "./stand-ins/openai.ts";

/** Every kind of provider, with its stand-in, and the path of its API. */
export const KINDS = {
  openai: { start: startResponses, base: "/v1", path: "/v1/responses" },
  anthropic: { start: startAnthropic, base: "/v1", path: "/v1/messages" },
  google: { start: startGoogle, base: "/v1beta", path: "/v1beta/models/the-model:streamGenerateContent?alt=sse" },
  "openai-compatible": { start: startChatCompletions, base: "/v1", path: "/v1/chat/completions" },
} satisfies Record<
  Exclude<ProviderSettings["type"], "ai-sdk">,
  { start: (usual?: ModelAnswer) => Promise<ModelStandIn>; base: string; path: string }
>;

export type KindName = keyof typeof KINDS;
export const KIND_NAMES = Object.keys(KINDS) as KindName[];

export const API_KEY = "key-of-the-tests-0123456789abcdef";

export function modelAt(type: KindName, url: string, more: Partial<ModelSettings> = {}): ModelSettings {
  return {
    provider: { type, apiKey: API_KEY, baseUrl: `${url}${KINDS[type].base}`, headers: { "x-team": "tests" } },
    providerName: `the ${type} at ${url}`,
    model: "the-model",
    contextTokens: 100_000,
    maxOutputTokens: undefined,
    temperature: undefined,
    options: undefined,
    price: undefined,
    ...more,
  };
}

export function openModels(table: ModelBackendSettings["table"], more: Partial<ModelBackendSettings> = {}) {
  return createModelBackend({
    table,
    model: undefined,
    fallbacks: [],
    summaryModel: undefined,
    steps: 20,
    limits: { toolArguments: 1024 ** 2, toolMessages: 8 * 1024 ** 2 },
    connectMs: 2_000,
    clock: systemClock,
    ...more,
  });
}

/** The error of a turn if another service answers. */
export function otherFormOf(kind: KindName) {
  return `the answer is not from a provider of the type ${kind}: check the provider's \`type\` and \`baseUrl\``;
}

/** The error of a reply, and the text before it. */
export async function failure(chunks: AsyncIterable<Chunk>): Promise<{ error: BackendError; text: string }> {
  let text = "";
  try {
    for await (const chunk of chunks) if ("text" in chunk) text += chunk.text;
  } catch (error) {
    return { error: error as BackendError, text };
  }
  throw new Error("it did not fail");
}
