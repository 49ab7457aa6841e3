/** Budgets, as the store counts them. */

/** What a budget allows and its use in the current window. The cost is in the currency of the prices. */
export type BudgetAmount = {
  /** Of attempts that have ended. */
  used: number;
  /** Of running turns. */
  reserved: number;
  /** As configured. */
  limit: number;
  /** Added to the limit by the grants in force. */
  granted: number;
};

export type BudgetState = "open" | "warning" | "exceeded";
export type BudgetSource = "rest" | "rpc" | "webhook" | "heartbeat";

/** A budget and its use in the current window. Undefined `agents`, `keys` and `sources` mean all. */
export type Budget = {
  name: string;
  per: "hour" | "day" | "month";
  timeZone: string;
  agents: readonly string[] | undefined;
  keys: readonly string[] | undefined;
  sources: readonly BudgetSource[] | undefined;
  tokens: BudgetAmount | undefined;
  cost: BudgetAmount | undefined;
  /** The part of the used tokens that backends did not report. */
  estimatedTokens: number;
  startsAt: number;
  resetsAt: number;
  state: BudgetState;
  then: "refuse" | "pause";
};

/** Raises the limits of a budget until `until`, or until the end of its window. */
export type BudgetGrant = {
  now: number;
  tokens: number | undefined;
  cost: number | undefined;
  until: number | undefined;
  by: string;
  streamKeep: number;
};

/** The entries of the gateway's stream. `limit` includes the grants. */
export type BudgetNews =
  | {
      name: "budget.warning" | "budget.exceeded";
      budgetName: string;
      unit: "tokens" | "cost";
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
