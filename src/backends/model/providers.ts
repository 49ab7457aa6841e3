import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import { BackendError } from "#kit/errors.ts";
import { chatBody, type PlainBody } from "./plain.ts";
import type { Wire } from "./wires/wire.ts";
import { WIRES } from "./wires/wires.ts";

export type ProviderSettings = {
  type: "openai" | "anthropic" | "google" | "openai-compatible";
  apiKey: string | undefined;
  baseUrl: string | undefined;
  headers: Readonly<Record<string, string>>;
};

/** A model of a provider, by the provider's own SDK. */
export type Provider = {
  wire: Wire;
  model(id: string): LanguageModelV3;
  /** What is set for a model, as the SDK wants to be told. */
  options(set: Readonly<Record<string, unknown>> | undefined): SharedV3ProviderOptions;
  /** Writes requests that the SDK need not make. */
  plainBody?: PlainBody;
  /** Whether a model that has called tools can be told to call no more and still sees them. */
  canRefuseTools: boolean;
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
export const openProvider = async (settings: ProviderSettings, fetch: Fetch): Promise<Provider> => {
  try {
    return await load(settings, fetch);
  } catch (cause) {
    throw new BackendError(`the SDK for providers of the type ${settings.type} cannot be loaded; is it installed?`, {
      cause,
    });
  }
};

const load = async (settings: ProviderSettings, fetch: Fetch): Promise<Provider> => {
  switch (settings.type) {
    case "openai": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      const provider = createOpenAI(settingsOf(settings, "https://api.openai.com/v1", fetch));
      return {
        wire: WIRES.responses,
        model: (id) => provider.responses(id),
        // The conversation is kept here: nothing of it has to stay with the provider.
        options: (set) => named("openai", { store: false, ...set }),
        canRefuseTools: true,
      };
    }
    case "anthropic": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      const provider = createAnthropic(settingsOf(settings, "https://api.anthropic.com/v1", fetch));
      return {
        wire: WIRES.anthropic,
        model: (id) => provider.messages(id),
        options: (set) => named("anthropic", set),
        canRefuseTools: false,
      };
    }
    case "google": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      const base = "https://generativelanguage.googleapis.com/v1beta";
      const provider = createGoogleGenerativeAI(settingsOf(settings, base, fetch));
      return {
        wire: WIRES.google,
        model: (id) => provider.languageModel(id),
        options: (set) => named("google", set),
        canRefuseTools: true,
      };
    }
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const { apiKey, ...others } = settingsOf(settings, "", fetch);
      const key = apiKey === "" ? {} : { apiKey };
      const provider = createOpenAICompatible({ name: "openaiCompatible", includeUsage: true, ...others, ...key });
      return {
        wire: WIRES.chat,
        plainBody: chatBody,
        model: (id) => provider.chatModel(id),
        options: (set) => named("openaiCompatible", set),
        canRefuseTools: true,
      };
    }
  }
};
