/** The queries of the rules for each kind of record, answered by its table. */
import { NOTHING_OPEN } from "#store/rules/agents.ts";
import type { BudgetRecord } from "#store/rules/budget-records.ts";
import { BEHIND_ALL } from "#store/rules/group-records.ts";
import {
  type AgentCount,
  type AgentRecord,
  type ApiKeyRecord,
  type CountChange,
  type Counts,
  type DeliveryRecord,
  isOfStranger,
  isOpen,
  type KeyRecord,
  type LateAttempt,
  type OpenTurnRecord,
  type OutgoingRecord,
  type Records,
  type SessionRecord,
  type TurnRecord,
} from "#store/rules/records.ts";
import type { ScheduleRecord } from "#store/rules/schedule-records.ts";
import type { ShareRecord, ShareRecords } from "#store/rules/share-records.ts";
import type { NotificationRecord, SystemEvent, UsageCount } from "#store/store.ts";
import { NO_COUNTS } from "#store/usage-counts.ts";
import {
  API_KEYS,
  BUDGETS,
  counterOf,
  DELIVERIES,
  ERASURES,
  EVENTS,
  hourOf,
  KEYS,
  LANE_ORDERS,
  LATE_ATTEMPTS,
  lateAttemptKey,
  NOTIFICATIONS,
  OPEN_TURNS,
  OUTGOING,
  SCHEDULES,
  SESSIONS,
  SHARES,
  TURNS,
  USAGE,
  weighDelivery,
} from "./layouts.ts";
import type { Changed, Layout, Order, RecordTable } from "./table.ts";

/** The recorder's deliveries of refused strangers, or all others. `ended`: the number that may be deleted. */
type Shelf = { size: number; bytes: number; ended: number };
export type Shelves = { refused: Shelf; others: Shelf };

/** The numbers of notifications that have not ended, and of those that have, by endpoint. */
export type NotificationCounts = { waiting: Record<string, number>; ended: Record<string, number> };

/** The most notifications that are erased at once, where the limit has become much smaller. The others follow. */
const ERASED_TOGETHER = 100;

/** The number of deliveries that are looked up together when the oldest are deleted. */
const ENDED_TOGETHER = 64;

export function sessionRecords(table: RecordTable<SessionRecord>): Records["sessions"] {
  const { all, ofAgent } = SESSIONS.orders;
  return {
    ...storedIn(table),
    at: (ordinal, sessionId) => {
      const found = table.find(sessionId);
      return found?.session.ordinal === ordinal ? found : undefined;
    },
    before: (below, limit, of) => table.scan(of === undefined ? all : ofAgent, { of, below, limit, newestFirst: true }),
    after: (last, limit) => table.scan(all, { above: last?.session.ordinal, limit }),
  };
}

export function turnRecords(open: RecordTable<OpenTurnRecord>, ended: RecordTable<TurnRecord>): Records["turns"] {
  const { all, ofAgent, queue, held } = OPEN_TURNS.orders;
  return {
    ...leased(open, OPEN_TURNS.orders, ({ open: { dueAt } }) => dueAt),
    find: (turnId) => open.find(turnId) ?? ended.find(turnId),
    put: (record) => {
      if (isOpen(record)) {
        open.put(record);
        return;
      }
      open.delete(record.turn.turnId);
      ended.put(record);
    },
    delete: ({ turn: { turnId } }) => {
      open.delete(turnId);
      ended.delete(turnId);
    },
    queue: (of) => open.scan(queue, { of }),
    firstInQueue: (of) => {
      const first = open.first(queue, of);
      return first?.open.group === undefined ? first : undefined;
    },
    grouped: (of) => open.scan(queue, { of, above: BEHIND_ALL }),
    open: (of) => open.scan(of === undefined ? all : ofAgent, { of }),
    before: (below, limit) => {
      const newest = { below, limit, newestFirst: true };
      const found: TurnRecord[] = open.scan(all, newest);
      return found
        .concat(ended.scan(TURNS.orders.all, newest))
        .sort((a, b) => (a.turn.turnId < b.turn.turnId ? 1 : -1))
        .slice(0, limit);
    },
    readyAgents: () => [...new Set(Object.values(LANE_ORDERS).flatMap((lane) => open.groups(lane)))] as string[],
    firstReady: (of, lane) => open.first(LANE_ORDERS[lane], of),
    holdingBudgets: () => open.groups(held) as string[],
    held: (of, limit) => open.scan(held, { of, limit }),
  };
}

