import type { AgentConfig, BudgetConfig, Config } from "#config/config.ts";
import type { BudgetRule, BudgetSource, Reserve, StorePolicy, Surface } from "#store/store.ts";

const BILLION = 1_000_000_000;
/** The price of a million tokens, as the price of a token in billionths. */
const BILLIONTHS_A_TOKEN = BILLION / 1_000_000;
const CHARACTERS_A_TOKEN = 4;
/** The assumed length of a reply if the model has no `maxOutputTokens`. */
const USUAL_OUTPUT = 4_096;

const SURFACES: Readonly<Record<BudgetSource, Surface>> = {
  rest: "rest",
  rpc: "rpc",
  webhook: "hooks",
  heartbeat: "heartbeat",
  schedule: "schedule",
};

/** The budgets of the configuration, and what each agent reserves in them. */
export function budgetPolicyOf({ budgets, agents }: Config): Pick<StorePolicy, "budgets" | "reserves"> {
  const rules = Object.entries(budgets).map(([name, budget]) => ruleOf(name, budget));
  const reserves = Object.entries(agents).map(([name, agent]) => [name, reserveOf(agent)]);
  return { budgets: rules, reserves: Object.fromEntries(reserves) };
}

function ruleOf(name: string, { sources, cost, ...budget }: BudgetConfig): BudgetRule {
  return {
    ...budget,
    name,
    surfaces: sources?.map((source) => SURFACES[source]),
    cost: cost === undefined ? undefined : Math.round(cost * BILLION),
  };
}

/** The highest of its models, because a turn may use any of them. */
function reserveOf({ instructions, modelTable }: AgentConfig): Reserve {
  const models = Object.values(modelTable);
  const highest = (values: readonly number[], least: number) => Math.max(least, ...values);
  return {
    promptTokens: Math.ceil(instructions.length / CHARACTERS_A_TOKEN),
    outputTokens:
      models.length === 0
        ? USUAL_OUTPUT
        : highest(
            models.map((one) => one.maxOutputTokens ?? USUAL_OUTPUT),
            1,
          ),
    inputPrice:
      highest(
        models.map(({ price }) => price?.input ?? 0),
        0,
      ) * BILLIONTHS_A_TOKEN,
    outputPrice:
      highest(
        models.map(({ price }) => price?.output ?? 0),
        0,
      ) * BILLIONTHS_A_TOKEN,
  };
}
