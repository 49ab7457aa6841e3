import type { AnnouncementRecord, Records } from "#store/rules/records.ts";
import type { Announcement } from "#store/store.ts";
import { fields, leaseColumns, readLease } from "./fields.ts";
import { number, sql, text } from "./sql.ts";
import { layout, storedIn, Table } from "./table.ts";
import type { Transaction } from "./transaction.ts";

const ANNOUNCEMENT_BYTES = 500;
/** The number of announcements of a channel that are loaded together. */
const PREFETCHED = 16;

const ANNOUNCEMENT = fields<Announcement>({
  text: ["turnId", "agent"],
  escaped: ["sessionId", "channel", "deliveryId"],
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
  computed: {
    place: [() => "t.ordinal", ({ place }) => place],
    is_ready: [(now) => `not t.is_claimed and t.due <= ${now}`, ({ lease, dueAt }) => !lease && dueAt === undefined],
  },
  read: (row, { time }) => ({
    announcement: ANNOUNCEMENT.read(row),
    ordinal: number(row.session_ordinal),
    place: number(row.ordinal),
    dueAt: !row.is_claimed && number(row.due) > time ? number(row.due) : undefined,
    fence: number(row.fence),
    lease: row.is_claimed ? readLease(row) : undefined,
  }),
});

export function announcementRecords(transaction: Transaction): Records["announcements"] {
  const table = new Table(transaction, ANNOUNCEMENTS, (before, after) => {
    const change = (after ? 1 : 0) - (before ? 1 : 0);
    transaction.count("announcements", change);
    transaction.count("bytes", change * ANNOUNCEMENT_BYTES);
  });
  const channels = new Set<string>();
  return {
    ...storedIn(table),
    ofSession: (ordinal) => table.scan({ where: { session_ordinal: ordinal }, by: "place" }),
    readyChannels: () => {
      const ready = sql`select distinct channel from announcements where not is_claimed and due <= ${transaction.sqlTime}`;
      for (const { channel } of transaction.read(ready)) channels.add(text(channel));
      return [...channels];
    },
    firstReady: (channel) => table.scan({ where: { channel, is_ready: true }, by: "place", limit: 1 }, PREFETCHED)[0],
    // Empty, because an announcement is read as ready as soon as it is due.
    dueBy: () => [],
    nextDueAt: () => {
      const later = sql`not is_claimed and due > ${transaction.sqlTime}`;
      const [row] = transaction.read(sql`select min(due) as due from announcements where ${later}`);
      return (row?.due ?? undefined) as number | undefined;
    },
    leaseEnded: (upTo) => table.scan({ where: { is_claimed: true, lease_ends: { upTo } }, by: "place" }),
  };
}
