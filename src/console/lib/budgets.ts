import type { Budget } from "#generated/clients/typescript/src/rpc-types.ts";
import { count, money } from "./format.ts";

type Unit = "tokens" | "cost";
type Amount = NonNullable<Budget["tokens"]>;

/** A limit of a budget, for a bar: parts of the limit in percent, together at most 100. */
export type BudgetBar = {
  unit: Unit;
  words: string;
  /** The reserved and the granted amount; empty if both are 0. */
  more: string;
  usedPercent: number;
  reservedPercent: number;
  percent: number;
};

/** The limits of a budget, the tokens first. */
export function barsOf(budget: Pick<Budget, Unit>): BudgetBar[] {
  return (["tokens", "cost"] as const).flatMap((unit) => {
    const amount = budget[unit];
    return amount ? [barOf(unit, amount)] : [];
  });
}

function barOf(unit: Unit, { used, reserved, limit, granted }: Amount): BudgetBar {
  const text = unit === "tokens" ? count : (cost: number) => (cost === 0 ? "0.00" : money(cost));
  const most = limit + granted;
  const share = (amount: number): number => Math.min(100, (100 * amount) / most);
  const usedPercent = share(used);
  return {
    unit,
    words: `${text(used)} of ${text(most)} ${unit === "tokens" ? "tokens" : "(cost)"}`,
    more: [reserved > 0 && `${text(reserved)} reserved`, granted > 0 && `${text(granted)} granted`]
      .filter(Boolean)
      .join(" · "),
    usedPercent,
    reservedPercent: share(used + reserved) - usedPercent,
    // Rounded down, so that only a spent budget shows 100 %.
    percent: Math.floor((100 * used) / most),
  };
}

/** The turns that a budget counts, in words. */
export function scopeOf({ name, per, timeZone, agents, keys, sources }: Omit<Budget, Unit>): string {
  const zone = timeZone === "UTC" ? "" : ` (${timeZone})`;
  // The budget of a key or token has its name.
  if (name.includes(":")) return `each ${per}${zone}`;
  return [`each ${per}${zone}`, namesOf(agents), namesOf(keys), namesOf(sources)].filter(Boolean).join(" · ");
}

/** The most names of a list. */
const NAMED = 3;

function namesOf(names: readonly string[] | null): string {
  if (!names) return "";
  return names.slice(0, NAMED).join(", ") + (names.length > NAMED ? ` +${names.length - NAMED}` : "");
}
