/** How budgets delay, refuse and end turns. */
import { GatewayError } from "#kit/errors.ts";
import type { BudgetRefusal, BudgetRule, Spend, TurnOrder } from "#store/store.ts";
import {
  addReservation,
  findNoRoom,
  heldTurn,
  isEndedBy,
  mustRefuse,
  type NoRoom,
  removeReservation,
  reserve,
  sum,
} from "./budgets.ts";
import { budgetsOf, type SpentFor } from "./budgets-of-turns.ts";
import type { OpenTurnRecord, Records, Rule, SessionRecord } from "./records.ts";
import { endOpenTurn } from "./turn-ends.ts";
import { turnOfClaim } from "./turn-lookup.ts";

/** The budgets that apply to new work. Throws `budget-exceeded` if one of them is spent, unless it pauses. */
export function budgetsOfOrder(records: Records, { session, caller, surface }: TurnOrder): readonly BudgetRule[] {
  const { budgets } = records.bookmarks.policy;
  if (budgets.length === 0) return budgets;
  const applying = budgetsOf(records, { agent: session.agent, caller, surface });
  const noRoom = findNoRoom(records, applying);
  if (noRoom && mustRefuse(noRoom)) throw refusalOf(records, noRoom);
  return applying;
}

function refusalOf({ moment: { now } }: Records, { budget: name, resetsAt, detail }: NoRoom): GatewayError {
  return new GatewayError("budget-exceeded", detail, { retryAfterMs: resetsAt - now, budget: { name, resetsAt } });
}

/** The budget that is spent for new work, whether it refuses or pauses. */
export function findSpent(records: Records, of: SpentFor): BudgetRefusal | undefined {
  const noRoom = findNoRoom(records, budgetsOf(records, of));
  return noRoom?.isSpent ? noRoom : undefined;
}

/** A new turn: if it runs, with its reservation, and if it has no room, held. */
export function beginWithBudgets(
  records: Records,
  record: OpenTurnRecord,
  budgets: readonly BudgetRule[],
  sessionBytes: number,
  context: string | undefined,
  noRoom: NoRoom | undefined,
): OpenTurnRecord {
  // The record is new: it is completed in place.
  if (context !== undefined) Object.assign(record.open, { contextBytes: Buffer.byteLength(context) });
  if (noRoom) return heldTurn(records, record, noRoom);
  if (record.turn.status !== "running") return record;
  const bytes = sessionBytes + (record.open.contextBytes ?? 0);
  Object.assign(record.open, { reservation: reserve(records, budgets, record.turn.agent, bytes) });
  return record;
}

/** A claimed turn with its reservation. */
export function withReservation(records: Records, record: OpenTurnRecord): OpenTurnRecord {
  const budgets = budgetsOf(records, record.turn);
  if (budgets.length === 0) return record;
  const session = records.sessions.at(record.ordinal, record.turn.sessionId) as SessionRecord;
  const bytes = session.session.contextBytes + (record.open.contextBytes ?? 0);
  const reservation = reserve(records, budgets, record.turn.agent, bytes);
  return { ...record, open: { ...record.open, reservation, heldBy: undefined } };
}

/**
 * The budget without room for a turn that is about to be claimed. The turn is ended or held: a held turn does not block other turns of its agent, and
 * becomes ready again with the next window, or when there is room.
 */
export function delayForBudget(
  records: Records,
  record: OpenTurnRecord,
  now: number,
): { budget: string; isEnded: boolean } | undefined {
  const noRoom = findNoRoom(records, budgetsOf(records, record.turn));
  if (!noRoom) return undefined;
  const isEnded = isEndedBy(record, noRoom);
  if (isEnded) {
    const { budget: name, resetsAt, detail } = noRoom;
    const error = { name: "budget-exceeded", detail, budget: { name, resetsAt } } as const;
    endOpenTurn(records, record, { now, status: "failed", reply: "", error, usage: undefined });
  } else records.turns.put(heldTurn(records, record, noRoom));
  return { budget: noRoom.budget, isEnded };
}

export const extendBudget: Rule<"extendBudget"> = (records, claim, { used, next }) => {
  const record = turnOfClaim(records, claim);
  const budgets = record ? budgetsOf(records, record.turn) : [];
  if (!record || budgets.length === 0) return undefined;
  const own = record.open.reservation;
  const planned = sum(used, next, 1);
  const noRoom = findNoRoom(records, budgets, own, used);
  const mayContinue = !noRoom || (!noRoom.isSpent && own !== undefined && fits(planned, own));
  const refusal = mayContinue ? undefined : detailsOf(noRoom);
  const reserved = mayContinue ? planned : used;
  // A step that asks again changes nothing.
  if (refusal?.isSpent || (refusal && own && fits(own, reserved))) return refusal;
  if (own) removeReservation(records, own);
  const reservation = addReservation(records, budgets, reserved, used);
  records.turns.put({ ...record, open: { ...record.open, reservation } });
  return refusal;
};

function detailsOf({ budget, resetsAt, detail, isSpent }: NoRoom): BudgetRefusal {
  return { budget, resetsAt, detail, isSpent };
}

function fits(spend: Spend, within: Spend): boolean {
  return spend.tokens <= within.tokens && spend.cost <= within.cost;
}
