import { countIn, countOf, ended, hasOnly, isNothing, isObject, type Json, type Kind, type Wire } from "./wire.ts";

const FINISHES: Record<string, "stop" | "length" | "filter" | undefined> = {
  stop: "stop",
  length: "length",
  content_filter: "filter",
};

/** OpenAI's chat completions, and everybody's who speaks them. */
export const chat: Wire = (event) => {
  if (!isNothing(event.error)) return { error: event.error };
  const { choices } = event;
  // Some say an error without a name for it.
  if (!Array.isArray(choices)) return event.object === "error" ? { error: event } : "strange";
  if (choices.length === 0) return isObject(event.usage) ? ended({ used: usedOf(event.usage) }) : "quiet";
  const choice: unknown = choices[0];
  if (!isObject(choice) || !isObject(choice.delta)) return "mixed";
  const { delta, finish_reason: reason } = choice;
  if (!hasOnly(delta, "content", "role")) return isNothing(delta.content) ? "sdk" : "mixed";
  const text = delta.content ?? "";
  if (typeof text !== "string") return "mixed";
  if (!isNothing(reason)) return text === "" ? endOf(event, reason) : "mixed";
  // With the last piece some tell the usage; others with each.
  if (isObject(event.usage)) return text === "" ? ended({ used: usedOf(event.usage) }) : "mixed";
  return text === "" ? "quiet" : { text, block: undefined };
};

const endOf = ({ usage }: Json, reason: unknown): Kind => {
  const finish = FINISHES[String(reason)];
  if (!finish) return "sdk";
  return ended(isObject(usage) ? { finish, used: usedOf(usage) } : { finish });
};

const usedOf = (usage: Json) => ({
  input: countOf(usage.prompt_tokens),
  output: countOf(usage.completion_tokens),
  cached: countIn(usage.prompt_tokens_details, "cached_tokens"),
  reasoning: countIn(usage.completion_tokens_details, "reasoning_tokens"),
});
