import type { AnnouncementRecord, Records } from "#store/rules/records.ts";
import { keepOptional, keepText } from "../texts.ts";
import { number, optionalText, quote, sql, text } from "./sql.ts";
import { type Layout, type Scan, Table } from "./table.ts";
import type { Transaction } from "./transaction.ts";

const ANNOUNCEMENT_BYTES = 500;
/** Announcements of a channel that are looked at together. */
const TOGETHER = 16;

const layoutOf = (transaction: Transaction): Layout<AnnouncementRecord> => ({
  table: "announcements",
  key: ["turn_id"],
  keyOf: ({ announcement }) => announcement.turnId,
  keySql: "t.turn_id",
  columns: [
    ["turn_id", "text", ({ announcement }) => announcement.turnId],
    ["session_id", "text", ({ announcement }) => keepText(announcement.sessionId)],
    ["session_ordinal", "bigint", ({ ordinal }) => ordinal],
    ["agent", "text", ({ announcement }) => announcement.agent],
    ["channel", "text", ({ announcement }) => keepText(announcement.channel)],
    ["hops", "integer", ({ announcement }) => announcement.hops],
    ["delivery_id", "text", ({ announcement }) => keepOptional(announcement.deliveryId)],
    ["created_at", "bigint", ({ announcement }) => announcement.createdAt],
    ["attempts", "integer", ({ announcement }) => announcement.attempts],
    ["due", "double precision", ({ dueAt }) => dueAt ?? 0],
    ["is_claimed", "boolean", ({ lease }) => lease !== undefined],
    ["node", "text", ({ lease }) => lease?.node],
    ["fence", "bigint", ({ fence }) => fence],
    ["lease_ends", "double precision", ({ lease }) => lease?.endsAt],
  ],
  read: (row) => ({
    announcement: {
      turnId: row.turn_id as string,
      sessionId: text(row.session_id),
      agent: row.agent as string,
      channel: text(row.channel),
      hops: number(row.hops),
      deliveryId: optionalText(row.delivery_id),
      createdAt: number(row.created_at),
      attempts: number(row.attempts),
    },
    ordinal: number(row.session_ordinal),
    place: number(row.ordinal),
    dueAt: !row.is_claimed && number(row.due) > transaction.time ? number(row.due) : undefined,
    fence: number(row.fence),
    lease: row.is_claimed ? { node: row.node as string, endsAt: number(row.lease_ends) } : undefined,
  }),
});

const canBeClaimed = ({ lease, dueAt }: AnnouncementRecord): boolean => !lease && dueAt === undefined;
const byPlace = (a: AnnouncementRecord, b: AnnouncementRecord): number => a.place - b.place;

export const announcementRecords = (transaction: Transaction): Records["announcements"] => {
  const table = new Table(transaction, layoutOf(transaction));
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
