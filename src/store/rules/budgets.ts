/**
 * Budgets. When it begins and before each further step, a turn reserves the maximum usage of its next request in each budget that applies to it; its
 * usage is counted when an attempt ends. It begins only if the used and the reserved part together are below the limit. So no budget is exceeded by more
 * than one reservation, however many turns start at once.
 */
import { GatewayError } from "#kit/errors.ts";
import { isUnreported, type Usage } from "#kit/usages.ts";
import { type Window, windowAt } from "#kit/windows.ts";
import type {
  BudgetRefusal,
  BudgetRule,
  BudgetState,
  BudgetStatus,
  BudgetUse,
  GatewayEntry,
  Reserve,
  Spend,
} from "#store/store.ts";
import { isPaused } from "./agents.ts";
import { requestDelayedBeats } from "./beats.ts";
import type { BudgetRecord, Reservation } from "./budget-records.ts";
import { budgetsOf, type SpentFor } from "./budgets-of-turns.ts";
import { appendNews } from "./gateway.ts";
import { NO_SEQ } from "./journal.ts";
import { isCompaction, type OpenTurnRecord, type Records, type Rule } from "./records.ts";

const UNITS = ["tokens", "cost"] as const;
type Unit = (typeof UNITS)[number];

const NOTHING: Spend = { tokens: 0, cost: 0 };
const NO_RESERVE: Reserve = { promptTokens: 0, outputTokens: 4_096, inputPrice: 0, outputPrice: 0 };
const BYTES_A_TOKEN = 4;

/**
 * The record that counts now. A record belongs to the window in which it began. Reservations pass on to the next window, in which their turns end.
 */
function currentOf({ budgets, moment: { now } }: Records, rule: BudgetRule): BudgetRecord {
  const found = budgets.find(rule.name);
  const { start, end } = windowOf(now, rule, found);
  if (found && found.windowStart >= start) return found.windowStart < end ? found : { ...found, windowStart: start };
  return {
    name: rule.name,
    windowStart: start,
    used: NOTHING,
    reserved: found?.reserved ?? NOTHING,
    inUse: found?.inUse ?? NOTHING,
    estimatedTokens: 0,
    grants: found?.grants.filter(({ until }) => until > now) ?? [],
    reported: "open",
  };
}

const HOUR = 3_600_000;

/**
 * A clock that is behind by up to an hour or a window does not return to an earlier window. If a record is further ahead, the clock was wrong when it was
 * written, and its use counts now.
 */
function windowOf(now: number, rule: BudgetRule, record: BudgetRecord | undefined): Window {
  const window = windowAt(now, rule);
  const start = record?.windowStart ?? 0;
  return start < window.end || start > window.end + HOUR ? window : windowAt(start, rule);
}

/** The limit of a unit with its grants. */
function limitOf(rule: BudgetRule, { grants }: BudgetRecord, unit: Unit, now: number): number {
  let limit = rule[unit] ?? Infinity;
  for (const grant of grants) if (grant.until > now) limit += grant[unit];
  return limit;
}

function useOf(
  { moment: { now } }: Records,
  rule: BudgetRule,
  record: BudgetRecord,
  unit: Unit,
): BudgetUse | undefined {
  const limit = rule[unit];
  if (limit === undefined) return undefined;
  const granted = limitOf(rule, record, unit, now) - limit;
  return { used: record.used[unit], reserved: record.reserved[unit], limit, granted };
}

function statusOf(records: Records, rule: BudgetRule): BudgetStatus {
  const { now } = records.moment;
  const record = currentOf(records, rule);
  const [tokens, cost] = UNITS.map((unit) => useOf(records, rule, record, unit));
  const { estimatedTokens, used } = record;
  const window = windowOf(now, rule, record);
  return { rule, window, tokens, cost, estimatedTokens, state: stateOf(rule, record, used, now) };
}

