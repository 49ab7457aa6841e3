/** Budgets: what the store answers, and the orders that it takes. `policy.ts` has their rules. */
import type { Window } from "#kit/windows.ts";
import type { BudgetRule } from "./policy.ts";
import type { Claim } from "./records.ts";

/** Tokens of input and output, and their cost in billionths. */
export type Spend = { tokens: number; cost: number };

/**
 * One unit of a budget in its window. `used` is counted when an attempt ends. `reserved` is set aside for turns that run. The grants that apply raise
 * `limit` by `granted`.
 */
export type BudgetUse = { used: number; reserved: number; limit: number; granted: number };

export type BudgetState = "open" | "warning" | "exceeded";

export type BudgetStatus = {
  rule: BudgetRule;
  window: Window;
  /** Undefined for a unit without a limit. */
  tokens: BudgetUse | undefined;
  cost: BudgetUse | undefined;
  /** The part of the used tokens that backends did not report and the gateway estimated. */
  estimatedTokens: number;
  state: BudgetState;
};

/** Raises the limit of a budget until `until`, by default the end of its window. `by` is the name of the caller. */
export type GrantOrder = {
  now: number;
  tokens?: number | undefined;
  /** In billionths. */
  cost?: number | undefined;
  until?: number | undefined;
  by: string;
};

/** A request for the next step of a turn: the usage of its attempt so far, and the most that the step may use. */
export type ExtendOrder = { used: Spend; next: Spend };

/** A budget without room, the end of its window, and a sentence about it. */
export type BudgetRefusal = { budget: string; resetsAt: number; detail: string };

export interface BudgetStore {
  /** All budgets of the policy, in its order. */
  listBudgets(): Promise<BudgetStatus[]>;
  /**
   * Raises a budget's limits. The change goes to the gateway's stream, and turns that wait for the budget can begin. `budget-not-found`. `invalid-request`
   * for a unit that the budget does not limit, for no unit, and for an end that is past.
   */
  grantBudget(name: string, order: GrantOrder): Promise<BudgetStatus>;
  /**
   * Reserves the next step of a running turn, or returns the first budget without room. A turn to which no budget applies, and a claim that is not valid
   * any more, are never refused.
   */
  extendBudget(claim: Claim, order: ExtendOrder): Promise<BudgetRefusal | undefined>;
}

/** The entries of the gateway's stream. `limit` includes the grants. A cost is in the currency of the prices. */
export type BudgetNews =
  | {
      name: "budget.warning" | "budget.exceeded";
      budgetName: string;
      unit: keyof Spend;
      used: number;
      limit: number;
      resetsAt: number;
    }
  | {
      name: "budget.granted";
      budgetName: string;
      tokens: number | null;
      cost: number | null;
      until: number;
      grantedBy: string;
    };
