import type { Used } from "#backends/backend.ts";
import { countOf, ended, isNothing, isObject, type Json, type Kind, type Wire } from "./wire.ts";

const FINISHES: Record<string, "stop" | "length" | "filter" | undefined> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  refusal: "filter",
};

/** Anthropic's messages. */
export const anthropic: Wire = (event) => {
  switch (event.type) {
    case "content_block_delta": {
      const { delta, index } = event;
      if (!isObject(delta) || delta.type !== "text_delta") return "sdk";
      return typeof delta.text === "string" ? { text: delta.text, block: String(index) } : "mixed";
    }
    case "error":
      return { error: event.error };
    case "message_start":
      return beginOf(event.message);
    case "content_block_start":
      return isObject(event.content_block) && event.content_block.type === "text" ? "beside" : "sdk";
    case "ping":
    case "content_block_stop":
    case "message_stop":
      return "beside";
    case "message_delta":
      return endOf(event);
    default:
      return isNothing(event.error) ? "strange" : { error: event.error };
  }
};

/** What it has read is known before its first word. */
const beginOf = (message: unknown): Kind =>
  isObject(message) && isObject(message.usage) ? ended({ used: usedOf(message.usage) }) : "quiet";

/** Older servers tell what they read with the first event alone: then what we know is not all, and the SDK has it. */
const endOf = ({ delta, usage }: Json): Kind => {
  const finish = isObject(delta) ? FINISHES[String(delta.stop_reason)] : undefined;
  if (!finish || !isObject(usage) || typeof usage.input_tokens !== "number") return "sdk";
  return ended({ finish, used: usedOf(usage) });
};

const usedOf = (usage: Json): Used => {
  const cached = countOf(usage.cache_read_input_tokens);
  const input = countOf(usage.input_tokens) + countOf(usage.cache_creation_input_tokens) + cached;
  return { input, output: countOf(usage.output_tokens), cached };
};
