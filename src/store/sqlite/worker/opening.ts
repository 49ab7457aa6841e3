import type { Lease, OpenTurnRecord } from "#store/rules/records.ts";
import type { StoreNotice } from "#store/store.ts";
import type { SqliteRecords } from "./records.ts";

/** The time that a claim holds after its own lease is lost. */
const LEASE_MS = 30_000;
/** A clock that was set back while the gateway was down must not hold a turn for ever. */
const LONGEST_DELAY_MS = 3_600_000;

/** Called when this process opens its file again: its claims continue. */
export function resumeClaims(records: SqliteRecords): void {
  const endsAt = records.moment.time + LEASE_MS;
  for (const record of records.turns.open()) setLease(records, record, endsAt);
  endLeases(records.outgoing, endsAt);
}

/** Another process had the file before: nobody runs the work that it had claimed, and the first sweep takes it back. */
export function takeOver(records: SqliteRecords): StoreNotice[] {
  const { time } = records.moment;
  const open = records.turns.open();
  for (const record of open) {
    shortenDelay(records, record, time + LONGEST_DELAY_MS);
    if (isBlocked(records, record))
      records.turns.put({ ...record, open: { ...record.open, readyOrder: records.next("order") } });
  }
  const latest = time + LONGEST_DELAY_MS;
  for (const record of records.outgoing.dueBy(Infinity, Infinity))
    if ((record.dueAt ?? 0) > latest) records.outgoing.put({ ...record, dueAt: latest });
  const running = open.filter(({ turn }) => turn.status === "running");
  for (const record of running) setLease(records, record, time);
  const messages = endLeases(records.outgoing, time);
  if (running.length + messages === 0) return [];
  const detail = `Unfinished work of the previous process continues: ${running.length} turns, ${messages} announcements and notifications.`;
  return [{ name: "taken-over", detail }];
}

/** True for a turn that waited behind a compaction of version 0.2.0, which was not stored. */
function isBlocked(records: SqliteRecords, { ordinal, place, turn, open }: OpenTurnRecord): boolean {
  const { readyOrder, dueAt, lease } = open;
  const isWaiting = turn.status === "queued" && readyOrder === undefined && dueAt === undefined && !lease;
  return isWaiting && records.turns.firstInQueue(ordinal)?.place === place;
}

/** Sets the end of all leases. Returns the number of leases. */
function endLeases<R extends { readonly lease: Lease | undefined }>(
  of: { leaseEnded(time: number): R[]; put(record: R): void },
  endsAt: number,
): number {
  const held = of.leaseEnded(Infinity);
  for (const record of held) of.put({ ...record, lease: record.lease && { ...record.lease, endsAt } });
  return held.length;
}

function shortenDelay(records: SqliteRecords, record: OpenTurnRecord, latest: number): void {
  const { open } = record;
  if (open.dueAt !== undefined && open.dueAt > latest)
    records.turns.put({ ...record, open: { ...open, dueAt: latest } });
}

function setLease(records: SqliteRecords, record: OpenTurnRecord, endsAt: number): void {
  const { open } = record;
  if (open.lease) records.turns.put({ ...record, open: { ...open, lease: { ...open.lease, endsAt } } });
}

/** Keeps extended leases after a rollback of a batch, because they are only in memory. */
export function restoreLeases(records: SqliteRecords, before: SqliteRecords): void {
  for (const record of records.turns.open()) {
    const known = before.turns.find(record.turn.turnId);
    const isSame = known?.open?.lease && known.turn.attempt === record.turn.attempt;
    if (isSame) setLease(records, record, known.open.lease.endsAt);
  }
  for (const record of records.outgoing.leaseEnded(Infinity)) {
    const known = before.outgoing.find(record.message.id);
    if (known?.lease && known.fence === record.fence) records.outgoing.put({ ...record, lease: known.lease });
  }
}
