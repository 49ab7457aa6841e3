import type { TurnStep } from "#core/turns/turn-events.ts";
import { failureOf } from "#core/turns/turns.ts";
import type { ChatCompletion, ChatCompletionChunk, CompletionUsage } from "#generated/rest-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { showCompleted } from "#kit/usages.ts";
import type { Turn, Usage } from "#store/store.ts";

type Choice = ChatCompletionChunk["choices"][number];

/** The steps of a turn as chunks. `show` throws if the turn fails, or if a reply restarts after a part of it was sent. */
export function createChunks(turn: Turn, model: string, includeUsage: boolean) {
  const [id, object, created] = [idOf(turn), "chat.completion.chunk" as const, secondsOf(turn)];
  const noUsage = includeUsage ? { usage: null } : {};
  const { turnId, sessionId } = turn;
  let sent = 0;

  const chunk = (delta: Choice["delta"], finish_reason: Choice["finish_reason"] = null): ChatCompletionChunk => ({
    id,
    object,
    created,
    model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    ...noUsage,
  });
  const say = (content: string): ChatCompletionChunk[] => {
    sent += content.length;
    return [chunk({ content })];
  };

  return {
    /** The first chunk. */
    begin: Object.assign(chunk({ role: "assistant", content: "" }), { turn_id: turnId, session_id: sessionId }),
    /** The chunks of a step. */
    show(step: TurnStep): ChatCompletionChunk[] {
      if (step.kind === "delta") return say(step.text);
      const { entry } = step;
      switch (entry.name) {
        case "message.created":
          if (sent === 0 || entry.role !== "assistant") return [];
          throw new GatewayError("turn-failed", "The reply was started again after a part of it was sent.", { turnId });
        case "message.completed":
          // A client that connects after the reply is complete gets it in one piece.
          return sent < entry.text.length ? say(entry.text.slice(sent)) : [];
        case "turn.completed":
          return [
            chunk({}, "stop"),
            ...(includeUsage ? [{ id, object, created, model, choices: [], usage: usageOf(entry.usage) }] : []),
          ];
        case "turn.failed":
          throw failureOf({ turnId, status: "failed", error: entry.error }, false);
        case "turn.cancelled":
          throw failureOf({ turnId, status: "cancelled", error: undefined }, false);
        default:
          return [];
      }
    },
  };
}

function idOf({ turnId }: Turn): string {
  return `chatcmpl-${turnId}`;
}
function secondsOf({ createdAt }: Turn): number {
  return Math.floor(createdAt / 1_000);
}

function usageOf(usage: Usage): CompletionUsage {
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
}

/** The response for a completed turn. */
export function completionOf(turn: Turn, model: string): ChatCompletion {
  return {
    id: idOf(turn),
    object: "chat.completion",
    created: secondsOf(turn),
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
  };
}
