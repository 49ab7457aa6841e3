import type { Clock } from "#kit/clock.ts";
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

/** The first promise for a key; a rejected one is forgotten. */
const remember = <T>(made: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> => {
  const one =
    made.get(key) ??
    make().catch((error: unknown) => {
      made.delete(key);
      throw error;
    });
  made.set(key, one);
  return one;
};

/**
 * The models of an agent by name, each opened at its first use. They share their connections, and entries for the same model
 * share a breaker.
 */
export const createModels = (table: ModelTable, connectMs: number, clock: Clock) => {
  const agent = openAgent(connectMs);
  const send = createSend(agent, clock);
  const models = new Map<string, Promise<OpenModel>>();
  const providers = new Map<string, Promise<Provider>>();
  const breakers = new Map<string, Breaker>();
  const breakerOf = ({ providerName, model }: ModelSettings): Breaker => {
    const key = `${providerName}\n${model}`;
    const breaker = breakers.get(key) ?? new Breaker(clock);
    breakers.set(key, breaker);
    return breaker;
  };
  const open = async (settings: ModelSettings): Promise<OpenModel> => {
    const { providerName } = settings;
    const provider = await remember(providers, providerName, () => openProvider(settings.provider, send));
    return { settings, provider, ask: provider.model(settings.model), breaker: breakerOf(settings) };
  };
  return {
    open: (name: string) => remember(models, name, () => open(table[name] as ModelSettings)),
    restMs: (name: string): number => (table[name] ? breakerOf(table[name]).restMs() : 0),
    close: (): Promise<void> => agent.close(),
  };
};

export type Models = ReturnType<typeof createModels>;
