import { showUsage, type Usage } from "#core/usages.ts";
import type { ChatCompletion, CompletionUsage } from "#generated/rest-types.ts";
import type { Turn } from "#store/store.ts";

/** What is the same in a whole reply and in its pieces. */
export const headOf = <Kind extends string>({ turnId, createdAt }: Turn, model: string, object: Kind) => ({
  id: `chatcmpl-${turnId}`,
  object,
  created: Math.floor(createdAt / 1_000),
  model,
});

export const usageOf = (usage: Usage): CompletionUsage => {
  const { input, output, total, cached = 0, reasoning = 0, cost } = showUsage(usage);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: total,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
    ...(cost !== undefined && { cost }),
  };
};

/** A turn that has completed. */
export const completionOf = (turn: Turn, model: string): ChatCompletion => ({
  ...headOf(turn, model, "chat.completion"),
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: turn.reply ?? "", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: usageOf(turn.usage ?? { input: 0, output: 0 }),
  turn_id: turn.turnId,
  session_id: turn.sessionId,
});
