import { tokensIn } from "../token-counts.ts";
import type { Price } from "./spending.ts";

export type ProviderSettings = {
  type: "openai" | "anthropic" | "google" | "openai-compatible" | "ai-sdk";
  /** For the type `ai-sdk`: the package of its SDK, and the additional settings for it. */
  package?: string | undefined;
  settings?: Readonly<Record<string, unknown>> | undefined;
  apiKey: string | undefined;
  baseUrl: string | undefined;
  headers: Readonly<Record<string, string>>;
};

export type ModelSettings = {
  provider: ProviderSettings;
  /** The provider's name in the configuration. */
  providerName: string;
  model: string;
  contextTokens: number | undefined;
  maxOutputTokens: number | undefined;
  temperature: number | undefined;
  options: Readonly<Record<string, unknown>> | undefined;
  price: Price | undefined;
};

export type ModelTable = Readonly<Record<string, ModelSettings>>;

type Named = { table: ModelTable; model: string | undefined };

/** The model for a turn that names none. */
export function firstOf({ table, model }: Named): string {
  return model ?? (Object.keys(table)[0] as string);
}

/** The properties of the backend that are known before its code is loaded. */
export function knownOf(named: Named) {
  return {
    kind: "model",
    models: Object.keys(named.table),
    countTokens: (text: string) => tokensIn(text.length),
    contextTokens: (model: string | undefined) => named.table[model ?? firstOf(named)]?.contextTokens,
  };
}