export function eventRecords(table: RecordTable<SystemEvent>): Records["events"] {
  const { all, queued, ended } = EVENTS.orders;
  return {
    ...storedIn(table),
    queued: (of, { after, through }, limit) => table.scan(queued, { of, above: after, upTo: through, limit }),
    before: newestFirst(table, all),
    endedBefore: (below, limit) => table.scan(ended, { below, limit }),
  };
}

function isEnded(record: DeliveryRecord | undefined): 0 | 1 {
  return record?.endedOrder === undefined ? 0 : 1;
}

type TableOf<R> = (layout: Layout<R>, changed: Changed<R>) => RecordTable<R>;

export function deliveryRecords(
  { table: tableOf }: { table: TableOf<DeliveryRecord> },
  shelves: Shelves,
): Records["deliveries"] {
  const shelfOf = (ofStrangers: boolean) => (ofStrangers ? shelves.refused : shelves.others);
  const table = tableOf(DELIVERIES, (before, after) => {
    const record = after ?? before;
    const shelf = shelfOf(record !== undefined && isOfStranger(record));
    shelf.size += (after ? 1 : 0) - (before ? 1 : 0);
    shelf.ended += isEnded(after) - isEnded(before);
    if (before?.delivery === after?.delivery) return;
    shelf.bytes += (after ? weighDelivery(after) : 0) - (before ? weighDelivery(before) : 0);
  });
  const { all, ended } = DELIVERIES.orders;
  /** The ids of the oldest deliveries that may be deleted, of refused strangers and others, in the order in which they ended. */
  const oldest: [refused: string[], others: string[]] = [[], []];
  return {
    ...storedIn(table),
    shelf: shelfOf,
    firstEnded: (of) => {
      if (shelfOf(of).ended === 0) return undefined;
      const ids = oldest[of ? 0 : 1];
      for (; ids[0] !== undefined; ids.shift()) {
        const first = table.find(ids[0]);
        if (first) return first;
      }
      const found = table.scan(ended, { of, limit: ENDED_TOGETHER });
      ids.push(...found.map(({ delivery }) => delivery.deliveryId));
      return found[0];
    },
    before: newestFirst(table, all),
  };
}

export function keyRecords(table: RecordTable<KeyRecord>): Records["keys"] {
  return {
    ...storedIn(table),
    endedBy: (upTo, limit) => table.scan(KEYS.orders.byEnd, { upTo, limit }),
  };
}

export function usageRecords(table: RecordTable<UsageCount>): Records["usage"] {
  return {
    add: (of, change) => {
      const count = table.find(counterOf(of)) ?? { ...of, ...NO_COUNTS };
      let name: keyof typeof change;
      for (name in change) count[name] += change[name] ?? 0;
      table.put(count);
    },
    after: (place, limit) => {
      const above = typeof place === "number" ? hourOf(place) : counterOf(place);
      return table.scan(USAGE.orders.all, { above, limit }).map((count) => ({ ...count }));
    },
    delete: (count) => table.delete(counterOf(count)),
  };
}

/** `totals`: the counts of all agents together. */
export function agentRecords(
  agents: RecordTable<AgentRecord>,
  counts: RecordTable<AgentCount>,
  totals: Counts,
): Records["agents"] {
  return {
    ...storedIn(agents),
    count: (agent, change) => {
      const count = counts.find(agent) ?? { agent, ...NOTHING_OPEN };
      let name: keyof CountChange;
      for (name in change) {
        const by = change[name] ?? 0;
        count[name] = (count[name] ?? 0) + by;
        totals[name] = (totals[name] ?? 0) + by;
      }
      counts.put(count);
    },
  };
}

export function shareRecords(table: RecordTable<ShareRecord>): ShareRecords {
  return {
    find: (owner) => table.find(owner),
    count: (owner, name, by) => {
      const share = table.find(owner) ?? { owner, bytes: 0, turns: 0, events: 0 };
      share[name] += by;
      if (share.bytes === 0 && share.turns === 0 && share.events === 0) table.delete(owner);
      else table.put(share);
    },
    all: () => table.scan(SHARES.orders.all, {}),
  };
}

