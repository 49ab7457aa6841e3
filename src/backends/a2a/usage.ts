import type { Used } from "../backend.ts";

/** Where agents put it: A2A itself says nothing of it. */
const PLACES = ["usage", "adk_usage_metadata"];
/** What they call each count. */
const NAMES = {
  input: ["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens", "promptTokenCount"],
  output: ["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens", "candidatesTokenCount"],
  cached: ["cached", "cachedInputTokens", "cached_tokens", "cachedContentTokenCount"],
  reasoning: ["reasoning", "reasoningTokens", "reasoning_tokens", "thoughtsTokenCount"],
} as const;

/** What a turn took, where the metadata of an answer tells it. */
export const usageIn = (metadata: unknown): Used | undefined => {
  for (const place of PLACES) {
    const told = (metadata as Record<string, unknown> | null | undefined)?.[place];
    if (typeof told !== "object" || told === null) continue;
    const count = (of: keyof typeof NAMES): number | undefined =>
      NAMES[of].map((name) => (told as Record<string, unknown>)[name]).find(isCount);
    const [input, output, cached, reasoning] = [count("input"), count("output"), count("cached"), count("reasoning")];
    if (input === undefined && output === undefined) continue;
    return {
      ...{ input: input ?? 0, output: output ?? 0 },
      ...(cached !== undefined && { cached }),
      ...(reasoning !== undefined && { reasoning }),
    };
  }
  return undefined;
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
