/** The budgets of single keys and tokens: rules of the store that count only the turns of one name. At their limit, turns are refused. */
import { GatewayError } from "#kit/errors.ts";
import { isTimeZone } from "#kit/windows.ts";
import type { BudgetRule, KeyBudget, StorePolicy } from "#store/store.ts";

const BILLION = 1_000_000_000;
const WARN_AT = 0.8;

type Holder = { name: string; budget?: KeyBudget | undefined };
type Key = Holder & { scopes: readonly string[] };

/** The policy with the budgets of REST keys. Keys of one name, such as a key and its replacement, share a budget. */
export function withKeyBudgets(policy: StorePolicy, keys: readonly Key[]): StorePolicy {
  const rules = new Map<string, BudgetRule>();
  for (const { name, budget, scopes } of keys) {
    // Deliveries that a key of scope admin sends again are its turns, too.
    const surfaces = scopes.includes("admin") ? (["rest", "hooks"] as const) : (["rest"] as const);
    if (budget) rules.set(name, ruleOf(`key:${name}`, name, budget, surfaces));
  }
  return rules.size === 0 ? policy : { ...policy, budgets: [...policy.budgets, ...rules.values()] };
}

/** The budgets of RPC tokens. */
export function tokenBudgets(tokens: readonly Holder[]): BudgetRule[] {
  return tokens.flatMap(({ name, budget }) => (budget ? ruleOf(`token:${name}`, name, budget, ["rpc"]) : []));
}

function ruleOf(
  name: string,
  key: string,
  { per, timeZone, tokens, cost }: KeyBudget,
  surfaces: BudgetRule["surfaces"],
): BudgetRule {
  return {
    name,
    per,
    timeZone,
    agents: undefined,
    keys: [key],
    surfaces,
    tokens,
    cost: cost === undefined ? undefined : Math.round(cost * BILLION),
    warnAt: WARN_AT,
    // biome-ignore lint/suspicious/noThenProperty: the name of the configuration.
    then: "refuse",
  };
}

/** Checks the budget of a new key. A budget is named after its key, so no other key may have that name. */
export function checkKeyBudget({ name, budget }: Holder, others: readonly Holder[]): void {
  const namesake = others.find((other) => other.name === name && (budget ?? other.budget));
  if (namesake)
    refuse(
      "/name",
      `is the name of another key, ${budget ? "so this key cannot have a budget" : "which has a budget"}`,
    );
  if (!budget) return;
  const { timeZone, tokens, cost } = budget;
  if (tokens === undefined && cost === undefined) refuse("/budget", "has no limit: set `tokens`, `cost` or both");
  if (!isTimeZone(timeZone)) refuse("/budget/time_zone", "is not the name of a time zone, for example Europe/Berlin");
}

function refuse(pointer: string, message: string): never {
  throw new GatewayError("invalid-request", `\`${pointer.slice(1).replace("/", ".")}\` ${message}.`, {
    errors: [{ pointer, message }],
  });
}
