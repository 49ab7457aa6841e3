import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { BackendError } from "#kit/errors.ts";
import { CHAT, createChatCompletions } from "./chat-completions.ts";
import { type AskModel, type Call, createModelFetch, type Send } from "./fetch.ts";
import type { ProviderSettings } from "./known.ts";

export type Provider = {
  model(id: string): AskModel;
  /** What is set for a model, as the SDK wants to be told. */
  options(set: Readonly<Record<string, unknown>> | undefined): SharedV3ProviderOptions;
  /** Whether a model that has called tools can be told to call no more and still sees them. */
  canRefuseTools: boolean;
  /** Whether its events may tell what was used before the end, which its SDK shows at the end alone. */
  tellsUsageEarly: boolean;
};

type Fetch = typeof globalThis.fetch;
type Options = SharedV3ProviderOptions[string];

/** No variable of the environment chooses where a key is sent to: an address and a key are always given. */
const settingsOf = ({ apiKey, baseUrl, headers }: ProviderSettings, baseURL: string, fetch: Fetch) => ({
  apiKey: apiKey ?? "",
  baseURL: baseUrl ?? baseURL,
  headers: { ...headers },
  fetch,
});

const named = (name: string, set: Readonly<Record<string, unknown>> | undefined): SharedV3ProviderOptions =>
  set === undefined ? {} : { [name]: set as Options };

/** Opens a provider. Its SDK is loaded with the first turn that needs it, and none before. */
export const openProvider = async (settings: ProviderSettings, send: Send): Promise<Provider> => {
  try {
    return await load(settings, send);
  } catch (cause) {
    if (cause instanceof BackendError) throw cause;
    throw new BackendError(`the SDK for providers of the type ${settings.type} cannot be loaded; is it installed?`, {
      cause,
    });
  }
};

const load = async (settings: ProviderSettings, send: Send): Promise<Provider> => {
  const calls = new WeakMap<AbortSignal, Call>();
  const fetch = createModelFetch(send, calls);
  const through = (sdk: LanguageModelV3) => askThrough(sdk, calls);
  switch (settings.type) {
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      const provider = createOpenAI(settingsOf(settings, "https://api.openai.com/v1", fetch));
      return {
        model: (id) => through(provider.responses(id)),
        // The conversation is kept here: nothing of it has to stay with the provider.
        options: (set) => named("openai", { store: false, ...set }),
        canRefuseTools: true,
        tellsUsageEarly: false,
      };
    }
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      const provider = createAnthropic(settingsOf(settings, "https://api.anthropic.com/v1", fetch));
      return {
        model: (id) => through(provider.messages(id)),
        options: (set) => named("anthropic", set),
        canRefuseTools: false,
        tellsUsageEarly: true,
      };
    }
    case "google": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      const base = "https://generativelanguage.googleapis.com/v1beta";
      const provider = createGoogleGenerativeAI(settingsOf(settings, base, fetch));
      return {
        model: (id) => through(provider.languageModel(id)),
        options: (set) => named("google", set),
        canRefuseTools: true,
        tellsUsageEarly: true,
      };
    }
    case "openai-compatible":
      return {
        model: createChatCompletions(settings, send),
        options: (set) => named(CHAT, set),
        canRefuseTools: true,
        tellsUsageEarly: false,
      };
    case "ai-sdk":
      return await loadPackage(settings, fetch, through);
  }
};

const askThrough =
  (sdk: LanguageModelV3, calls: WeakMap<AbortSignal, Call>): AskModel =>
  async (options, call) => {
    calls.set(options.abortSignal, call);
    const reader = (await sdk.doStream(options)).stream.getReader();
    return async () => {
      const { done, value } = await reader.read();
      return done ? undefined : [value];
    };
  };

type MadeProvider = { languageModel?(id: string): LanguageModelV3 };

/** A provider whose SDK is not one of ours: each of them has one function that makes it, `createMistral` and the like. */
const loadPackage = async (
  settings: ProviderSettings,
  fetch: Fetch,
  through: (sdk: LanguageModelV3) => AskModel,
): Promise<Provider> => {
  const { package: name = "", apiKey, baseUrl, headers, settings: more } = settings;
  const exported = (await import(name)) as Record<string, unknown>;
  const [, create] = Object.entries(exported).find(([key, value]) => isFactory(key, value)) ?? [];
  const made = (create as ((settings: object) => MadeProvider) | undefined)?.({
    ...more,
    ...(apiKey !== undefined && { apiKey }),
    ...(baseUrl !== undefined && { baseURL: baseUrl }),
    headers: { ...headers },
    fetch,
  });
  if (typeof made?.languageModel !== "function")
    throw new BackendError(`the package ${name} is no provider of the AI SDK`);
  const key = optionsName(name);
  return {
    model: (id) => {
      const model = made.languageModel?.(id) as LanguageModelV3;
      if (model.specificationVersion === "v3") return through(model);
      throw new BackendError(
        `the package ${name} is for another version of the AI SDK: one with models of v3 is needed`,
      );
    },
    options: (set) => named(key, set),
    canRefuseTools: true,
    tellsUsageEarly: true,
  };
};

const isFactory = (name: string, value: unknown): boolean => /^create[A-Z]/.test(name) && typeof value === "function";

/** What a provider calls its own options: mostly as its package is called. */
const optionsName = (name: string): string =>
  name.replace(/^.*\//, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
