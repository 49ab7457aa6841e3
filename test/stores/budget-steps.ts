import type { BudgetRule, BudgetStatus, ClaimedTurn } from "#store/store.ts";
import { START } from "#test/harness/clock.ts";
import { configureBudgets } from "./budgets.ts";
import { toldNews } from "./inbound.ts";
import { LEASE_MS, used, type World, type WorldOptions } from "./world.ts";

/** The steps of the suite about budgets. */
export const HOUR = 3_600_000;
/** The hours of the suite's clock begin with it. */
export const NEXT_HOUR = START + HOUR;

export async function configure(world: World, ...rules: Partial<BudgetRule>[]): Promise<void> {
  await configureBudgets(world.store, rules);
}

export async function statusOf(world: World, name = "hourly"): Promise<BudgetStatus> {
  const found = (await world.store.listBudgets()).find(({ rule }) => rule.name === name);
  if (!found) throw new Error(`there is no budget ${name}`);
  return found;
}
export async function tokensOf(world: World, name?: string) {
  const { tokens } = await statusOf(world, name);
  return [tokens?.used, tokens?.reserved];
}

export function claimAtOnce(world: World) {
  return { now: world.clock.now(), node: "node_a", leaseMs: LEASE_MS, replyMessageId: world.newId("msg") };
}
export async function startAtOnce(world: World, options: WorldOptions = {}): Promise<ClaimedTurn | undefined> {
  return (await world.store.startTurn(world.order({ claim: claimAtOnce(world), ...options }))).claimed;
}
export async function runAtOnce(world: World, tokens: number, options: WorldOptions = {}): Promise<void> {
  const claimed = await startAtOnce(world, { session: world.newId("chat"), ...options });
  if (!claimed) throw new Error("the turn was not claimed at once");
  await world.end(claimed, { usage: used(tokens, 0) });
}
export async function claimedIds(world: World): Promise<string[]> {
  return (await world.claim()).turns.map(({ turn }) => turn.turnId);
}

export function newsOfBudgets(world: World) {
  return toldNews(world).filter(({ name }) => name.startsWith("budget."));
}
