import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { BackendError } from "#kit/errors.ts";
import { CHAT, createChatCompletions } from "./chat-completions.ts";
import { type AskModel, type Call, createModelFetch, type Send } from "./fetch.ts";
import type { ProviderSettings } from "./known.ts";

type Options = Readonly<Record<string, unknown>>;

export type Provider = {
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
    // The gateway keeps the conversation: the provider need not store any of it.
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
export const openProvider = async (settings: ProviderSettings, send: Send): Promise<Provider> => {
  const { type } = settings;
  if (type === "openai-compatible")
    return {
      model: createChatCompletions(settings, send),
      options: (set) => named(CHAT, set),
      ...{ canRefuseTools: true, tellsUsageEarly: false },
    };
  const { package: name = "" } = settings;
  const sdk: Sdk = type === "ai-sdk" ? { package: name, canRefuseTools: true, tellsUsageEarly: true } : SDKS[type];
  const calls = new WeakMap<AbortSignal, Call>();
  const provider = await makeProvider(sdk, settings, createModelFetch(send, calls));
  const { options, canRefuseTools, tellsUsageEarly } = sdk;
  return {
    model(id) {
      const model = provider(id);
      if (model.specificationVersion === "v3") return askThrough(model, calls);
      const words = `the package ${sdk.package} is for another version of the AI SDK: one with models of v3 is needed`;
      throw new BackendError(words);
    },
    options: (set) => named(optionsName(sdk.package), set || options ? { ...options, ...set } : undefined),
    ...{ canRefuseTools, tellsUsageEarly },
  };
};

type MadeProvider = { languageModel?(id: string): LanguageModelV3 } | undefined;
type MakeProvider = (settings: object) => MadeProvider;

/** Each package has one function that makes its provider, `createMistral` and the like. */
const makeProvider = async (sdk: Sdk, settings: ProviderSettings, fetch: typeof globalThis.fetch) => {
  const exported: Record<string, unknown> = await import(sdk.package).catch((cause: unknown) => {
    const words = `the SDK for providers of the type ${settings.type} cannot be loaded; is it installed?`;
    throw new BackendError(words, { cause });
  });
  const isFactory = ([name, value]: [string, unknown]) => /^create[A-Z]/.test(name) && typeof value === "function";
  const create = Object.entries(exported).find(isFactory)?.[1] as MakeProvider | undefined;
  const { apiKey = sdk.apiKey, baseUrl = sdk.baseUrl, headers, settings: more } = settings;
  const given = { ...(apiKey !== undefined && { apiKey }), ...(baseUrl !== undefined && { baseURL: baseUrl }) };
  const made = create?.({ ...more, ...given, headers: { ...headers }, fetch });
  if (typeof made?.languageModel !== "function")
    throw new BackendError(`the package ${sdk.package} is no provider of the AI SDK`);
  return made.languageModel.bind(made);
};

const askThrough = (sdk: LanguageModelV3, calls: WeakMap<AbortSignal, Call>): AskModel =>
  async function* (options, call) {
    calls.set(options.abortSignal, call);
    const reader = (await sdk.doStream(options)).stream.getReader();
    for (;;) {
      const next = reader.read();
      // Comments may come before the next part.
      while ((await Promise.race([next, commentOf(call)])) === COMMENT) yield [COMMENT];
      const { done, value } = await next;
      if (done) return;
      yield [value];
    }
  };

const COMMENT = { type: "comment" } as const;

const commentOf = (call: Call): Promise<typeof COMMENT> =>
  new Promise((resolve) => {
    call.onComment = () => resolve(COMMENT);
  });

const named = (name: string, set: Options | undefined): SharedV3ProviderOptions =>
  set === undefined ? {} : { [name]: set as SharedV3ProviderOptions[string] };

/** The key for a provider's own options: mostly the name of its package. */
const optionsName = (name: string): string =>
  name.replace(/^.*\//, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
