/** How the group of a turn closes: its time is over, its message would be too long, or its turn ends. */
import type { DeliveryStep, Entry } from "#store/store.ts";
import { addDeliveryStep, notifyOutcome } from "./deliveries.ts";
import type { GroupRecord } from "./group-records.ts";
import { appendEntries, NO_SEQ } from "./journal.ts";
import { messageEntry } from "./new-turns.ts";
import type { OpenTurn, OpenTurnRecord, Records, SessionRecord } from "./records.ts";
import { countMessage } from "./usage.ts";

/** A turn whose group is open. */
export type GroupedTurn = OpenTurnRecord & { readonly open: OpenTurn & { readonly group: GroupRecord } };

export function isGrouped(record: OpenTurnRecord): record is GroupedTurn {
  return record.open.group !== undefined;
}

/** Closes the group of a turn: its message is appended, and it goes to the end of its session's queue. Returns the turn, which the caller puts. */
export function closeGroup(records: Records, record: GroupedTurn): OpenTurnRecord {
  const { turn, ordinal, open } = record;
  const { turnId, messageId, preview, deliveryId } = turn;
  const { group } = open;
  const { now } = records.moment;
  const known = records.keys.find(group.key);
  if (known?.turnId === turnId) records.keys.delete(known);
  if (deliveryId !== undefined)
    noteOnFirst(records, deliveryId, stepOf(now, "group.closed", { requests: group.requests }));
  const session = records.sessions.at(ordinal, turn.sessionId) as SessionRecord;
  const isFirst = records.turns.firstInQueue(ordinal) === undefined;
  const queued: Entry = { seq: NO_SEQ, at: now, turnId, name: "turn.queued" };
  const { lastSeq: seq } = appendEntries(
    records,
    session,
    now,
    [messageEntry({ now, turnId, messageId, ...group }), queued],
    {
      messages: 1,
      bytes: Buffer.byteLength(group.text),
      ...(preview !== undefined && { preview }),
    },
  );
  countMessage(records, now, turn, open.countedModel);
  records.agents.count(turn.agent, { grouped: -1 });
  return {
    ...record,
    turn: { ...turn, seq },
    place: records.next("place"),
    open: {
      ...open,
      group: undefined,
      groupedMs: Math.round(records.moment.time - group.began),
      dueAt: undefined,
      readyOrder: isFirst ? records.next("order") : undefined,
      contextBytes: group.context === undefined ? undefined : Buffer.byteLength(group.context),
    },
  };
}

/** Closes the groups of a session whose time is over, so that a later turn is behind theirs. Returns true if there were any. */
export function closeGroupsOver(records: Records, ordinal: number): boolean {
  const { time } = records.moment;
  const dueAt = ({ open }: OpenTurnRecord) => open.dueAt ?? 0;
  const over = records.turns
    .grouped(ordinal)
    .filter((record) => dueAt(record) <= time)
    .sort((a, b) => dueAt(a) - dueAt(b));
  for (const record of over) if (isGrouped(record)) records.turns.put(closeGroup(records, record));
  if (over.length > 0) records.notify({ kind: "work", of: "turn" });
  return over.length > 0;
}

/** Closes all groups, though their time is not over. */
export function closeAllGroups(records: Records): void {
  if (!records.totals.open.grouped) return;
  for (const record of records.turns.open()) if (isGrouped(record)) records.turns.put(closeGroup(records, record));
}

/** Adds a step to the timeline of a group's first delivery. */
export function noteOnFirst(records: Records, deliveryId: string, step: DeliveryStep): void {
  addDeliveryStep(records, deliveryId, step);
  notifyOutcome(records, deliveryId);
}

export function stepOf(at: number, name: string, detail: object): DeliveryStep {
  return { at, name, detail: JSON.stringify(detail) };
}
