import type { Clock } from "#kit/clock.ts";
import { once } from "#kit/once.ts";
import { openAgent } from "#outbound/ask.ts";
import { Breaker } from "../breaker.ts";
import { type AskModel, createSend } from "./fetch.ts";
import type { ModelSettings, ModelTable } from "./known.ts";
import { openProvider, type Provider } from "./providers.ts";

/** A model that can be asked. */
export type OpenModel = {
  settings: ModelSettings;
  provider: Provider;
  ask: AskModel;
  breaker: Breaker;
};

/**
 * The models of an agent by name, their providers opened at their first use. They share their connections, and entries for the
 * same model share a breaker.
 */
export const createModels = (table: ModelTable, connectMs: number, clock: Clock) => {
  const agent = openAgent(connectMs);
  const send = createSend(agent, clock);
  const providers = new Map<string, () => Promise<Provider>>();
  const breakers = new Map<string, Breaker>();
  const breakerKey = ({ providerName, model }: ModelSettings): string => `${providerName}\n${model}`;
  for (const settings of Object.values(table)) {
    providers.set(
      settings.providerName,
      once(() => openProvider(settings.provider, send)),
    );
    breakers.set(breakerKey(settings), new Breaker(clock));
  }
  const breakerOf = (settings: ModelSettings) => breakers.get(breakerKey(settings)) as Breaker;
  return {
    async open(name: string): Promise<OpenModel> {
      const settings = table[name] as ModelSettings;
      const provider = await (providers.get(settings.providerName) as () => Promise<Provider>)();
      return { settings, provider, ask: provider.model(settings.model), breaker: breakerOf(settings) };
    },
    restMs: (name: string): number => (table[name] ? breakerOf(table[name]).restMs() : 0),
    close: (): Promise<void> => agent.close(),
  };
};

export type Models = ReturnType<typeof createModels>;
