import type { Clock } from "#kit/clock.ts";
import type { Backend } from "../backend.ts";
import { summaryOf } from "../summary.ts";
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
        aside: (work) => turn.aside(work),
        mayRetry: () => turn.mayRetry(),
        whenLate: (goesOn) => turn.whenLate(goesOn),
        tools: () => turn.tools(signal),
        prompt: async (tools) => promptOf(turn, await turn.history(), tools),
      };
      return reply(parts, asking, signal);
    },
    async summarise(messages, signal, used) {
      if (messages.length === 0) return "";
      const asking: Asking = {
        names: order(summaryModel ?? own),
        wanted: undefined,
        steps: 1,
        aside: (work) => work,
        mayRetry: () => false,
        whenLate: () => {},
        tools: () => [],
        prompt: () => summaryPromptOf(messages),
      };
      return await summaryOf(reply(parts, asking, signal), used);
    },
    restMs: (model) => Math.min(...order(model ?? own).map(models.restMs)),
    close: () => models.close(),
  };
};
