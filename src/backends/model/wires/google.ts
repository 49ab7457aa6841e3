import { countOf, hasOnly, isNothing, isObject, type Json, type Kind, type Plain, type Wire } from "./wire.ts";

/** Google's Gemini. */
export const google: Wire = (event) => {
  if (!isNothing(event.error)) return { error: event.error };
  const { candidates, promptFeedback, usageMetadata } = event;
  if (isNothing(candidates) && isNothing(promptFeedback) && isNothing(usageMetadata)) return "strange";
  if (!Array.isArray(candidates) || candidates.length !== 1 || !isNothing(promptFeedback)) return "mixed";
  const candidate: unknown = candidates[0];
  if (!isObject(candidate) || !isNothing(candidate.groundingMetadata)) return "mixed";
  const content = isObject(candidate.content) ? candidate.content : {};
  const parts = content.parts ?? [];
  if (!Array.isArray(parts)) return "mixed";
  let text = "";
  for (const part of parts) {
    if (!isObject(part) || typeof part.text !== "string" || !hasOnly(part, "text", "text"))
      return parts.length === 1 && isObject(part) && part.thought === true ? "sdk" : "mixed";
    text += part.text;
  }
  if (isNothing(candidate.finishReason)) return text === "" ? "quiet" : withUsed(text, usageMetadata);
  const rest = () => JSON.stringify({ ...event, candidates: [{ ...candidate, content: { ...content, parts: [] } }] });
  return endOf(text, candidate.finishReason, usageMetadata, rest);
};

/** Each piece tells the sums so far. */
const withUsed = (text: string, usage: unknown): Plain =>
  isObject(usage) ? { text, block: undefined, used: usedOf(usage) } : { text, block: undefined };

const endOf = (text: string, reason: unknown, usage: unknown, rest: () => string): Kind => {
  const finish = FINISHES[String(reason)];
  if (!finish || !isObject(usage)) return "mixed";
  return { text, block: undefined, ending: { finish, used: usedOf(usage) }, rest: rest() };
};

const FINISHES: Record<string, "stop" | "length" | "filter" | undefined> = {
  STOP: "stop",
  MAX_TOKENS: "length",
  SAFETY: "filter",
  PROHIBITED_CONTENT: "filter",
  BLOCKLIST: "filter",
};

const usedOf = (usage: Json) => {
  const reasoning = countOf(usage.thoughtsTokenCount);
  const output = countOf(usage.candidatesTokenCount) + reasoning;
  return {
    input: countOf(usage.promptTokenCount),
    output,
    cached: countOf(usage.cachedContentTokenCount),
    reasoning,
  };
};
