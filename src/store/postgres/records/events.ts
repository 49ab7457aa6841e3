import type { EventRecord, Records } from "#store/rules/records.ts";
import type { SystemEvent } from "#store/store.ts";
import { fields } from "./fields.ts";
import { type Sql, sql } from "./sql.ts";
import { layout, storedIn, Table } from "./table.ts";
import type { Statement, Transaction } from "./transaction.ts";

const EVENT_BYTES = 350;

/** The turn of each event that is in a turn. A row of `event_batches` lists all events of one turn. */
const BATCHES = "(select turn_id as taken_by, unnest(ordinals) as ordinal from event_batches) as b";

function sizeOf({ event: { text, metadata } }: EventRecord): number {
  return Buffer.byteLength(text) + Buffer.byteLength(metadata ?? "");
}

const EVENT = fields<SystemEvent>(
  {
    bigint: ["ordinal", "createdAt", "endedAt"],
    text: ["eventId", "agent", "status", "turnId"],
    escaped: ["text", "metadata", "caller", "reason", "deliveryId"],
    integer: ["attempts"],
  },
  { status: "state" },
);

const WHOLE = "t.*, b.taken_by";
/** The characters of a text that a list reads. */
const LISTED_CHARACTERS = 600;
/** The columns for lists: without metadata, and with the beginning of the text. An encoded text cannot be cut. */
const LISTED = `t.ordinal, t.event_id, t.agent, t.caller, t.state, t.attempts, t.created_at, t.ended_at, t.turn_id, t.reason, t.delivery_id,
  case when ascii(t.text) = 1 then t.text else left(ltrim(t.text, E' \\t\\r\\n'), ${LISTED_CHARACTERS}) end as text, null as metadata, b.taken_by`;

const DEFINITION = {
  table: "events",
  key: ["event_id"],
  keyOf: ({ event }) => event.eventId,
  joined: `left join ${BATCHES} on b.ordinal = t.ordinal and t.state = 'queued'`,
  fixed: ["agent", "text", "metadata", "size", "caller", "created_at", "delivery_id"],
  // The recorded delivery of an event stays ended once the event has ended, even if the event is queued again.
  falling: "is_recorded",
  isSaved: (after, before) => before === undefined || !after.isTaken,
  columns: [
    ...EVENT.columns<EventRecord>(({ event }) => event),
    ["size", "integer", sizeOf],
    ["is_recorded", "boolean", ({ event }) => event.deliveryId !== undefined && event.status === "queued"],
  ],
  computed: {
    is_free: [
      () => "t.state = 'queued' and b.taken_by is null",
      ({ event, isTaken }) => event.status === "queued" && !isTaken,
    ],
  },
  read: (row) => {
    const event = EVENT.read(row);
    if (row.taken_by === null) return { event, isTaken: false };
    return { event: { ...event, turnId: row.taken_by as string }, isTaken: true };
  },
} satisfies Parameters<typeof layout<EventRecord>>[0];

const EVENTS = layout<EventRecord>({ ...DEFINITION, select: WHOLE });
const LISTED_EVENTS = layout<EventRecord>({ ...DEFINITION, select: LISTED });

export class Events {
  readonly #transaction: Transaction;
  readonly #table: Table<EventRecord>;
  readonly #listed: Table<EventRecord>;

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    this.#table = new Table(transaction, EVENTS, (before, after) => {
      const record = before ?? after;
      const weight = record ? sizeOf(record) + EVENT_BYTES : 0;
      transaction.count("bytes", (after ? weight : 0) - (before ? weight : 0));
    });
    this.#listed = new Table(transaction, LISTED_EVENTS);
  }

  get records(): Records["events"] {
    const table = this.#table;
    return {
      ...storedIn(table),
      listed: (eventId) => this.#listed.find(eventId),
      free: (agent, above, limit) =>
        table.scan({ where: { agent, is_free: true, ordinal: { above } }, by: "ordinal", limit }),
      before: (below, limit) => table.scan({ where: { ordinal: { below } }, by: "ordinal", newestFirst: true, limit }),
      endedBefore: (below, limit) => table.scan({ where: { ended_at: { below } }, by: "ended_at", limit }),
    };
  }

  /** Loads the events of these turns. */
  ofTurns(turnIds: Sql): Statement {
    const found = sql`select t.*, b.taken_by from ${BATCHES} join events t on t.ordinal = b.ordinal where b.taken_by = any (${turnIds})`;
    return { sql: found, take: (rows) => this.#table.take(rows) };
  }

  /** The last ordinal that was assigned. */
  last(): number {
    const rows = this.#transaction.read(
      sql`select case when is_called then last_value else 0 end as last from event_ordinals`,
    );
    return Math.max((rows[0]?.last as number | undefined) ?? 0, this.#transaction.lastOf("event"));
  }

  /** The ordinals of the events that are loaded. */
  readonly ordinalsOf = (eventIds: readonly string[]): number[] =>
    eventIds.flatMap((eventId) => this.#table.peek(eventId)?.event.ordinal ?? []);
}
