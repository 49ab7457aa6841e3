import type { Claim, Store, Surface, TurnEnd, UsageCount, UsageRow } from "#store/store.ts";
import { createSums, HOUR } from "#store/usage-counts.ts";
import type { OpenTurnRecord, Records } from "./records.ts";

/** Whom something is counted for. */
type CountedFor = { agent: string; surface: Surface; caller: string };

const counterOf = (at: number, { agent, surface, caller }: CountedFor, model: string) => ({
  hour: at - (at % HOUR),
  agent,
  model,
  surface,
  caller,
});

/** Counts a message that started a turn. */
export const countMessage = (records: Records, at: number, of: CountedFor, model: string): void =>
  records.usage.add(counterOf(at, of, model), { messages: 1 });

export const countEnd = (
  records: Records,
  at: number,
  of: CountedFor,
  model: string,
  status: TurnEnd["status"],
): void => records.usage.add(counterOf(at, of, model), { [status]: 1 });

/** Counts an attempt that reached a backend. */
export const countAttempt = (
  records: Records,
  at: number,
  of: CountedFor,
  { model, usage, latencyMs }: UsageRow,
): void => {
  const { input, output, more } = usage;
  records.usage.add(counterOf(at, of, model), { attempts: 1, latencyMs, input, output, ...more });
};

/** How long the runner of an attempt that lost its claim may take to tell what it used. */
const KEPT_MS = 600_000;

/** The running turn's claim is about to be lost: its session was deleted, or its lease ended. */
export const keepLateAttempt = (records: Records, { turn, open }: OpenTurnRecord): void => {
  if (!open.lease) return;
  const { turnId, attempt: fence, agent, surface, caller } = turn;
  const endsAt = records.moment.time + KEPT_MS;
  records.lateAttempts.put({ turnId, fence, node: open.lease.node, agent, surface, caller, endsAt });
};

/** Counts what such an attempt used, once. There is nothing else to keep of it. */
export const countLateAttempt = (
  records: Records,
  { turnId, fence, node }: Claim,
  { now, usage }: Pick<TurnEnd, "now" | "usage">,
): void => {
  const late = records.lateAttempts.find(turnId, fence);
  if (late?.node !== node) return;
  records.lateAttempts.delete(late);
  if (usage) countAttempt(records, now, late, usage);
};

export const countUsage = (
  records: Records,
  { now, agent, surface, caller, ...used }: Parameters<Store["countUsage"]>[0],
): void => countAttempt(records, now, { agent, surface, caller }, used);

export const readUsage = (records: Records, { from, to, agent }: Parameters<Store["readUsage"]>[0]): UsageCount[] =>
  records.usage.between(from, to, agent);

export const sumUsage = (
  records: Records,
  { from, to, agent, by }: Parameters<Store["sumUsage"]>[0],
): Awaited<ReturnType<Store["sumUsage"]>> => {
  const sums = createSums(by);
  for (const count of records.usage.between(from, to, agent)) sums.add(count);
  return sums.all();
};
