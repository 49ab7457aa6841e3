import type { Core } from "#core/core.ts";
import type { Registry } from "#observe/metrics.ts";
import type { BudgetStatus, BudgetUse } from "#store/store.ts";
import { createSampled } from "./sampled.ts";

/** The metrics of budgets. Budgets of single keys are left out, because there may be many. */
export function registerLimitGauges(registry: Registry, { store, clock, settings }: Core): void {
  const configured = () => settings().policy.budgets.filter(({ name }) => !name.includes(":"));
  const budgets = createSampled(clock, async () => (configured().length === 0 ? [] : await store.listBudgets()));
  registry.beforeScrape(budgets.refresh);
  registry.read(
    "gauge",
    "gateway_budget_used_ratio",
    "Used part of a budget in its window, grants included: the larger of tokens and cost.",
    () => {
      const uses = new Map(budgets.value()?.map((budget) => [budget.rule.name, usedPartOf(budget)]));
      return configured().flatMap(({ name: budget }) => {
        const value = uses.get(budget);
        return value === undefined ? [] : [{ labels: { budget }, value }];
      });
    },
  );
  registry.read("gauge", "gateway_budget_warn_ratio", "Part of a budget from which it warns (warnAt).", () =>
    configured().map(({ name: budget, warnAt }) => ({ labels: { budget }, value: warnAt })),
  );
}

function usedPartOf({ tokens, cost }: BudgetStatus): number {
  return Math.max(partOf(tokens), partOf(cost));
}

function partOf(use: BudgetUse | undefined): number {
  return use ? use.used / (use.limit + use.granted) : 0;
}
