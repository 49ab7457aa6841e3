import type { OpenTurnRecord, Records, SessionRecord, SummaryRecord } from "#store/rules/records.ts";
import type { Session } from "#store/store.ts";
import { encodeOptional, encodeText } from "../texts.ts";
import { fields, moreOf, usageOf } from "./fields.ts";
import { number, numberList, optional, type Row, type Sql, sql, text, textList } from "./sql.ts";
import { layout, type Scan, Table } from "./table.ts";
import type { Part, Statement, Transaction } from "./transaction.ts";

/** A session with the number of unfinished turns in its queue, its size in bytes and its summary. */
type SessionRow = { record: SessionRecord; open: number; bytes: number; summary: SummaryRecord | undefined };
/** The unfinished turns of sessions. They are loaded with the sessions. */
export type OpenTurns = {
  ofSession(ordinal: number): OpenTurnRecord[];
  loading(where: Sql): Statement;
};

/** The events of turns. They are loaded together with the turns, because loading them one by one would be slow. */
type EventsOfTurns = { ofTurns(turnIds: Sql): Statement };

const SESSION_BYTES = 300;
/** The number of erased sessions that are loaded together. */
const PREFETCHED_ERASURES = 200;

const SESSION = fields<Omit<Session, "usage">>({
  bigint: ["ordinal", "createdAt", "updatedAt", "contextBytes"],
  escaped: ["sessionId", "channel", "userId", "preview"],
  text: ["agent"],
  integer: ["firstSeq", "lastSeq", "messageCount", "turnsQueued"],
});

const SESSIONS = layout<SessionRow>({
  table: "sessions",
  key: ["ordinal"],
  keyOf: ({ record }) => record.session.ordinal,
  keyType: "bigint",
  select: "t.*, to_json(t.more) as more_used",
  fixed: ["session_id", "agent", "channel", "user_id", "created_at"],
  columns: [
    ...SESSION.columns<SessionRow>(({ record }) => record.session),
    ["compacted_count", "integer", ({ record }) => record.compactedCount],
    ["open", "integer", ({ open }) => open],
    ["input", "bigint", ({ record }) => record.session.usage.input],
    ["output", "bigint", ({ record }) => record.session.usage.output],
    ["more", "bigint[]", ({ record }) => moreOf(record.session.usage)],
    ["bytes", "bigint", ({ bytes }) => Math.max(bytes, 0)],
    ["head_due", "bigint", ({ record }) => record.headDueAt],
    ["summary", "text", ({ summary }) => encodeOptional(summary?.summary.text)],
    ["summary_outside", "boolean", ({ summary }) => summary?.summary.outside],
    ["summary_through", "integer", ({ summary }) => summary?.through ?? 0],
    ["summary_except", "integer[]", ({ summary }) => summary?.except ?? []],
  ],
  computed: {
    used: [
      () => "least(t.updated_at, t.head_due)",
      ({ record: { session, headDueAt = Infinity } }) => Math.min(session.updatedAt, headDueAt),
    ],
  },
  read: (row) => ({
    record: {
      session: { usage: usageOf(row.input, row.output, row.more_used), ...SESSION.read(row) },
      compactedCount: number(row.compacted_count),
      headDueAt: optional(row.head_due),
    },
    open: number(row.open),
    bytes: number(row.bytes),
    summary: row.summary === null ? undefined : summaryOf(row),
  }),
});

function summaryOf(row: Row): SummaryRecord {
  return {
    ordinal: number(row.ordinal),
    summary: { text: text(row.summary), outside: row.summary_outside === true },
    through: number(row.summary_through),
    except: row.summary_except as number[],
  };
}

/** Deleted sessions whose journals are not completely erased. */
const ERASURES = layout<number>({
  table: "erased_sessions",
  key: ["session"],
  keyOf: (ordinal) => ordinal,
  keyType: "bigint",
  columns: [["session", "bigint", (ordinal) => ordinal]],
  read: ({ session }) => number(session),
});

function weightOf(row: SessionRow | undefined): number {
  return row ? row.bytes + SESSION_BYTES : 0;
}

/** Sessions with their queues and summaries. A session is loaded and locked as a whole. */
export class Sessions implements Part {
  readonly #transaction: Transaction;
  readonly #rows: Table<SessionRow>;
  readonly #erasures: Table<number>;
  readonly #turns: OpenTurns;
  readonly #events: EventsOfTurns;
  readonly #ordinals = new Map<string, number | undefined>();
  #created = new Map<string, number>();
  readonly #wantedIds = new Set<string>();
  readonly #wanted = new Set<number>();
  readonly #known = new Set<number>();
  readonly #wantedOfTurns = new Set<string>();