export function outgoingRecords(table: RecordTable<OutgoingRecord>): Records["outgoing"] {
  const { ofSession, ready } = OUTGOING.orders;
  return {
    ...storedIn(table),
    ...leased(table, OUTGOING.orders, ({ dueAt }) => dueAt),
    ofSession: (of) => table.scan(ofSession, { of }),
    readyEndpoints: () => table.groups(ready) as string[],
    firstReady: (of) => table.first(ready, of),
  };
}

/** Counts a change of a notification. */
export function countNotification(
  counts: NotificationCounts,
  before: NotificationRecord | undefined,
  after: NotificationRecord | undefined,
): void {
  for (const [record, by] of [
    [before, -1],
    [after, 1],
  ] as const) {
    if (!record) continue;
    const { endpoint } = record.notification;
    const count = record.endedOrder === undefined ? counts.waiting : counts.ended;
    count[endpoint] = (count[endpoint] ?? 0) + by;
    if (count[endpoint] === 0) delete count[endpoint];
  }
}

export function notificationRecords(
  table: RecordTable<NotificationRecord>,
  counts: NotificationCounts,
): Records["notifications"] {
  const { all, ended } = NOTIFICATIONS.orders;
  return {
    ...storedIn(table),
    before: newestFirst(table, all),
    waiting: (endpoint) => counts.waiting[endpoint] ?? 0,
    eraseEnded: (most, endpoint) => {
      let left = ERASED_TOGETHER;
      for (const of of endpoint === undefined ? Object.keys(counts.ended) : [endpoint]) {
        for (; (counts.ended[of] ?? 0) > most; left--) {
          const first = left > 0 ? table.first(ended, of) : undefined;
          if (!first) return left === 0;
          table.delete(table.keyOf(first));
        }
      }
      return false;
    },
  };
}

export function lateAttemptRecords(table: RecordTable<LateAttempt>): Records["lateAttempts"] {
  return {
    ...storedIn(table),
    find: (turnId, fence) => table.find(lateAttemptKey(turnId, fence)),
    endedBy: (time) => table.scan(LATE_ATTEMPTS.orders.byEnd, { upTo: time }),
  };
}

export function budgetRecords(table: RecordTable<BudgetRecord>): Records["budgets"] {
  return {
    ...storedIn(table),
    all: () => table.scan(BUDGETS.orders.all, {}),
  };
}

export function scheduleRecords(table: RecordTable<ScheduleRecord>): Records["schedules"] {
  return {
    ...storedIn(table),
    all: () => table.scan(SCHEDULES.orders.all, {}),
  };
}

export function apiKeyRecords(table: RecordTable<ApiKeyRecord>): Records["apiKeys"] {
  return {
    ...storedIn(table),
    all: () => table.scan(API_KEYS.orders.all, {}),
  };
}

export function erasureRecords(table: RecordTable<{ ordinal: number }>): Records["erasures"] {
  return {
    first: () => table.first(ERASURES.orders.all)?.ordinal,
    add: (ordinal) => table.put({ ordinal }),
    delete: (ordinal) => table.delete(ordinal),
  };
}

/** The queries that all records share. */
function storedIn<R extends object>(table: RecordTable<R>) {
  return {
    find: (key: string) => table.find(key),
    put: (record: R) => table.put(record),
    delete: (record: R) => table.delete(table.keyOf(record)),
  };
}

function newestFirst<R extends object>(table: RecordTable<R>, order: Order) {
  return (below: number, limit: number): R[] => table.scan(order, { below, limit, newestFirst: true });
}

/** The queries that all leased records share. */
function leased<R extends object>(
  table: RecordTable<R>,
  { leases, due }: { leases: Order; due: Order },
  dueAtOf: (record: R) => number | undefined,
) {
  return {
    leaseEnded: (time: number) => table.scan(leases, { upTo: time }),
    dueBy: (time: number, limit: number) => table.scan(due, { upTo: time, limit }),
    nextDueAt: () => {
      const first = table.first(due);
      return first && dueAtOf(first);
    },
  };
}