function stateOf(rule: BudgetRule, record: BudgetRecord, used: Spend, now: number): BudgetState {
  let part = 0;
  for (const unit of UNITS) part = Math.max(part, used[unit] / limitOf(rule, record, unit, now));
  return part >= 1 ? "exceeded" : part >= rule.warnAt ? "warning" : "open";
}

/** A budget without room. */
export type NoRoom = BudgetRefusal & { rule: BudgetRule };

/**
 * The budget that prevents the next request of a turn: one that refuses, or else the one that starts again last. `own` is the reservation of the turn,
 * and `spent` its usage, which no budget has counted yet. A budget is spent by the use of running turns as well: turns that wait for each other's
 * reservations would wait for ever.
 */
export function findNoRoom(
  records: Records,
  budgets: readonly BudgetRule[],
  own?: Reservation,
  spent: Spend = NOTHING,
): NoRoom | undefined {
  const { now } = records.moment;
  let found: NoRoom | undefined;
  for (const rule of budgets) {
    const record = currentOf(records, rule);
    const mine = own?.budgets.includes(rule.name) ? own : undefined;
    for (const unit of UNITS) {
      const limit = limitOf(rule, record, unit, now);
      const used = record.used[unit] + spent[unit];
      if (used + record.reserved[unit] - (mine?.[unit] ?? 0) < limit) continue;
      const window = windowOf(now, rule, record);
      const isSpent = used + record.inUse[unit] - (mine?.used[unit] ?? 0) >= limit;
      const detail = wordsOf(rule, unit, limit, window, isSpent);
      const noRoom = { budget: rule.name, resetsAt: window.end, rule, isSpent, detail };
      if (!found || rankOf(noRoom) > rankOf(found)) found = noRoom;
    }
  }
  return found;
}

function rankOf({ rule, isSpent, resetsAt }: NoRoom): number {
  return (isSpent && rule.then === "refuse" ? 2e15 : isSpent ? 1e15 : 0) + resetsAt;
}

export function mustRefuse({ rule, isSpent }: NoRoom): boolean {
  return isSpent && rule.then === "refuse";
}

/**
 * True for a turn that fails if its budget has no room. A heartbeat turn waits, because its events would be lost after a few failed turns. A compaction never waits for
 * the next window, because its session waits for it.
 */
export function isEndedBy(record: OpenTurnRecord, noRoom: NoRoom): boolean {
  return isCompaction(record) ? noRoom.isSpent : mustRefuse(noRoom) && record.open.task?.kind !== "beat";
}

const BILLION = 1e9;

function wordsOf({ name, per }: BudgetRule, unit: Unit, limit: number, { end }: Window, isSpent: boolean): string {
  const amount = unit === "tokens" ? `${limit} tokens` : `${limit / BILLION} in cost`;
  const state = isSpent
    ? `is spent. It resets at ${new Date(end).toISOString()}.`
    : "is reserved by running turns. Some of it is free again when they end.";
  return `The budget \`${name}\` of ${amount} per ${per} ${state}`;
}

/** Reserves the most that a request with a prompt of `bytes` may use. */
export function reserve(records: Records, budgets: readonly BudgetRule[], agent: string, bytes: number): Reservation {
  const { promptTokens, outputTokens, inputPrice, outputPrice } =
    records.bookmarks.policy.reserves[agent] ?? NO_RESERVE;
  const prompt = promptTokens + Math.ceil(bytes / BYTES_A_TOKEN);
  const tokens = prompt + outputTokens;
  const cost = Math.ceil(prompt * inputPrice + outputTokens * outputPrice);
  return addReservation(records, budgets, { tokens, cost });
}

export function addReservation(
  records: Records,
  budgets: readonly BudgetRule[],
  spend: Spend,
  used: Spend = NOTHING,
): Reservation {
  for (const rule of budgets) {
    const record = currentOf(records, rule);
    putReserved(records, record, sum(record.reserved, spend, 1), sum(record.inUse, used, 1));
  }
  const { tokens, cost } = spend;
  return { tokens, cost, budgets: budgets.map(({ name }) => name), used };
}

