import type { EventTools } from "#observe/event-tools.ts";
import type { Logger } from "#observe/logger.ts";
import type { Counter, Registry } from "#observe/metrics.ts";

interface AttemptUsed {
  agent: string;
  /** Which one answered, by one of few names. */
  model: string;
  /** Tokens, and what most attempts have nothing of; `cost` in billionths. */
  usage: {
    input: number;
    output: number;
    more?: { cached: number; reasoning: number; cost: number } | undefined;
  };
}

const BILLION = 1_000_000_000;

/** What attempts use: the turn, the session and the store's counters tell of each. */
export const createUsageEvents = (
  { log, count }: EventTools,
  { logger, registry }: { logger: Logger; registry: Registry },
) => {
  const labels = ["agent", "model"] as const;
  const unknown = count("usage_unknown", "Attempts whose agent did not tell what they used.", ["agent"]);
  const inputs = count("input_tokens", "Tokens that models read.", labels);
  const outputs = count("output_tokens", "Tokens that models wrote.", labels);
  const cached = count("cached_tokens", "Of the input, what models had read before.", labels);
  const reasoning = count("reasoning_tokens", "Of the output, what no reader sees.", labels);
  /** In whole billionths, as sums of anything else would drift. No model but those with a price is in it. */
  const costs = new Map<string, { labels: { agent: string; model: string }; cost: number }>();
  registry.read("counter", "gateway_cost_total", "What attempts cost by the prices of their models.", () =>
    [...costs.values()].map(({ labels, cost }) => ({ labels, value: cost / BILLION })),
  );
  /** The one that was counted in last: mostly the next is the same. */
  let last: { agent: string; model: string; input: Counter; output: Counter } | undefined;
  const cellsOf = (agent: string, model: string) => {
    if (last?.agent === agent && last.model === model) return last;
    last = { agent, model, input: inputs.at(agent, model), output: outputs.at(agent, model) };
    return last;
  };
  return {
    usageUnknown: ({ agent }: { agent: string }): void => {
      unknown.at(agent).inc();
      if (logger.writes("debug")) log("debug", "usage.unknown", { agent });
    },
    /** An attempt that reached a backend, whatever became of it; one that wrote a summary, too. */
    attemptUsed: (attempt: AttemptUsed): void => {
      const { agent, model, usage } = attempt;
      const { more } = usage;
      const cells = cellsOf(agent, model);
      cells.input.inc(usage.input);
      cells.output.inc(usage.output);
      if (logger.writes("debug")) log("debug", "attempt.used", attempt);
      if (!more) return;
      if (more.cached > 0) cached.at(agent, model).inc(more.cached);
      if (more.reasoning > 0) reasoning.at(agent, model).inc(more.reasoning);
      if (more.cost === 0) return;
      const key = `${agent}\n${model}`;
      const known = costs.get(key) ?? { labels: { agent, model }, cost: 0 };
      known.cost += more.cost;
      costs.set(key, known);
    },
  };
};
