import type { Agent } from "undici";
import type { Clock } from "#kit/clock.ts";
import { Breaker } from "../breaker.ts";
import { openAgent } from "../outbound/ask.ts";
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

/** The models of an agent by name, each opened when it is first asked. They share their connections, and the breaker where they are the same model. */
export const createModels = (table: ModelTable, connectMs: number, clock: Clock) => {
  let agent: Agent | undefined;
  const open = new Map<string, OpenModel>();
  const opening = new Map<string, Promise<OpenModel>>();
  const providers = new Map<string, Promise<Provider>>();
  const providerOf = ({ providerName, provider }: ModelSettings): Promise<Provider> => {
    agent ??= openAgent(connectMs);
    const known = providers.get(providerName) ?? openProvider(provider, createSend(agent, clock));
    providers.set(providerName, known);
    return known;
  };
  const breakers = breakersOf(table, clock);
  const make = async (name: string): Promise<OpenModel> => {
    const settings = table[name] as ModelSettings;
    try {
      const provider = await providerOf(settings);
      const ask = provider.model(settings.model);
      const model = { settings, provider, ask, breaker: breakers.get(name) as Breaker };
      open.set(name, model);
      return model;
    } catch (error) {
      providers.delete(settings.providerName);
      throw error;
    } finally {
      opening.delete(name);
    }
  };
  return {
    /** One that was opened before. */
    opened: (name: string): OpenModel | undefined => open.get(name),
    open(name: string): Promise<OpenModel> {
      const known = opening.get(name) ?? make(name);
      if (!open.has(name)) opening.set(name, known);
      return known;
    },
    restMs: (name: string): number => breakers.get(name)?.restMs() ?? 0,
    async close(): Promise<void> {
      await agent?.close();
    },
  };
};

/** By the names of an agent's models: one for those that are the same. */
const breakersOf = (table: ModelTable, clock: Clock): Map<string, Breaker> => {
  const breakers = new Map<string, Breaker>();
  const ofModels = new Map<string, Breaker>();
  for (const [name, { providerName, model }] of Object.entries(table)) {
    const key = `${providerName}\n${model}`;
    const breaker = ofModels.get(key) ?? new Breaker(clock);
    ofModels.set(key, breaker);
    breakers.set(name, breaker);
  }
  return breakers;
};

export type Models = ReturnType<typeof createModels>;
