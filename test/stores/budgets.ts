import { NO_POLICY } from "#store/policy.ts";
import type { BudgetRule, Store } from "#store/store.ts";

/** The tokens that a turn of `main` reserves for its reply. */
export const RESERVED = 100;

const RESERVE = { promptTokens: 0, outputTokens: RESERVED, inputPrice: 1, outputPrice: 3 };

/** A budget by the hour, in which a test sets only the relevant fields. */
export function budgetRule(rule: Partial<BudgetRule>): BudgetRule {
  return {
    name: "hourly",
    per: "hour",
    timeZone: "UTC",
    agents: undefined,
    keys: undefined,
    surfaces: undefined,
    tokens: rule.cost === undefined ? 1e9 : undefined,
    cost: undefined,
    warnAt: 0.8,
    // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
    then: "refuse",
    ...rule,
  };
}

export const RESERVES = { main: RESERVE, one: RESERVE, two: RESERVE };

export async function configureBudgets(store: Store, rules: readonly Partial<BudgetRule>[]): Promise<void> {
  await store.configure({ ...NO_POLICY, budgets: rules.map(budgetRule), reserves: RESERVES });
}
