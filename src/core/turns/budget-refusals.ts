import type { CoreParts } from "#core/parts.ts";
import { GatewayError } from "#kit/errors.ts";

/** Counts a turn that a budget refused or ended. The budgets of single keys are counted together, and so are those of single tokens: there may be many. */
export function reportRefusal({ events }: Pick<CoreParts, "events">, budget: string): void {
  const [kindOrName = budget] = budget.split(":");
  events.budgetRefused({ budget: kindOrName });
}

/** The same for an error, if it is the refusal of a budget. */
export function reportRefusedBy(parts: Pick<CoreParts, "events">, error: unknown): void {
  if (error instanceof GatewayError && error.extra.budget) reportRefusal(parts, error.extra.budget.name);
}
