import type { Chunk, Used } from "./backend.ts";

export const NOTHING: Used = { input: 0, output: 0 };

/** An estimate without a count: one token per four characters. */
export function tokensIn(characters: number): number {
  return Math.ceil(characters / 4);
}

/** The names of each count at agents and providers. */
const NAMES = {
  input: ["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens", "promptTokenCount"],
  output: ["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens", "candidatesTokenCount"],
  cached: [
    "cached",
    "cachedInputTokens",
    "cached_tokens",
    "cache_read_input_tokens",
    "cachedContentTokenCount",
    "cachedReadTokens",
  ],
  reasoning: ["reasoning", "reasoningTokens", "reasoning_tokens", "thoughtsTokenCount", "thoughtTokens"],
} as const;

/** The counts in an object that reports usage; undefined if it has none. */
export function countsIn(told: unknown): Used | undefined {
  if (typeof told !== "object" || told === null) return undefined;
  const count = (of: keyof typeof NAMES): number | undefined =>
    NAMES[of].map((name) => (told as Record<string, unknown>)[name]).find(isCount);
  const [input, output, cached, reasoning] = [count("input"), count("output"), count("cached"), count("reasoning")];
  if (input === undefined && output === undefined) return undefined;
  return {
    input: input ?? 0,
    output: output ?? 0,
    ...(cached !== undefined && { cached }),
    ...(reasoning !== undefined && { reasoning }),
  };
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * Records that a turn's usage was not reported. Then nothing is counted, because the tokens that an agent requests and gets are unknown; or, for a
 * model that we call directly, an estimate.
 */
export function usageUnknown(who: string, counted: "nothing" | "an estimate" = "nothing"): Chunk {
  const reason = `${who} does not report its token usage`;
  return { note: { name: "usage.unknown", detail: counted === "nothing" ? { reason } : { reason, estimated: true } } };
}
