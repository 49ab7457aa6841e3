import type { OpenTurnRecord } from "#store/rules/records.ts";
import { requeueTurn } from "#store/rules/turn-ends.ts";
import { bySession } from "#store/rules/turns.ts";
import type { SqliteRecords } from "./records.ts";

/** A turn is tried three times: only `sweep` knows whether it may be tried more often. */
const TRIES = 3;
/** The time that a claim holds after its own lease is lost. */
const LEASE_MS = 30_000;
/** A clock that was set back while the gateway was down must not hold a turn for ever. */
const LONGEST_DELAY_MS = 3_600_000;

export type TakenOver = { turns: number; beats: number; announcements: number };

/** This process opens its file again: its claims go on. */
export const goOnWithClaims = (records: SqliteRecords): void => {
  const endsAt = records.moment.time + LEASE_MS;
  for (const record of records.turns.open()) setLease(records, record, endsAt);
};

/**
 * Another process had the file before: nobody runs the work that it had claimed. Turns without tries left wait for the first
 * sweep. Answers the numbers of turns, beats and announcements that were taken back.
 */
export const takeOver = (records: SqliteRecords): TakenOver => {
  const { now, time } = records.moment;
  const open = records.turns.open().sort(bySession);
  for (const record of open) shortenDelay(records, record, time + LONGEST_DELAY_MS);
  const running = open.filter(({ turn }) => turn.status === "running");
  const [given, left] = [running.filter(mayRunAgain), running.filter((record) => !mayRunAgain(record))];
  for (const record of given) requeueTurn(records, record, now, 0);
  for (const record of left) setLease(records, record, time);
  return { turns: given.length, beats: takeBeats(records), announcements: takeAnnouncements(records) };
};

const mayRunAgain = ({ turn, open }: OpenTurnRecord): boolean => turn.attempt < TRIES || open.isCancelled;

const shortenDelay = (records: SqliteRecords, record: OpenTurnRecord, latest: number): void => {
  const { open } = record;
  if (open.dueAt !== undefined && open.dueAt > latest)
    records.turns.put({ ...record, open: { ...open, dueAt: latest } });
};

const setLease = (records: SqliteRecords, record: OpenTurnRecord, endsAt: number): void => {
  const { open } = record;
  if (open.lease) records.turns.put({ ...record, open: { ...open, lease: { ...open.lease, endsAt } } });
};

const takeBeats = (records: SqliteRecords): number => {
  const { now, time } = records.moment;
  const held = records.beats.leaseEnded(Infinity);
  for (const record of held) records.beats.put({ ...record, dueAt: time, nextAt: now, lease: undefined });
  return held.length;
};

const takeAnnouncements = (records: SqliteRecords): number => {
  const held = records.announcements.leaseEnded(Infinity);
  for (const record of held) records.announcements.put({ ...record, lease: undefined });
  return held.length;
};

/** A batch was rolled back, and leases are in memory alone. */
export const keepLeases = (records: SqliteRecords, before: SqliteRecords): void => {
  for (const record of records.turns.open()) {
    const known = before.turns.find(record.turn.turnId);
    const isSame = known?.open?.lease && known.turn.attempt === record.turn.attempt;
    if (isSame) setLease(records, record, known.open.lease.endsAt);
  }
};