/** Removes the reservation of a turn that stops running. */
export function release(records: Records, reservation: Reservation | undefined): void {
  if (!reservation) return;
  removeReservation(records, reservation);
  releaseHeld(records, reservation.budgets, RELEASED_WITH_EACH);
}

export function removeReservation(records: Records, reservation: Reservation): void {
  for (const name of reservation.budgets) {
    const record = records.budgets.find(name);
    if (!record) continue;
    putReserved(records, record, sum(record.reserved, reservation, -1), sum(record.inUse, reservation.used, -1));
  }
}

/** Each field is named, because a spread is slow here. */
function putReserved(records: Records, record: BudgetRecord, reserved: Spend, inUse: Spend): void {
  const { name, windowStart, used, estimatedTokens, grants, reported } = record;
  records.budgets.put({ name, windowStart, used, reserved, inUse, estimatedTokens, grants, reported });
}

export function sum(one: Spend, other: Spend, by: 1 | -1): Spend {
  return { tokens: one.tokens + by * other.tokens, cost: one.cost + by * other.cost };
}

/** Counts the usage of an attempt. */
export function countSpent(records: Records, of: SpentFor, { input, output, more }: Usage): void {
  addSpent(records, of, { tokens: input + output, cost: more?.cost ?? 0 }, 0);
}

/**
 * Counts an estimate for an attempt whose backend did not report its usage. All tokens are priced as input, which the prompt mostly is. `replyBytes` is
 * undefined if the backend probably did no work.
 */
export function countEstimate(
  records: Records,
  of: SpentFor,
  usage: Usage,
  promptBytes: number,
  replyBytes: number | undefined,
): void {
  if (replyBytes === undefined || !isUnreported(usage)) return;
  const tokens = Math.ceil((promptBytes + replyBytes) / BYTES_A_TOKEN);
  const { inputPrice } = records.bookmarks.policy.reserves[of.agent] ?? NO_RESERVE;
  addSpent(records, of, { tokens, cost: Math.ceil(tokens * inputPrice) }, tokens);
}

function addSpent(records: Records, of: SpentFor, spend: Spend, estimated: number): void {
  if (spend.tokens + spend.cost === 0) return;
  for (const rule of budgetsOf(records, of)) {
    const record = currentOf(records, rule);
    const used = sum(record.used, spend, 1);
    const reported = stateOf(rule, record, used, records.moment.now);
    const { name, windowStart, reserved, inUse, grants } = record;
    const estimatedTokens = record.estimatedTokens + estimated;
    const counted = { name, windowStart, used, reserved, inUse, estimatedTokens, grants, reported };
    records.budgets.put(counted);
    if (RANKS[reported] > RANKS[record.reported]) report(records, rule, counted);
  }
}

const RANKS: Readonly<Record<BudgetState, number>> = { open: 0, warning: 1, exceeded: 2 };

/** Reports the unit of which the larger part is used. */
function report(records: Records, rule: BudgetRule, record: BudgetRecord): void {
  const name = record.reported === "exceeded" ? "budget.exceeded" : "budget.warning";
  const { end: resetsAt } = windowOf(records.moment.now, rule, record);
  const [tokens, cost] = UNITS.map((unit) => useOf(records, rule, record, unit));
  const isCost = partOf(cost) > partOf(tokens);
  const { used, limit, granted } = (isCost ? cost : tokens) as BudgetUse;
  const by = isCost ? BILLION : 1;
  append(records, {
    seq: NO_SEQ,
    at: records.moment.now,
    name,
    budgetName: rule.name,
    unit: isCost ? "cost" : "tokens",
    used: used / by,
    limit: (limit + granted) / by,
    resetsAt,
  });
}

function partOf(use: BudgetUse | undefined): number {
  return use ? use.used / (use.limit + use.granted) : 0;
}

