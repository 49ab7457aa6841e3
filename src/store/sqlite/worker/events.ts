import { type Scale, weighEvent } from "#store/live/weights.ts";
import type { EventRecord, Records } from "#store/rules/records.ts";
import { toSql } from "../text.ts";
import type { Database } from "./database.ts";
import { Table } from "./table.ts";

/** The events that a turn takes were read a moment before. */
const HELD = 100;

export const eventTable = (db: Database, scale: Scale) => {
  const table = new Table<string, EventRecord>(db, {
    table: "events",
    key: "event_id",
    columns: ["ordinal", "agent", "is_free", "ended_at"],
    keyOf: ({ event }) => event.eventId,
    valuesOf: ({ event: { ordinal, agent, status, endedAt }, isTaken }) => [
      ordinal,
      toSql(agent),
      status === "queued" && !isTaken ? 1 : 0,
      endedAt ?? null,
    ],
    held: HELD,
  });
  const free = table.search("WHERE agent = ? AND is_free = 1 AND ordinal > ? ORDER BY ordinal LIMIT ?");
  const before = table.search("WHERE ordinal < ? ORDER BY ordinal DESC LIMIT ?");
  const ended = table.search("WHERE ended_at < ? ORDER BY ended_at, ordinal LIMIT ?");
  const records: Records["events"] = {
    find: (eventId) => table.find(eventId),
    put: (record) => {
      const known = table.held(record.event.eventId);
      scale.weigh(known ? weighEvent(known) : 0, weighEvent(record));
      table.put(record);
    },
    delete: (record) => {
      scale.weigh(weighEvent(record), 0);
      table.delete(record.event.eventId);
    },
    free: (agent, after, limit) => [...table.hold(free(toSql(agent), after, limit))],
    before: (ordinal, limit) => before(Math.min(ordinal, Number.MAX_SAFE_INTEGER), limit),
    endedBefore: (time, limit) => ended(time, limit),
  };
  return { table, records };
};
