import type { BudgetState, Spend } from "#store/store.ts";

/** Tokens and a cost in billionths, in each of these budgets. `used` is the part that the turn has used before its present step. */
export type Reservation = Readonly<Spend> & { readonly budgets: readonly string[]; readonly used: Readonly<Spend> };

/** The use of a budget in the window that began at `windowStart`. A budget without a record is not used. Costs are in billionths. */
export type BudgetRecord = {
  readonly name: string;
  readonly windowStart: number;
  readonly used: Readonly<Spend>;
  /** The sum of the reservations of all running turns, also of those that began in an earlier window. */
  readonly reserved: Readonly<Spend>;
  /** The part of `reserved` that these turns have used before their present steps. */
  readonly inUse: Readonly<Spend>;
  readonly estimatedTokens: number;
  readonly grants: readonly (Readonly<Spend> & { readonly until: number })[];
  /** The state that the gateway's stream reported last in this window. */
  readonly reported: BudgetState;
};
