import { countIn, countOf, ended, isNothing, isObject, type Json, type Kind, type Wire } from "./wire.ts";

/** OpenAI's responses. */
export const responses: Wire = (event) => {
  switch (event.type) {
    case "response.output_text.delta": {
      const { delta, item_id: block } = event;
      if (typeof delta !== "string" || typeof block !== "string" || !isNothing(event.logprobs)) return "mixed";
      return { text: delta, block };
    }
    case "error":
      return { error: isObject(event.error) ? event.error : event };
    case "response.failed":
      return { error: isObject(event.response) ? event.response.error : undefined };
    case "response.created":
    case "response.in_progress":
    case "response.queued":
      return "quiet";
    case "response.output_item.added":
    case "response.output_item.done":
      return isObject(event.item) && event.item.type === "message" ? "beside" : "sdk";
    case "response.content_part.added":
    case "response.content_part.done":
      return isObject(event.part) && event.part.type === "output_text" ? "beside" : "mixed";
    case "response.output_text.done":
      return "beside";
    case "response.completed":
    case "response.incomplete":
      return endOf(event.response);
    case "response.refusal.delta":
      return "mixed";
    default:
      return String(event.type).startsWith("response.") ? "sdk" : strangeOf(event);
  }
};

const strangeOf = ({ error }: Json): Kind => (isNothing(error) ? "strange" : { error });

const endOf = (response: unknown): Kind => {
  if (!isObject(response)) return "mixed";
  const reason = isObject(response.incomplete_details) ? response.incomplete_details.reason : undefined;
  const finish = REASONS[String(reason)];
  if (!finish) return "sdk";
  return ended(isObject(response.usage) ? { finish, used: usedOf(response.usage) } : { finish });
};

const REASONS: Record<string, "stop" | "length" | "filter" | undefined> = {
  undefined: "stop",
  null: "stop",
  max_output_tokens: "length",
  content_filter: "filter",
};

const usedOf = (usage: Json) => ({
  input: countOf(usage.input_tokens),
  output: countOf(usage.output_tokens),
  cached: countIn(usage.input_tokens_details, "cached_tokens"),
  reasoning: countIn(usage.output_tokens_details, "reasoning_tokens"),
});
