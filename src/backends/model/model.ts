import type { Clock } from "#kit/clock.ts";
import type { Tool } from "#tools/tool.ts";
import type { Backend } from "../backend.ts";
import { summaryOf } from "../summary.ts";
import { firstOf, knownOf, type ModelTable } from "./model-table.ts";
import { promptOf, summaryPromptOf } from "./prompt.ts";
import { createModels } from "./providers.ts";
import { type AskedTurn, reply } from "./reply.ts";
import type { ToolLimits } from "./tool-limits.ts";

export type ModelBackendSettings = {
  /** The models behind the agent's model names, in its order. */
  table: ModelTable;
  /** The model for a turn that names none; if it is absent, the first of the table. */
  model: string | undefined;
  /** The models to try, in this order, when the first one cannot be used. */
  fallbacks: readonly string[];
  /** The model that writes summaries, in place of the agent's own. */
  summaryModel: string | undefined;
  /** The number of times that a model may be asked in one turn. */
  steps: number;
  limits: ToolLimits;
  connectMs: number;
  clock: Clock;
};

/** Agents that are a provider's models, called through its AI SDK. */
export function createModelBackend(settings: ModelBackendSettings): Backend {
  const { table, fallbacks, summaryModel, steps, limits, connectMs, clock } = settings;
  const models = createModels(table, connectMs, clock);
  const parts = { models, limits, clock };
  const own = firstOf(settings);
  const order = (first: string): string[] => [...new Set([first, ...fallbacks])];

  return {
    ...knownOf(settings),
    run(turn, signal) {
      const prompt = async (tools: readonly Tool[]) => promptOf(turn, await turn.history(), tools);
      return reply(parts, { turn, names: order(turn.model ?? own), steps, prompt }, signal);
    },
    async summarise(messages, signal, used) {
      if (messages.length === 0) return "";
      const prompt = () => summaryPromptOf(messages);
      const names = order(summaryModel ?? own);
      return await summaryOf(reply(parts, { turn: NO_TURN, names, steps: 1, prompt }, signal), used);
    },
    restMs: (model) => Math.min(...order(model ?? own).map(models.restMs)),
    close: () => models.close(),
  };
}

/** A summary is written in one step, without tools and another try. */
const NO_TURN: AskedTurn = {
  model: undefined,
  watch: { pause: (work) => work, whenLate: () => {} },
  mayRetry: () => false,
  tools: () => [],
};
