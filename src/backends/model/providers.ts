import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { once } from "#kit/once.ts";
import { openAgent } from "#outbound/ask.ts";
import { Breaker } from "../breaker.ts";
import { CHAT, createChatCompletions } from "./chat-completions.ts";
import { type Asking, type AskModel, type Call, createModelFetch, createSend, type Send } from "./fetch.ts";
import type { ModelSettings, ModelTable, ProviderSettings } from "./model-table.ts";

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
export function createModels(table: ModelTable, connectMs: number, clock: Clock) {
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
}

export type Models = ReturnType<typeof createModels>;

type Options = Readonly<Record<string, unknown>>;

type Provider = {
  model(id: string): AskModel;
  /** The configured options of a model, in the form that the SDK expects. */
  options(set: Options | undefined): SharedV3ProviderOptions;
  /** True if a model that has called tools can be denied further calls and still sees its tools. */
  canRefuseTools: boolean;
  /** True if its events may report usage before the end. Its SDK reports it only at the end. */
  tellsUsageEarly: boolean;
};

type Sdk = Pick<Provider, "canRefuseTools" | "tellsUsageEarly"> & {
  package: string;
  apiKey?: string;
  baseUrl?: string;
  options?: Options;
};

/** No environment variable chooses the receiver of a key: the address and the key are always given. */
const SDKS: Readonly<Record<"openai" | "anthropic" | "google", Sdk>> = {
  openai: {
    package: "@ai-sdk/openai",
    apiKey: "",
    baseUrl: "https://api.openai.com/v1",
    // The gateway stores the conversation: the provider need not store any of it.
    options: { store: false },
    canRefuseTools: true,
    tellsUsageEarly: false,
  },
  anthropic: {
    package: "@ai-sdk/anthropic",
    apiKey: "",
    baseUrl: "https://api.anthropic.com/v1",
    canRefuseTools: false,
    tellsUsageEarly: true,
  },
  google: {
    package: "@ai-sdk/google",
    apiKey: "",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    canRefuseTools: true,
    tellsUsageEarly: true,
  },
};

/** Opens a provider. Its SDK is loaded with the first turn that needs it. */
async function openProvider(settings: ProviderSettings, send: Send): Promise<Provider> {
  const { type } = settings;
  if (type === "openai-compatible")
    return {
      model: createChatCompletions(settings, send),
      options: (set) => named(CHAT, set),
      canRefuseTools: true,
      tellsUsageEarly: false,
    };
  const { package: name = "" } = settings;
  const sdk: Sdk = type === "ai-sdk" ? { package: name, canRefuseTools: true, tellsUsageEarly: true } : SDKS[type];
  const create = await factoryOf(sdk, settings);
  const { options, canRefuseTools, tellsUsageEarly } = sdk;
  return {
    model: (id) => (asked, call) => askThrough(create(id, createModelFetch(send, call)), asked, call),
    options: (set) => named(optionsName(sdk.package), set || options ? { ...options, ...set } : undefined),
    canRefuseTools,
    tellsUsageEarly,
  };
}

type MadeProvider = { languageModel?(id: string): LanguageModelV3 } | undefined;
type MakeProvider = (settings: object) => MadeProvider;

/** Makes the models of a package. Each package has one function for that, `createMistral` and the like. */
async function factoryOf(sdk: Sdk, settings: ProviderSettings) {
  const exported: Record<string, unknown> = await import(sdk.package).catch((cause: unknown) => {
    const words = `the SDK for providers of the type ${settings.type} cannot be loaded; is it installed?`;
    throw new BackendError(words, { cause });
  });
  const isFactory = ([name, value]: [string, unknown]) => /^create[A-Z]/.test(name) && typeof value === "function";
  const create = Object.entries(exported).find(isFactory)?.[1] as MakeProvider | undefined;
  const { apiKey = sdk.apiKey, baseUrl = sdk.baseUrl, headers, settings: more } = settings;
  const given = { ...(apiKey !== undefined && { apiKey }), ...(baseUrl !== undefined && { baseURL: baseUrl }) };
  return (id: string, fetch: typeof globalThis.fetch): LanguageModelV3 => {
    const made = create?.({ ...more, ...given, headers: { ...headers }, fetch });
    if (typeof made?.languageModel !== "function")
      throw new BackendError(`the package ${sdk.package} is not a provider of the AI SDK`);
    const model = made.languageModel(id);
    if (model.specificationVersion === "v3") return model;
    const words = `the package ${sdk.package} is for another version of the AI SDK: one with models of v3 is needed`;
    throw new BackendError(words);
  };
}

async function* askThrough(sdk: LanguageModelV3, options: Asking, call: Call): ReturnType<AskModel> {
  const reader = (await sdk.doStream(options)).stream.getReader();
  for (;;) {
    const next = reader.read();
    // Comments may come before the next part.
    while ((await Promise.race([next, commentOf(call)])) === COMMENT) yield [COMMENT];
    const { done, value } = await next;
    if (done) return;
    yield [value];
  }
}

const COMMENT = { type: "comment" } as const;

function commentOf(call: Call): Promise<typeof COMMENT> {
  return new Promise((resolve) => {
    call.onComment = () => resolve(COMMENT);
  });
}

function named(name: string, set: Options | undefined): SharedV3ProviderOptions {
  return set === undefined ? {} : { [name]: set as SharedV3ProviderOptions[string] };
}

/** The key for a provider's own options: mostly the name of its package. */
function optionsName(name: string): string {
  return name.replace(/^.*\//, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
