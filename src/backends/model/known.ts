import { tokensIn } from "../used.ts";
import type { Price } from "./spending.ts";

export type ProviderSettings = {
  type: "openai" | "anthropic" | "google" | "openai-compatible" | "ai-sdk";
  /** Of the type `ai-sdk`: the package of its SDK, and what that is given beside the rest. */
  package?: string | undefined;
  settings?: Readonly<Record<string, unknown>> | undefined;
  apiKey: string | undefined;
  baseUrl: string | undefined;
  headers: Readonly<Record<string, string>>;
};

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

export type ModelTable = Readonly<Record<string, ModelSettings>>;

type Named = { table: ModelTable; model: string | undefined };

/** The model of a turn that names none. */
export const firstOf = ({ table, model }: Named): string => model ?? (Object.keys(table)[0] as string);

/** What can be said of the backend without its code. */
export const knownOf = (named: Named) => ({
  kind: "model",
  models: Object.keys(named.table),
  countTokens: (text: string) => tokensIn(text.length),
  contextTokens: (model: string | undefined) => named.table[model ?? firstOf(named)]?.contextTokens,
});
