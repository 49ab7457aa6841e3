/** Budgets as operators and tokens see them, and their grants. The store counts them. */
import type { Budget } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { suggest } from "#kit/fault-words.ts";
import { reaches } from "#kit/reach.ts";
import type { BudgetStatus, BudgetUse } from "#store/store.ts";
import type { Caller } from "./call.ts";
import type { CoreParts } from "./parts.ts";

const BILLION = 1_000_000_000;
const YEAR_MS = 366 * 86_400_000;
const WORDS = { tokens: "tokens", cost: "the cost" } as const;

/** The cost is in the currency of the prices. */
type Grant = { tokens: number | undefined; cost: number | undefined; until: number | undefined };

export function createBudgets({ store, clock, events }: CoreParts) {
  return {
    /** The budgets that the caller may see. */
    async list(caller: Caller): Promise<Budget[]> {
      return (await store.listBudgets()).filter(({ rule }) => maySee(caller, rule)).map(viewOf);
    },
    /** Raises a budget, and returns it. Throws `budget-not-found`, `forbidden` for a budget of the caller, and `invalid-request`. */
    async grant(name: string, grant: Grant, caller: Caller): Promise<Budget> {
      const now = clock.now();
      const all = await store.listBudgets();
      const budget = all.find(({ rule }) => rule.name === name);
      if (!budget) throw budgetNotFound(name, all);
      requireOthers(budget, caller);
      checkGrant(budget, grant, now);
      const { tokens, cost, until } = grant;
      const added = { tokens, cost: cost === undefined ? undefined : Math.round(cost * BILLION) };
      const granted = await store.grantBudget(name, { now, ...added, until, by: caller.name });
      events.budgetGranted({ budget: name, tokens, cost, caller: caller.name });
      return viewOf(granted);
    },
  };
}

/**
 * With limited `agents`, a caller may see the budgets of its agents, and those that count only its own turns. All others show the use of agents
 * or keys that it may not reach.
 */
function maySee(caller: Caller, { agents, keys, surfaces }: BudgetStatus["rule"]): boolean {
  if (caller.agents === undefined) return true;
  if (keys) return keys.every((key) => key === caller.name) && (surfaces?.includes("rpc") ?? true);
  return agents?.every((agent) => reaches(caller, agent)) ?? false;
}

/** Refuses a key that the budget names. The console's token is not a key: it may raise every budget. */
function requireOthers({ rule: { name, keys = [], surfaces } }: BudgetStatus, caller: Caller): void {
  if (caller.surface === "rest" && caller.scopes.includes("console")) return;
  const isOfRest = surfaces?.some((surface) => surface === "rest" || surface === "hooks") ?? true;
  if (!keys.includes(caller.name) || !isOfRest) return;
  throw new GatewayError(
    "forbidden",
    `The budget \`${name}\` applies to the key \`${caller.name}\`, which cannot raise it. Use the console token, or a key to which it does not apply.`,
  );
}

function checkGrant(budget: BudgetStatus, { tokens, cost, until }: Grant, now: number): void {
  if (tokens === undefined && cost === undefined)
    throw invalid("", `The grant adds nothing. Set ${unitsOf(budget)}.`, "adds nothing");
  for (const [unit, added] of [
    ["tokens", tokens],
    ["cost", cost],
  ] as const) {
    if (added === undefined || budget[unit]) continue;
    const detail = `The budget \`${budget.rule.name}\` does not limit ${WORDS[unit]}.`;
    throw invalid(`/${unit}`, detail, "is not limited by the budget");
  }
  if (until === undefined || (until > now && until <= now + YEAR_MS)) return;
  const message = until > now ? "is more than a year ahead" : "is not in the future";
  throw invalid("/until", `\`until\` ${message}.`, message);
}

/** The fields of a grant for the budget. */
function unitsOf({ tokens, cost }: BudgetStatus): string {
  if (tokens && cost) return "`tokens`, `cost` or both";
  return tokens ? "`tokens`" : "`cost`";
}

function invalid(pointer: string, detail: string, message: string): GatewayError {
  return new GatewayError("invalid-request", detail, { errors: [{ pointer, message }] });
}

function budgetNotFound(name: string, all: readonly BudgetStatus[]): GatewayError {
  const names = all.map(({ rule }) => rule.name);
  return new GatewayError("budget-not-found", `No budget is named \`${name}\`.${suggest(name, names)}`);
}

/** A budget as callers see it. */
function viewOf({ rule, window, tokens, cost, estimatedTokens, state }: BudgetStatus): Budget {
  const { name, per, timeZone, agents, keys, surfaces } = rule;
  return {
    name,
    per,
    timeZone,
    agents: agents ? [...agents] : null,
    keys: keys ? [...keys] : null,
    sources: surfaces ? surfaces.map((surface) => (surface === "hooks" ? "webhook" : surface)) : null,
    tokens: tokens ?? null,
    cost: cost ? inCurrency(cost) : null,
    estimatedTokens,
    startsAt: new Date(window.start).toISOString(),
    resetsAt: new Date(window.end).toISOString(),
    state,
    // biome-ignore lint/suspicious/noThenProperty: the name of the contract.
    then: rule.then,
  };
}

function inCurrency({ used, reserved, limit, granted }: BudgetUse): BudgetUse {
  return { used: used / BILLION, reserved: reserved / BILLION, limit: limit / BILLION, granted: granted / BILLION };
}
