import type { ChatCompletion, CompletionUsage } from "#generated/rest-types.ts";
import { showCompleted, type Usage } from "#kit/usages.ts";
import type { Turn } from "#store/store.ts";

/** What is the same in a whole reply and in its pieces. */
export const headOf = <Kind extends string>(turn: Turn, model: string, object: Kind) => ({
  id: idOf(turn),
  object,
  created: createdOf(turn),
  model,
});
const idOf = ({ turnId }: Turn): string => `chatcmpl-${turnId}`;
const createdOf = ({ createdAt }: Turn): number => Math.floor(createdAt / 1_000);

export const usageOf = (usage: Usage): CompletionUsage => {
  const { input, output, total, cached = 0, reasoning = 0, cost, unknown } = showCompleted(usage);
  const shown: CompletionUsage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: total,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
  if (cost !== undefined) shown.cost = cost;
  if (unknown) shown.unknown = true;
  return shown;
};

/** A turn that has completed. One literal: each is written, and parts that are spread into it cost more than all of that. */
export const completionOf = (turn: Turn, model: string): ChatCompletion => ({
  id: idOf(turn),
  object: "chat.completion",
  created: createdOf(turn),
  model,
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
