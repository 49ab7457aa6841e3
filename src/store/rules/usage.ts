import type { Claim, Store, Surface, TurnEnd, UsageCount, UsageCounts, UsageRow } from "#store/store.ts";
import { COUNT_NAMES, HOUR, NO_COUNTS } from "#store/usage-counts.ts";
import { countEstimate, countSpent } from "./budgets.ts";
import type { OpenTurnRecord, Pieces, Records, RuleInPieces } from "./records.ts";

const DAY = 24 * HOUR;

/** Whom something is counted for. */
type CountedFor = { agent: string; surface: Surface; caller: string };

function counterOf(at: number, { agent, surface, caller }: CountedFor, model: string) {
  return {
    hour: at - (at % HOUR),
    agent,
    model,
    surface,
    caller,
  };
}

/** Counts a message that started a turn. */
export function countMessage(records: Records, at: number, of: CountedFor, model: string): void {
  records.usage.add(counterOf(at, of, model), { messages: 1 });
}

export function countEnd(records: Records, at: number, of: CountedFor, model: string, status: TurnEnd["status"]): void {
  records.usage.add(counterOf(at, of, model), { [status]: 1 });
}

/** Counts an attempt that reached a backend, and the end that its turn comes to with it. */
export function countAttempt(
  records: Records,
  at: number,
  of: CountedFor,
  { model, usage, latencyMs }: UsageRow,
  ended?: TurnEnd["status"],
): void {
  const { input, output, more } = usage;
  const change: Partial<UsageCounts> = { attempts: 1, latencyMs, input, output };
  if (more) Object.assign(change, more);
  if (ended) change[ended] = 1;
  records.usage.add(counterOf(at, of, model), change);
  if (records.bookmarks.policy.budgets.length > 0) countSpent(records, of, usage);
}

/** The time in which the runner of an attempt that lost its claim may still report the usage. */
const RETAINED_MS = 600_000;

/** The running turn's claim is about to be lost: its session was deleted, or its lease ended. */
export function storeLateAttempt(records: Records, { turn, ordinal, open }: OpenTurnRecord): void {
  if (!open.lease) return;
  const { turnId, attempt: fence, agent, surface, caller } = turn;
  const endsAt = records.moment.time + RETAINED_MS;
  const promptBytes =
    (records.sessions.at(ordinal, turn.sessionId)?.session.contextBytes ?? 0) + (open.contextBytes ?? 0);
  records.lateAttempts.put({ turnId, fence, node: open.lease.node, agent, surface, caller, endsAt, promptBytes });
}

/** Counts the usage of such an attempt, once. There is nothing else to keep of it. */
export function countLateAttempt(
  records: Records,
  { turnId, fence, node }: Claim,
  { now, usage }: Pick<TurnEnd, "now" | "usage">,
  replyBytes: number | undefined,
): void {
  const late = records.lateAttempts.find(turnId, fence);
  if (late?.node !== node) return;
  records.lateAttempts.delete(late);
  if (!usage) return;
  countAttempt(records, now, late, usage);
  countEstimate(records, late, usage.usage, late.promptBytes ?? 0, replyBytes);
}

/** The bytes of the reply of an attempt that the backend has probably worked on, for an estimate of its usage. */
export function replyBytesOf({
  status,
  reply,
  error,
}: Pick<TurnEnd, "status" | "reply" | "error">): number | undefined {
  const isAsked = status === "completed" || status === "cancelled" || reply !== "" || error?.name === "turn-timeout";
  return isAsked ? Buffer.byteLength(reply) : undefined;
}

type UsageQuery = Parameters<Store["readUsage"]>[0];

/** The number of counters that are read together. */
const COUNTERS_A_PIECE = 1_000;

/** Calls `use` for all counters of a query, in the order of their hours. */
function* readCounters(
  { usage }: Records,
  { from, to, agents }: UsageQuery,
  use: (count: UsageCount) => void,
): Pieces<void> {
  for (let place: number | UsageCount = from; ; ) {
    const counts: UsageCount[] = usage.after(place, COUNTERS_A_PIECE);
    for (const count of counts) {
      if (count.hour >= to) return;
      if (agents === undefined || agents.includes(count.agent)) use(count);
    }
    const last = counts.at(-1);
    if (!last || counts.length < COUNTERS_A_PIECE) return;
    place = last;
    yield;
  }
}

/** Deletes the oldest counters whose hour ended at `time` or earlier, at most a thousand. */
export function forgetUsageBefore({ usage }: Records, time: number): void {
  const isEnded = ({ hour }: UsageCount) => hour + HOUR <= time;
  // Most sweeps find nothing to delete.
  if (usage.after(0, 1).every((first) => !isEnded(first))) return;
  for (const count of usage.after(0, COUNTERS_A_PIECE).filter(isEnded)) usage.delete(count);
}

export const readUsage: RuleInPieces<"readUsage"> = function* (records, query) {
  const counts: UsageCount[] = [];
  yield* readCounters(records, query, (count) => counts.push(count));
  return counts;
};

/** Adds counters up, grouped by the key `by`; the key of a day is the time at which it begins. */
export const sumUsage: RuleInPieces<"sumUsage"> = function* (records, { by, ...query }) {
  const sums = new Map<string | number, { counts: UsageCounts; withoutUsage: number }>();
  yield* readCounters(records, query, (count) => {
    const key = by === "day" ? Math.floor(count.hour / DAY) * DAY : count[by];
    const sum = sums.get(key) ?? { counts: { ...NO_COUNTS }, withoutUsage: 0 };
    sums.set(key, sum);
    for (const name of COUNT_NAMES) sum.counts[name] += count[name];
    if (count.input === 0 && count.output === 0) sum.withoutUsage += count.completed;
  });
  return [...sums].map(([key, { counts, withoutUsage }]) => ({ key, counts, withoutUsage }));
};
