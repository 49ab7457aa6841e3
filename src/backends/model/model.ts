import type { Clock } from "#core/clock.ts";
import type { Backend, Chunk, Used } from "../backend.ts";
import { firstOf, knownOf, type ModelTable } from "./known.ts";
import { createModels } from "./models.ts";
import { promptOf, summaryPromptOf } from "./prompt.ts";
import { type Asking, reply } from "./reply.ts";

export type ModelBackendSettings = {
  /** What the agent's names of models stand for, in its order. */
  table: ModelTable;
  /** The model of a turn that names none; the first without it. */
  model: string | undefined;
  /** Tried in this order when the one that is asked cannot be used. */
  fallbacks: readonly string[];
  /** Writes summaries, in place of the agent's own. */
  summaryModel: string | undefined;
  /** How often a model may be asked in one turn. */
  steps: number;
  connectMs: number;
  clock: Clock;
};

/** Agents that are models of a provider, through its AI SDK. */
export const createModelBackend = (settings: ModelBackendSettings): Backend => {
  const { table, fallbacks, summaryModel, steps, connectMs, clock } = settings;
  const models = createModels(table, connectMs, clock);
  const parts = { models, clock };
  const own = firstOf(settings);
  const order = (first: string): string[] => [...new Set([first, ...fallbacks])];

  return {
    ...knownOf(settings),
    run(turn, signal) {
      const asking: Asking = {
        names: order(turn.model ?? own),
        wanted: turn.model,
        steps,
        tools: () => turn.tools(signal),
        prompt: async (hasTools) => promptOf(turn, await turn.history(), hasTools),
      };
      return reply(parts, asking, signal);
    },
    async summarise(messages, signal, used) {
      if (messages.length === 0) return "";
      const asking: Asking = {
        names: order(summaryModel ?? own),
        wanted: undefined,
        steps: 1,
        tools: async () => [],
        prompt: async () => summaryPromptOf(messages),
      };
      return await textOf(reply(parts, asking, signal), used);
    },
    close: () => models.close(),
  };
};

const textOf = async (chunks: AsyncIterable<Chunk>, used: ((usage: Used) => void) | undefined): Promise<string> => {
  let text = "";
  for await (const chunk of chunks) {
    if ("text" in chunk) text += chunk.text;
    else if ("usage" in chunk) used?.(chunk.usage);
  }
  return text;
};
