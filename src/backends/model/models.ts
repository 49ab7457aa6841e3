import type { LanguageModelV3 } from "@ai-sdk/provider";
import type { Clock } from "#kit/clock.ts";
import { type Breaker, createBreaker } from "../breaker.ts";
import { Client } from "../outbound/client.ts";
import { Exchange, type Hearer } from "./exchange.ts";
import { PlainRequests } from "./plain.ts";
import type { Price } from "./prices.ts";
import { openProvider, type Provider, type ProviderSettings } from "./providers.ts";

export type ModelSettings = {
  provider: ProviderSettings;
  /** The provider by its name in the configuration. */
  providerName: string;
  model: string;
  contextTokens: number | undefined;
  maxOutputTokens: number | undefined;
  temperature: number | undefined;
  options: Readonly<Record<string, unknown>> | undefined;
  price: Price | undefined;
};

/** A model that can be asked. */
export type OpenModel = {
  name: string;
  settings: ModelSettings;
  provider: Provider;
  sdk: LanguageModelV3;
  breaker: Breaker;
  /** Requests for which the SDK is not needed. */
  plain: PlainRequests | undefined;
  /** Another call of it. */
  exchange(hearer: Hearer): Exchange;
  /** What the SDK has to be given as the signal of the call that goes by this exchange. */
  keyOf(exchange: Exchange): AbortSignal;
};

/** The models of an agent by name, each opened when it is first asked. They share their connections, and the breaker where they are the same model. */
export const createModels = (table: Readonly<Record<string, ModelSettings>>, connectMs: number, clock: Clock) => {
  let client: Client | undefined;
  const open = new Map<string, OpenModel | Promise<OpenModel>>();
  const providers = new Map<string, Promise<Provider>>();
  /** The SDK hands a call's signal to `fetch` as it is: by it the call finds its exchange. */
  const exchanges = new WeakMap<AbortSignal, Exchange>();
  const fetch: typeof globalThis.fetch = async (address, init) => {
    const exchange = init?.signal ? exchanges.get(init.signal) : undefined;
    if (!exchange) throw new Error("a request of an SDK that belongs to no call");
    return await exchange.fetch(String(address), init as RequestInit);
  };
  const providerOf = ({ providerName, provider }: ModelSettings): Promise<Provider> => {
    const known = providers.get(providerName) ?? openProvider(provider, fetch);
    providers.set(providerName, known);
    return known;
  };
  const breakers = breakersOf(table, clock);
  const make = async (name: string): Promise<OpenModel> => {
    const settings = table[name] as ModelSettings;
    const provider = await providerOf(settings);
    client ??= new Client(connectMs, clock);
    const its = client;
    return {
      name,
      settings,
      provider,
      sdk: provider.model(settings.model),
      breaker: breakers.get(name) as Breaker,
      plain: provider.plainBody && new PlainRequests(settings.model, provider.plainBody),
      exchange: (hearer) => new Exchange(its, provider.wire, clock.now, hearer),
      keyOf(exchange) {
        const key = new AbortController().signal;
        exchanges.set(key, exchange);
        return key;
      },
    };
  };
  return {
    /** One that was opened before is there at once. */
    open(name: string): OpenModel | Promise<OpenModel> {
      const known = open.get(name);
      if (known) return known;
      const opening = make(name);
      open.set(name, opening);
      opening.then(
        (model) => open.set(name, model),
        () => {
          open.delete(name);
          providers.clear();
        },
      );
      return opening;
    },
    restMs: (name: string): number => breakers.get(name)?.restMs() ?? 0,
    async close(): Promise<void> {
      await client?.close();
    },
  };
};

/** By the names of an agent's models: one for those that are the same. */
const breakersOf = (table: Readonly<Record<string, ModelSettings>>, clock: Clock): Map<string, Breaker> => {
  const breakers = new Map<string, Breaker>();
  const ofModels = new Map<string, Breaker>();
  for (const [name, { providerName, model }] of Object.entries(table)) {
    const key = `${providerName}\n${model}`;
    const breaker = ofModels.get(key) ?? createBreaker(clock);
    ofModels.set(key, breaker);
    breakers.set(name, breaker);
  }
  return breakers;
};

export type Models = ReturnType<typeof createModels>;
