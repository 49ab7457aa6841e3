import { NO_POLICY } from "#store/policy.ts";
import type { BudgetRule, Turn } from "#store/store.ts";
import type { Records } from "./records.ts";

export type SpentFor = Pick<Turn, "agent" | "caller" | "surface">;

/** The last answer, because the calls for one turn ask several times. `byKey`: a gateway may have a budget for each of many keys. */
const last = {
  all: NO_POLICY.budgets,
  general: NO_POLICY.budgets,
  byKey: new Map<string, BudgetRule[]>(),
  agent: "",
  caller: "",
  surface: "",
  found: NO_POLICY.budgets,
};

/** The budgets that apply to a turn. */
export function budgetsOf({ bookmarks }: Records, of: SpentFor): readonly BudgetRule[] {
  const { budgets } = bookmarks.policy;
  if (budgets.length === 0) return budgets;
  const { agent, caller, surface } = of;
  if (last.all === budgets && last.agent === agent && last.caller === caller && last.surface === surface)
    return last.found;
  if (last.all !== budgets) sortByKey(budgets);
  const ofKey = last.byKey.get(caller);
  const found = (ofKey ? last.general.concat(ofKey) : last.general).filter((rule) => appliesTo(rule, of));
  Object.assign(last, { agent, caller, surface, found });
  return found;
}

function sortByKey(all: readonly BudgetRule[]): void {
  const byKey = new Map<string, BudgetRule[]>();
  for (const rule of all) for (const key of new Set(rule.keys)) byKey.set(key, (byKey.get(key) ?? []).concat(rule));
  Object.assign(last, { all, general: all.filter(({ keys }) => !keys), byKey });
}

function appliesTo({ agents, keys, surfaces }: BudgetRule, { agent, caller, surface }: SpentFor): boolean {
  return (agents?.includes(agent) ?? true) && (keys?.includes(caller) ?? true) && (surfaces?.includes(surface) ?? true);
}