  constructor(transaction: Transaction, turns: OpenTurns, events: EventsOfTurns) {
    this.#transaction = transaction;
    this.#turns = turns;
    this.#events = events;
    transaction.add(this);
    this.#rows = new Table(transaction, SESSIONS, (before, after) => {
      transaction.count("sessions", (after ? 1 : 0) - (before ? 1 : 0));
      transaction.count("bytes", weightOf(after) - weightOf(before));
    });
    this.#erasures = new Table(transaction, ERASURES);
  }

  readonly records: Records["sessions"] & { at(ordinal: number): SessionRecord | undefined } = {
    find: (sessionId) => {
      const ordinal = this.#created.get(sessionId) ?? this.#ordinals.get(sessionId);
      if (ordinal !== undefined) return this.#row(ordinal)?.record;
      if (!this.#ordinals.has(sessionId)) this.#wantedIds.add(sessionId);
      return undefined;
    },
    at: (ordinal) => this.#row(ordinal)?.record,
    put: (record) => {
      const { sessionId, ordinal } = record.session;
      const row = this.#rows.peek(ordinal);
      if (!row) this.#created.set(sessionId, ordinal);
      this.#rows.put({ open: 0, bytes: 0, summary: undefined, ...row, record });
    },
    delete: (record) => {
      const { sessionId, ordinal } = record.session;
      const row = this.#rows.peek(ordinal);
      this.#created.delete(sessionId);
      if (row) this.#rows.delete(row);
    },
    before: (below, limit, agent) => {
      const scan: Scan = { where: { ordinal: { below }, agent }, by: "ordinal", newestFirst: true, limit };
      return this.#rows.scan(scan).map(({ record }) => record);
    },
    after: (above, limit, unusedSince) => {
      const scan: Scan = { where: { ordinal: { above }, used: { upTo: unusedSince } }, by: "ordinal", limit };
      // `#row` requests the rest of the session, with its lock.
      return this.#rows.scan(scan).flatMap(({ record }) => this.#row(record.session.ordinal)?.record ?? []);
    },
  };

  readonly summaries: Records["summaries"] = {
    find: (ordinal) => this.#row(ordinal)?.summary,
    put: (summary) => {
      const row = this.#rows.peek(summary.ordinal);
      if (!row) return;
      const { text: before = "" } = row.summary?.summary ?? {};
      this.#rows.put({ ...row, summary });
      this.weigh(summary.ordinal, Buffer.byteLength(summary.summary.text) - Buffer.byteLength(before));
    },
    delete: (ordinal) => {
      const row = this.#rows.peek(ordinal);
      if (row) this.#rows.put({ ...row, summary: undefined });
    },
  };

  readonly erasures: Records["erasures"] = {
    first: () => this.#erasures.scan({ by: "session", limit: 1 }, PREFETCHED_ERASURES)[0],
    add: (ordinal) => this.#erasures.put(ordinal),
    delete: (ordinal) => this.#erasures.delete(ordinal),
  };

  queue(ordinal: number): readonly OpenTurnRecord[] {
    this.#row(ordinal);
    return this.#turns.ofSession(ordinal).sort((a, b) => a.place - b.place);
  }

  /** Loads the session of a turn together with the turn. */
  wantOfTurn(turnId: string): void {
    this.#wantedOfTurns.add(turnId);
  }

  /** Changes the number of unfinished turns in the queue. */
  addOpen(ordinal: number, change: number): void {
    const row = this.#rows.peek(ordinal);
    if (row && change !== 0) this.#rows.put({ ...row, open: row.open + change });
  }

  /** Adds `bytes` to the size of a session's content. The size is deleted together with the session. */
  weigh(ordinal: number, bytes: number): void {
    const row = this.#rows.peek(ordinal);
    if (!row || bytes === 0) return;
    this.#rows.put({ ...row, bytes: row.bytes + bytes });
  }

  #row(ordinal: number): SessionRow | undefined {
    const row = this.#rows.peek(ordinal);
    if (!this.#known.has(ordinal) && !this.#transaction.isNewSession(ordinal)) this.#wanted.add(ordinal);
    return row;
  }

  wanted(): Statement[] {
    if (this.#wanted.size + this.#wantedIds.size + this.#wantedOfTurns.size === 0) return [];
    const ids = [...this.#wantedIds];
    const ordinals = [...this.#wanted];
    const turnIds = sql`${textList([...this.#wantedOfTurns].map(encodeText))}`;
    const hasTurns = this.#wantedOfTurns.size > 0;
    const affected = sql`(
      select ordinal from sessions where session_id = any (${textList(ids.map(encodeText))})
      union select unnest(${numberList(ordinals)})
      union select session from turns where turn_id = any (${turnIds}))`;
    this.#wantedIds.clear();
    this.#wanted.clear();
    this.#wantedOfTurns.clear();
    const take = (rows: readonly Row[]): void => {
      for (const id of ids) this.#ordinals.set(id, undefined);
      for (const ordinal of ordinals) this.#known.add(ordinal);
      for (const { record } of this.#rows.take(rows, ordinals)) {
        this.#ordinals.set(record.session.sessionId, record.session.ordinal);
        this.#known.add(record.session.ordinal);
      }
    };
    // The first statement takes the locks, so that the others see the writes that were committed while it waited.
    const lock = this.#transaction.isWriting ? "order by t.session_id for update of t" : "";
    return [
      { sql: this.#rows.query(sql`where t.ordinal in ${affected} ${lock}`), take },
      this.#turns.loading(sql`t.session in ${affected}`),
      ...(hasTurns && this.#transaction.isWriting ? [this.#events.ofTurns(turnIds)] : []),
    ];
  }

  reset(): void {
    this.#created = new Map();
    this.#wantedIds.clear();
    this.#wanted.clear();
    this.#wantedOfTurns.clear();
  }
}
