import type { CoreSettings } from "#core/settings.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { Store } from "#store/store.ts";
import { type Agent, countedModel } from "./agents.ts";

/** The name under which usage of further models is counted. */
export const OTHER_MODELS = "(other)";

type Parts = { store: Store; clock: Clock; events: Events; settings: () => CoreSettings };

/**
 * The names of models that usage is counted under. Models of the agent's configuration have their own name. Callers may name any model of
 * an echo agent, and agents may report any: the first `limits.usageModels` of an agent have their own name, the others share one.
 * Names that the store has already counted come first; they are read with the first such model of an agent.
 */
export function createCountedModels({ store, clock, events, settings }: Parts) {
  const named = new Map<string, Set<string>>();

  const readCounted = async (agent: string, names: Set<string>): Promise<void> => {
    const counted = await store.sumUsage({ from: 0, to: clock.now(), by: "model", agents: [agent] });
    for (const { key } of counted) names.add(String(key));
  };
  const namesOf = (agent: string): Set<string> => {
    const names = named.get(agent) ?? new Set();
    if (named.has(agent)) return names;
    named.set(agent, names);
    readCounted(agent, names).catch((error: unknown) => events.storeFailed({ operation: "sumUsage", error }));
    return names;
  };

  /** The name to count a model of this agent under. */
  return (agent: Agent, model: string | undefined): string => {
    const name = countedModel(agent, model);
    if (name === agent.model || name === agent.backend.kind || agent.backend.models?.includes(name)) return name;
    const names = namesOf(agent.name);
    if (names.has(name)) return name;
    if (names.size >= settings().limits.usageModels) return OTHER_MODELS;
    names.add(name);
    return name;
  };
}

export type CountedModels = ReturnType<typeof createCountedModels>;
