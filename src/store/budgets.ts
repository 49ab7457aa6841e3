/** Budgets: what the store answers, and the orders that it takes. `policy.ts` has their rules. */
import type { Window } from "#kit/windows.ts";
import type { BudgetRule } from "./policy.ts";

/** Tokens of input and output, and their cost in billionths. */
export type Spend = { tokens: number; cost: number };

/**
 * One unit of a budget in its window. `used` is counted when an attempt ends. `reserved` is set aside for turns that run. The grants that apply raise
 * `limit` by `granted`.
 */
export type BudgetUse = { used: number; reserved: number; limit: number; granted: number };

/** The source of a turn, as the configuration and the API name it. */
export type BudgetSource = "rest" | "rpc" | "webhook" | "heartbeat" | "schedule";
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

/** A budget without room, the end of its window, and a sentence about it. `isSpent`: its limit is used up, and not only reserved. */
export type BudgetRefusal = { budget: string; resetsAt: number; detail: string; isSpent: boolean };

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
