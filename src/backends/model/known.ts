import type { ModelSettings } from "./models.ts";
import { countTokens } from "./spending.ts";

export type ModelTable = Readonly<Record<string, ModelSettings>>;

type Named = { table: ModelTable; model: string | undefined };

/** The model of a turn that names none. */
export const firstOf = ({ table, model }: Named): string => model ?? (Object.keys(table)[0] as string);

/** What can be said of the backend without its code. */
export const knownOf = (named: Named) => ({
  kind: "model",
  models: Object.keys(named.table),
  countTokens: (text: string) => countTokens(text.length),
  contextTokens: (model: string | undefined) => named.table[model ?? firstOf(named)]?.contextTokens,
});
