/** The queries of the rules for each kind of record, answered by its table. */
import {
  type AnnouncementRecord,
  type DeliveryRecord,
  type EventRecord,
  isOfStranger,
  isOpen,
  type KeyRecord,
  type LateAttempt,
  type Lease,
  type OpenTurnRecord,
  type Records,
  type TurnRecord,
} from "#store/rules/records.ts";
import type { UsageCount } from "#store/store.ts";
import { HOUR, NO_COUNTS } from "#store/usage-counts.ts";
import {
  ANNOUNCEMENTS,
  counterOf,
  DELIVERIES,
  EVENTS,
  KEYS,
  lateAttemptKey,
  OPEN_TURNS,
  TURNS,
  USAGE,
  weighDelivery,
} from "./layouts.ts";
import type { Changed, MemoryTable, Order, RecordTable } from "./table.ts";

/** The recorder's deliveries of refused strangers, or all others. `ended`: the number that may be deleted. */
type Shelf = { size: number; bytes: number; ended: number };
export type Shelves = { refused: Shelf; others: Shelf };

/** The number of deliveries that are looked up together when the oldest are deleted. */
const ENDED_TOGETHER = 64;
const COUNTERS_TOGETHER = 1_000;
export function turnRecords(open: MemoryTable<OpenTurnRecord>, ended: RecordTable<TurnRecord>): Records["turns"] {
  const { waited, other, compact, due } = OPEN_TURNS.orders;
  const lanes = { waited, other, compact };
  const find = (turnId: string): TurnRecord | undefined => open.find(turnId) ?? ended.find(turnId);
  return {
    find,
    listed: find,
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
    open: (agent) => open.filter(({ turn }) => agent === undefined || turn.agent === agent),
    before: (below, limit) => {
      const unfinished: TurnRecord[] = open.filter(({ turn }) => below === undefined || turn.turnId < below);
      const found = unfinished.concat(ended.scan(TURNS.orders.all, { below, limit, newestFirst: true }));
      return found.sort((a, b) => (a.turn.turnId < b.turn.turnId ? 1 : -1)).slice(0, limit);
    },
    readyAgents: () => [...new Set(Object.values(lanes).flatMap((lane) => open.groups(lane)))] as string[],
    firstReady: (of, lane) => open.first(lanes[lane], of),
    dueBy: (time) => open.scan(due, { upTo: time }),
    nextDueAt: () => open.first(due)?.open.dueAt,
    leaseEnded: (time) => open.filter(({ open: { lease } }) => lease !== undefined && lease.endsAt <= time),
  };
}

export function eventRecords(table: RecordTable<EventRecord>): Records["events"] {
  const { all, free, ended } = EVENTS.orders;
  return {
    ...storedIn(table),
    listed: (eventId) => table.find(eventId),
    free: (of, above, limit) => table.scan(free, { of, above, limit }),
    before: newestFirst(table, all),
    endedBefore: (below, limit) => table.scan(ended, { below, limit }),
  };
}

function isEnded(record: DeliveryRecord | undefined): 0 | 1 {
  return record?.endedOrder === undefined ? 0 : 1;
}

export function deliveryRecords(
  tableWith: (changed: Changed<DeliveryRecord>) => RecordTable<DeliveryRecord>,
  shelves: Shelves,
): Records["deliveries"] {
  const shelfOf = (ofStrangers: boolean) => (ofStrangers ? shelves.refused : shelves.others);
  const table = tableWith((before, after) => {
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
    listed: (deliveryId) => table.find(deliveryId),
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
  const { byHour } = USAGE.orders;
  return {
    // A counter is changed in place: only the table refers to it.
    add: (of, change) => {
      const count = table.find(counterOf(of)) ?? { ...of, ...NO_COUNTS };
      let name: keyof typeof change;
      for (name in change) count[name] += change[name] ?? 0;
      table.put(count);
    },
    nextHour: (from) => table.scan(byHour, { above: from - 1, limit: 1 })[0]?.hour,
    between: (from, below, agent) =>
      table
        .scan(byHour, { above: from - 1, below })
        .filter((count) => agent === undefined || count.agent === agent)
        .map((count) => ({ ...count })),
    deleteEndedBy: (time) => {
      for (const count of table.scan(byHour, { upTo: time - HOUR, limit: COUNTERS_TOGETHER })) {
        table.delete(counterOf(count));
      }
    },
  };
}

export function announcementRecords(table: MemoryTable<AnnouncementRecord>): Records["announcements"] {
  const { ofSession, ready, due } = ANNOUNCEMENTS.orders;
  return {
    ...leased(table),
    ofSession: (of) => table.scan(ofSession, { of }),
    readyChannels: () => table.groups(ready) as string[],
    firstReady: (of) => table.first(ready, of),
    dueBy: (time) => table.scan(due, { upTo: time }),
    nextDueAt: () => table.first(due)?.dueAt,
  };
}

export function lateAttemptRecords(table: MemoryTable<LateAttempt>): Records["lateAttempts"] {
  return {
    ...storedIn(table),
    find: (turnId, fence) => table.find(lateAttemptKey(turnId, fence)),
    endedBy: (time) => table.filter(({ endsAt }) => endsAt <= time),
  };
}

export function erasureRecords(table: MemoryTable<{ ordinal: number }>): Records["erasures"] {
  return {
    first: () => table.all()[0]?.ordinal,
    add: (ordinal) => table.put({ ordinal }),
    delete: (ordinal) => table.delete(ordinal),
  };
}

/** The queries that all records share. */
export function storedIn<R extends object>(table: RecordTable<R>) {
  return {
    find: (key: string) => table.find(key),
    put: (record: R) => table.put(record),
    delete: (record: R) => table.delete(table.keyOf(record)),
  };
}

function newestFirst<R extends object>(table: RecordTable<R>, order: Order) {
  return (below: number, limit: number): R[] => table.scan(order, { below, limit, newestFirst: true });
}

/** The queries that all records with a lease share. */
export function leased<R extends { readonly lease: Lease | undefined }>(table: MemoryTable<R>) {
  return {
    ...storedIn(table),
    leaseEnded: (time: number) => table.filter(({ lease }) => lease !== undefined && lease.endsAt <= time),
  };
}
