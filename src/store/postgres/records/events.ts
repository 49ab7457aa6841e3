import type { EventRecord, Records } from "#store/rules/records.ts";
import type { SystemEvent } from "#store/store.ts";
import { keepText } from "../texts.ts";
import { fields } from "./fields.ts";
import { bounded, quote, type Sql, sql } from "./sql.ts";
import { layout, type Scan, Table } from "./table.ts";
import type { Statement, Transaction } from "./transaction.ts";

const EVENT_BYTES = 350;

/** The row of a turn's events tells that the turn works on them. */
const BATCHES = "(select turn_id as taken_by, unnest(ordinals) as ordinal from event_batches) as b";

const sizeOf = ({ event: { text, metadata } }: EventRecord): number =>
  Buffer.byteLength(text) + Buffer.byteLength(metadata ?? "");

const EVENT = fields<SystemEvent>(
  {
    bigint: ["ordinal", "createdAt", "endedAt"],
    text: ["eventId", "agent", "status", "turnId"],
    kept: ["text", "metadata", "caller", "reason", "deliveryId"],
    integer: ["attempts"],
  },
  { status: "state" },
);

const EVENTS = layout<EventRecord>({
  table: "events",
  key: ["event_id"],
  keyOf: ({ event }) => event.eventId,
  select: "t.*, b.taken_by",
  joined: `left join ${BATCHES} on b.ordinal = t.ordinal and t.state = 'queued'`,
  fixed: ["agent", "text", "metadata", "size", "caller", "created_at", "delivery_id"],
  // The recorded delivery of an event has ended, even if the event is queued again.
  falling: "is_recorded",
  isSaved: (after, before) => before === undefined || !after.isTaken,
  columns: [
    ...EVENT.columns<EventRecord>(({ event }) => event),
    ["size", "integer", sizeOf],
    ["is_recorded", "boolean", ({ event }) => event.deliveryId !== undefined && event.status === "queued"],
  ],
  read: (row) => {
    const event = EVENT.read(row);
    if (row.taken_by === null) return { event, isTaken: false };
    return { event: { ...event, turnId: row.taken_by as string }, isTaken: true };
  },
});

const byOrdinal = ({ event: a }: EventRecord, { event: b }: EventRecord): number => a.ordinal - b.ordinal;

/** The ordinals of the events that turns work on. */
export const ordinalsOfTurns = (turnIds: Sql): Sql =>
  sql`select unnest(b.ordinals) from event_batches b where b.turn_id = any (${turnIds})`;

export class Events {
  readonly #transaction: Transaction;
  readonly #table: Table<EventRecord>;

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    this.#table = new Table(transaction, EVENTS);
  }

  readonly records: Records["events"] = {
    find: (eventId) => this.#table.find(eventId),
    put: (record) => {
      const before = this.#table.peek(record.event.eventId);
      this.#transaction.count("bytes", before ? 0 : sizeOf(record) + EVENT_BYTES);
      this.#table.put(record);
    },
    delete: (record) => {
      this.#transaction.count("bytes", -sizeOf(record) - EVENT_BYTES);
      this.#table.delete(record.event.eventId);
    },
    free: (agent, after, limit) => {
      const ofAgent = quote(keepText(agent));
      const scan: Scan<EventRecord> = {
        where: sql`t.agent = ${ofAgent} and t.state = 'queued' and t.ordinal > ${bounded(after)} and b.taken_by is null`,
        order: "t.ordinal",
        matches: ({ event, isTaken }) =>
          event.agent === agent && event.status === "queued" && !isTaken && event.ordinal > after,
        compare: byOrdinal,
      };
      return this.#table.scan(scan, limit);
    },
    before: (ordinal, limit) => {
      const scan: Scan<EventRecord> = {
        where: sql`t.ordinal < ${bounded(ordinal)}`,
        order: "t.ordinal desc",
        matches: ({ event }) => event.ordinal < ordinal,
        compare: (a, b) => byOrdinal(b, a),
      };
      return this.#table.scan(scan, limit);
    },
    endedBefore: (time, limit) => {
      const scan: Scan<EventRecord> = {
        where: sql`t.ended_at < ${bounded(time)}`,
        order: "t.ended_at, t.ordinal",
        matches: ({ event }) => event.endedAt !== undefined && event.endedAt < time,
        compare: (a, b) => (a.event.endedAt ?? 0) - (b.event.endedAt ?? 0) || byOrdinal(a, b),
      };
      return this.#table.scan(scan, limit);
    },
  };

  /** The events that turns work on. */
  ofTurns(turnIds: Sql): Statement {
    const found = sql`select t.*, b.taken_by from ${BATCHES} join events t on t.ordinal = b.ordinal where b.taken_by = any (${turnIds})`;
    return { sql: found, take: (rows) => this.#table.take(rows) };
  }

  /** The newest ordinal that was given. */
  last(): number {
    const rows = this.#transaction.read(
      sql`select case when is_called then last_value else 0 end as last from event_ordinals`,
    );
    return Math.max((rows[0]?.last as number | undefined) ?? 0, this.#transaction.lastOf("event"));
  }

  /** The ordinals of events that are here. */
  readonly ordinalsOf = (eventIds: readonly string[]): number[] =>
    eventIds.flatMap((eventId) => this.#table.peek(eventId)?.event.ordinal ?? []);
}
