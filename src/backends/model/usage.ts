import type { LanguageModelV3Message } from "@ai-sdk/provider";
import type { Used } from "../backend.ts";

export const NOTHING: Used = { input: 0, output: 0 };

/** A token per four characters: what is said before a provider has counted. */
export const countTokens = (characters: number): number => Math.ceil(characters / 4);

export const added = (one: Used, other: Used): Used => ({
  input: one.input + other.input,
  output: one.output + other.output,
  ...(one.cached || other.cached ? { cached: (one.cached ?? 0) + (other.cached ?? 0) } : {}),
  ...(one.cost || other.cost ? { cost: (one.cost ?? 0) + (other.cost ?? 0) } : {}),
  ...(one.reasoning || other.reasoning ? { reasoning: (one.reasoning ?? 0) + (other.reasoning ?? 0) } : {}),
});

/** About what a provider will count of a prompt. */
export const tokensOf = (prompt: readonly LanguageModelV3Message[]): number =>
  countTokens(prompt.reduce((sum, { content }) => sum + lengthOf(content), 0));

const lengthOf = (content: LanguageModelV3Message["content"]): number => {
  if (typeof content === "string") return content.length;
  let length = 0;
  for (const part of content) {
    if (part.type === "text" || part.type === "reasoning") length += part.text.length;
    else if (part.type === "tool-result" && "value" in part.output) length += String(part.output.value).length;
  }
  return length;
};
