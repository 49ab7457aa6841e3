import type { Core } from "#core/core.ts";
import type { Registry } from "#observe/metrics.ts";
import type { BudgetStatus, BudgetUse, Share } from "#store/store.ts";
import { createSampled } from "./sampled.ts";

/** The metrics of budgets and shares. Budgets of single keys are left out, because there may be many. */
export function registerLimitGauges(registry: Registry, { store, clock, settings }: Core): void {
  const configured = () => settings().policy.budgets.filter(({ name }) => !name.includes(":"));
  const budgets = createSampled(clock, async () => (configured().length === 0 ? [] : await store.listBudgets()));
  const shares = createSampled(clock, async () => (settings().limits.store.share < 1 ? await store.readShares() : []));
  registry.beforeScrape(budgets.refresh);
  registry.beforeScrape(shares.refresh);
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
  registry.read(
    "gauge",
    "gateway_fullest_share_ratio",
    "Largest used fraction of a share (limits.share) among all callers, by kind.",
    () => {
      const { share, storeBytes, turns, events } = settings().limits.store;
      if (share >= 1) return [];
      const most = { bytes: share * storeBytes, turns: share * turns, events: share * events };
      return KINDS.map((kind) => ({
        labels: { kind },
        value: largest(shares.value(), kind) / Math.max(most[kind], 1),
      }));
    },
  );
}

const KINDS = ["bytes", "turns", "events"] as const;

function largest(shares: readonly Share[] = [], kind: (typeof KINDS)[number]): number {
  return shares.reduce((most, share) => Math.max(most, share[kind]), 0);
}

function usedPartOf({ tokens, cost }: BudgetStatus): number {
  return Math.max(partOf(tokens), partOf(cost));
}

function partOf(use: BudgetUse | undefined): number {
  return use ? use.used / (use.limit + use.granted) : 0;
}
