import type { AnnouncementRecord, Records } from "#store/rules/records.ts";
import type { Announcement } from "#store/store.ts";
import { keepText } from "../texts.ts";
import { fields, leaseColumns, readLease } from "./fields.ts";
import { number, quote, sql, text } from "./sql.ts";
import { layout, type Scan, Table } from "./table.ts";
import type { Transaction } from "./transaction.ts";

const ANNOUNCEMENT_BYTES = 500;
/** Announcements of a channel that are looked at together. */
const TOGETHER = 16;

const ANNOUNCEMENT = fields<Announcement>({
  text: ["turnId", "agent"],
  kept: ["sessionId", "channel", "deliveryId"],
  integer: ["hops", "attempts"],
  bigint: ["createdAt"],
});

const ANNOUNCEMENTS = layout<AnnouncementRecord>({
  table: "announcements",
  key: ["turn_id"],
  keyOf: ({ announcement }) => announcement.turnId,
  columns: [
    ...ANNOUNCEMENT.columns<AnnouncementRecord>(({ announcement }) => announcement),
    ["session_ordinal", "bigint", ({ ordinal }) => ordinal],
    ["due", "double precision", ({ dueAt }) => dueAt ?? 0],
    ["is_claimed", "boolean", ({ lease }) => lease !== undefined],
    ["fence", "bigint", ({ fence }) => fence],
    ...leaseColumns<AnnouncementRecord>(({ lease }) => lease),
  ],
  read: (row, { time }) => ({
    announcement: ANNOUNCEMENT.read(row),
    ordinal: number(row.session_ordinal),
    place: number(row.ordinal),
    dueAt: !row.is_claimed && number(row.due) > time ? number(row.due) : undefined,
    fence: number(row.fence),
    lease: row.is_claimed ? readLease(row) : undefined,
  }),
});

const canBeClaimed = ({ lease, dueAt }: AnnouncementRecord): boolean => !lease && dueAt === undefined;
const byPlace = (a: AnnouncementRecord, b: AnnouncementRecord): number => a.place - b.place;

export const announcementRecords = (transaction: Transaction): Records["announcements"] => {
  const table = new Table(transaction, ANNOUNCEMENTS);
  const channels = new Set<string>();
  return {
    find: (turnId) => table.find(turnId),
    put: (record) => {
      if (!table.peek(record.announcement.turnId)) {
        transaction.count("announcements", 1);
        transaction.count("bytes", ANNOUNCEMENT_BYTES);
      }
      table.put(record);
    },
    delete: ({ announcement: { turnId } }) => {
      transaction.count("announcements", -1);
      transaction.count("bytes", -ANNOUNCEMENT_BYTES);
      table.delete(turnId);
    },
    ofSession: (ordinal) =>
      table.scan({
        where: sql`t.session_ordinal = ${ordinal}`,
        order: "t.ordinal",
        matches: (record) => record.ordinal === ordinal,
        compare: byPlace,
      }),
    readyChannels: () => {
      const ready = sql`select distinct channel from announcements where not is_claimed and due <= ${transaction.sqlTime}`;
      for (const { channel } of transaction.read(ready)) channels.add(text(channel));
      return [...channels];
    },
    firstReady: (channel) => {
      const scan: Scan<AnnouncementRecord> = {
        where: sql`t.channel = ${quote(keepText(channel))} and not t.is_claimed and t.due <= ${transaction.sqlTime}`,
        order: "t.ordinal",
        matches: (record) => canBeClaimed(record) && record.announcement.channel === channel,
        compare: byPlace,
      };
      return table.scan(scan, 1, TOGETHER)[0];
    },
    // One that is due is read as one that can be claimed.
    dueBy: () => [],
    nextDueAt: () => {
      const later = sql`not is_claimed and due > ${transaction.sqlTime}`;
      const [row] = transaction.read(sql`select min(due) as due from announcements where ${later}`);
      return (row?.due ?? undefined) as number | undefined;
    },
    leaseEnded: (time) =>
      table.scan({
        where: sql`t.is_claimed and t.lease_ends <= ${transaction.sqlTime}`,
        order: "t.ordinal",
        matches: ({ lease }) => lease !== undefined && lease.endsAt <= time,
        compare: byPlace,
      }),
  };
};
