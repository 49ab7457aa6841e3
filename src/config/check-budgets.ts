import { nearest } from "#kit/nearest.ts";
import { isTimeZone } from "#kit/windows.ts";
import type { CheckedConfig } from "./config.ts";
import { type Findings, listed, meantOrListed, notAmong, type Path } from "./problems.ts";

type Budget = CheckedConfig["budgets"][string];
type Agent = CheckedConfig["agents"][string];

/** Checks that each budget has a limit and a time zone and that its agents exist. Warns of limits that cannot work. */
export function checkBudgets(config: CheckedConfig, findings: Findings): void {
  for (const [name, budget] of Object.entries(config.budgets)) checkBudget(["budgets", name], budget, config, findings);
  const { rest, rpc } = config.gateway;
  for (const [door, list, holders] of [
    ["rest", "keys", rest.auth.keys],
    ["rpc", "tokens", rpc.auth.tokens],
  ] as const)
    for (const [index, { budget }] of holders.entries())
      if (budget) checkLimits(["gateway", door, "auth", list, index, "budget"], budget, findings);
}

type Limits = Pick<Budget, "timeZone" | "tokens" | "cost">;

function checkLimits(at: Path, { timeZone, tokens, cost }: Limits, { refuse }: Findings): void {
  if (tokens === undefined && cost === undefined)
    refuse(at, "has no limit: give it `tokens`, `cost` or both, for example `tokens: 2000000`.", "key");
  if (!isTimeZone(timeZone)) refuse([...at, "timeZone"], `is not the name of a time zone${meantZone(timeZone)}`);
}

function checkBudget(at: Path, budget: Budget, config: CheckedConfig, { refuse, warn }: Findings): void {
  const { cost, agents = [], keys = [] } = budget;
  checkLimits(at, budget, { refuse, warn });
  const configured = Object.keys(config.agents);
  for (const [index, agent] of agents.entries())
    if (!configured.includes(agent))
      refuse([...at, "agents", index], `names an agent ${notAmong(configured, agent, "agents")}`);
  const callers = callersOf(config);
  for (const [index, key] of keys.entries())
    if (!callers.includes(key))
      warn(
        [...at, "keys", index],
        `names a key or token that is not in the configuration, so it matches only a created key of this name${callers.length === 0 ? "." : `; ${meantOrListed(callers, key)}`}`,
      );
  if (cost !== undefined) checkPrices([...at, "cost"], budget, config, { refuse, warn });
}

/** The end of a sentence about a name that is not a time zone. */
export function meantZone(zone: string): string {
  const region = zone.split("/")[0]?.toLowerCase();
  // Compares only the zones of one region, because there are hundreds of names.
  const zones = Intl.supportedValuesOf("timeZone");
  const meant =
    nearest(
      zone,
      zones.filter((one) => one.toLowerCase().startsWith(`${region}/`)),
    ) ?? zones.find((one) => one.toLowerCase().endsWith(`/${zone.replaceAll(" ", "_").toLowerCase()}`));
  return meant === undefined ? ", for example `Europe/Berlin`." : `; did you mean \`${meant}\`?`;
}

/** The names of callers that the configuration has. */
function callersOf({ gateway, webhooks, schedules }: CheckedConfig): string[] {
  const named = [...gateway.rest.auth.keys, ...gateway.rpc.auth.tokens].map(({ name }) => name);
  const ofWebhooks = [webhooks.token ?? []]
    .flat()
    .map((token) => (typeof token === "string" ? undefined : token.name) ?? "shared");
  const signed = Object.entries(webhooks.mappings).flatMap(([name, { verify }]) => (verify ? [name] : []));
  const console = gateway.console.token === undefined ? [] : ["console"];
  return [...new Set([...named, ...console, ...ofWebhooks, ...signed, ...Object.keys(schedules)])];
}

/** Warns if the cost of an agent is not known: its turns do not count for a limit of the cost. */
function checkPrices(at: Path, { agents }: Budget, config: CheckedConfig, { warn }: Findings): void {
  const names = agents ?? Object.keys(config.agents).filter((name) => config.agents[name]?.backend !== "echo");
  const free = names.filter((name) => {
    const agent = config.agents[name];
    return agent !== undefined && !hasPrices(agent);
  });
  if (free.length > 0)
    warn(
      at,
      `does not count the turns of ${listed(free)}, because their cost is unknown: set a \`price\` for each model, or limit \`tokens\`.`,
    );
}

function hasPrices({ backend, models }: Agent): boolean {
  return (
    backend === "model" && !Array.isArray(models) && Object.values(models).every(({ price }) => price !== undefined)
  );
}
