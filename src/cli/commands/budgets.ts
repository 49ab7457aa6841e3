import type { Command } from "commander";
import type { Budget } from "#generated/clients/typescript/src/rest-types.ts";
import { calling } from "../calling.ts";
import { UsageError } from "../failures.ts";
import { oneLine, printItem, printList } from "../output.ts";
import { endOf, positive, shortTime, spanTo, wholeNumber } from "../values.ts";

export function addBudgets(program: Command): void {
  const budgets = program
    .command("budgets")
    .summary("budgets of tokens and cost: list, grant")
    .description("The budgets of the configuration, and of keys and tokens, with their use in the current window.");
  addList(budgets);
  addGrant(budgets);
}

const UNITS = ["tokens", "cost"] as const;
type Unit = (typeof UNITS)[number];
type Amount = NonNullable<Budget["tokens"]>;
/** A row for each limit: a budget with two limits has two. */
type Row = { budget: Budget; unit: Unit; amount: Amount; isFirst: boolean };

function addList(budgets: Command): void {
  calling(
    budgets
      .command("list", { isDefault: true })
      .summary("list the budgets and their use")
      .addHelpText("after", "\nExamples:\n  agent-gateway budgets\n  agent-gateway budgets list --json"),
    async ({ gateway, options, signal }) => {
      const list = await gateway.budgets.list({ signal });
      const rows = list.budgets.flatMap(rowsOf);
      printList(options, list, {
        items: options.quiet ? rows.filter(({ isFirst }) => isFirst) : rows,
        id: ({ budget }) => budget.name,
        none: "No budgets. Configure them in `budgets`.",
        columns: [
          { title: "BUDGET", of: ({ budget, isFirst }) => (isFirst ? budget.name : "") },
          { title: "USED / LIMIT", of: ({ unit, amount }) => usedText(unit, amount), right: true },
          { title: "", of: ({ unit }) => unit },
          { title: "USE", of: ({ amount }) => barOf(amount) },
          { title: "", of: ({ amount }) => `${percentOf(amount)} %`, right: true },
          { title: "STATE", of: ({ budget, isFirst }) => (isFirst ? budget.state : "") },
          { title: "RESETS IN", of: ({ budget, isFirst }) => (isFirst ? spanTo(budget.resets_at) : "") },
        ],
      });
    },
  );
}

function addGrant(budgets: Command): void {
  calling<{ tokens?: string; cost?: string; until?: string }>(
    budgets
      .command("grant")
      .summary("raise a budget until its window ends, or until a given time")
      .argument("<budget>", "the name of the budget")
      .option("--tokens <n>", "the number of tokens to add")
      .option("--cost <amount>", "the cost to add, in the currency of the prices")
      .option("--until <when>", "the end of the grant: 2h, or 2027-03-01 (default: the end of the window)")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway budgets grant daily --tokens 500000\n  agent-gateway budgets grant daily --cost 5 --until 2h",
      ),
    async ({ gateway, options, signal }, name = "") => {
      const { tokens, cost, until } = options;
      if (tokens === undefined && cost === undefined)
        throw new UsageError("The grant adds nothing. Set --tokens, --cost or both.");
      const grant = {
        ...(tokens !== undefined && { tokens: wholeNumber(tokens, "--tokens") }),
        ...(cost !== undefined && { cost: positive(cost, "--cost") }),
        ...(until !== undefined && { until: endOf(until, "--until") }),
      };
      const budget = await gateway.budgets.grant(name, grant, { signal });
      const end = shortTime(grant.until ?? budget.resets_at);
      printItem(options, budget, name, () =>
        [
          `${oneLine(name)} is raised until ${end}.`,
          ...rowsOf(budget).map(
            ({ unit, amount }) => `Used: ${usedText(unit, amount)} ${unit}, ${percentOf(amount)} %.`,
          ),
        ].join("\n"),
      );
    },
  );
}

function rowsOf(budget: Budget): Row[] {
  return UNITS.flatMap((unit) => {
    const amount = budget[unit];
    return amount ? [{ budget, unit, amount }] : [];
  }).map((row, n) => ({ ...row, isFirst: n === 0 }));
}

function usedText(unit: Unit, { used, limit, granted }: Amount): string {
  const text = unit === "tokens" ? inGroups : moneyOf;
  return `${text(used)} / ${text(limit + granted)}`;
}

/** A whole number in groups of three digits. Does not use `Intl`, because its locale data delays the command. */
function inGroups(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Costs below 1 have four digits, so that a fraction of a cent is not shown as 0. */
function moneyOf(value: number): string {
  const digits = value === 0 || value >= 1 ? 2 : 4;
  const [whole = "", rest = ""] = value.toFixed(digits).split(".");
  return `${inGroups(Number(whole))}.${rest}`;
}

const WIDTH = 20;

/** The used part, the part that is reserved for running turns, and the rest. */
function barOf({ used, reserved, limit, granted }: Amount): string {
  const cells = (amount: number): number => Math.min(Math.round((amount / (limit + granted)) * WIDTH), WIDTH);
  const [full, taken] = [cells(used), cells(used + reserved)];
  return "█".repeat(full) + "▒".repeat(taken - full) + "░".repeat(WIDTH - taken);
}

/** Rounded down, so that only a spent budget shows 100 %. */
function percentOf({ used, limit, granted }: Amount): number {
  return Math.floor((used / (limit + granted)) * 100);
}