function append(records: Records, entry: GatewayEntry): void {
  appendNews(records, [entry], records.bookmarks.policy.streamKeep);
}

/** A turn that can be claimed now. */
export function readyTurn(records: Records, record: OpenTurnRecord): OpenTurnRecord {
  return { ...record, open: { ...record.open, dueAt: undefined, readyOrder: records.next("order") } };
}

/** A turn that waits for a budget. It was not held before. */
export function heldTurn(
  { moment: { now, time } }: Records,
  record: OpenTurnRecord,
  { budget, resetsAt }: NoRoom,
): OpenTurnRecord {
  const dueAt = time + (resetsAt - now);
  return { ...record, open: { ...record.open, readyOrder: undefined, heldBy: budget, dueAt } };
}

const RELEASED_WITH_EACH = 4;
/** The turns of a budget that are checked together. */
const HELD_SCANNED = 64;

/**
 * Lets turns begin that waited for one of these budgets and have room now, the oldest first: at most `limit` for each budget, because each may take all of
 * the room. Those of a budget that is spent and refuses become ready, too, so that they end. Returns true if there may be more.
 */
export function releaseHeld(records: Records, names: readonly string[], limit: number): boolean {
  let hasReady = false;
  let hasMore = false;
  for (const name of names) {
    const own = findNoRoom(records, rulesNamed(records, name));
    // Turns of a spent budget may have to end.
    if (own && !own.isSpent) continue;
    let left = limit;
    let changed = 0;
    for (const record of records.turns.held(name, HELD_SCANNED)) {
      const noRoom = findNoRoom(records, budgetsOf(records, record.turn));
      const isReady = !noRoom || isEndedBy(record, noRoom);
      if (!isReady && noRoom.budget === name) continue;
      changed++;
      const ready = readyTurn(records, record);
      records.turns.put(ready);
      hasReady ||= isReady;
      if (!isReady) records.turns.put(heldTurn(records, ready, noRoom));
      else if (!noRoom && !isPaused(records, record.turn.agent)) left--;
      if (left === 0) break;
    }
    hasMore ||= changed >= limit;
  }
  if (hasReady) records.notify({ kind: "work", of: "turn" });
  return hasMore;
}

function rulesNamed({ bookmarks: { policy } }: Records, name: string): readonly BudgetRule[] {
  return policy.budgets.filter((rule) => rule.name === name);
}

export const listBudgets: Rule<"listBudgets"> = (records) =>
  records.bookmarks.policy.budgets.map((rule) => statusOf(records, rule));

export const grantBudget: Rule<"grantBudget"> = (records, name, { now, by, ...order }) => {
  const rule = records.bookmarks.policy.budgets.find((one) => one.name === name);
  if (!rule) throw new GatewayError("budget-not-found", `No budget has the name ${name}.`);
  const record = currentOf(records, rule);
  const { tokens = 0, cost = 0, until = windowOf(records.moment.now, rule, record).end } = order;
  for (const unit of UNITS)
    if (order[unit] !== undefined && rule[unit] === undefined)
      throw new GatewayError("invalid-request", `The budget ${name} does not limit \`${unit}\`.`);
  if (tokens + cost === 0) throw new GatewayError("invalid-request", "Give `tokens`, `cost` or both.");
  if (until <= records.moment.now) throw new GatewayError("invalid-request", "`until` must be in the future.");
  const grants = [...record.grants.filter((grant) => grant.until > records.moment.now), { tokens, cost, until }];
  const raised = { ...record, grants };
  records.budgets.put({ ...raised, reported: stateOf(rule, raised, raised.used, records.moment.now) });
  const granted = { tokens: tokens || null, cost: cost ? cost / BILLION : null };
  append(records, { seq: NO_SEQ, at: now, name: "budget.granted", budgetName: name, ...granted, until, grantedBy: by });
  releaseHeld(records, [name], HELD_SCANNED);
  requestDelayedBeats(records);
  return statusOf(records, rule);
};
