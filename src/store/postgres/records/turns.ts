import { isOpen, type OpenTurn, type OpenTurnRecord, type Records, type TurnRecord } from "#store/rules/records.ts";
import type { Turn, TurnError } from "#store/store.ts";
import { keepOptional, keepText } from "../texts.ts";
import { fields, leaseColumns, moreOf, readLease, usageOf } from "./fields.ts";
import type { OpenTurns, Sessions } from "./sessions.ts";
import { json, number, optional, optionalText, quote, type Row, type Sql, sql, text, textList } from "./sql.ts";
import { layout, type Moment, type Scan, Table } from "./table.ts";
import type { Part, Statement, Transaction } from "./transaction.ts";

const TURN_BYTES = 800;
/** Turns of an agent and a kind that are looked at together by a claim. */
const READY_TOGETHER = 32;

const BATCH = `(select json_build_object('most', b.most_attempts, 'keep', b.stream_keep, 'ids',
  (select json_agg(e.event_id order by e.ordinal) from events e where e.ordinal = any (b.ordinals)))
  from event_batches b where t.has_events and b.turn_id = t.turn_id)`;
const WHOLE = `t.*, to_json(t.more) as more_used, ${BATCH} as batch,
  (select e.text from entries e where e.session = t.session and e.seq = t.reply_at) as reply`;
/** A list shows no replies. */
const LISTED = "t.*, to_json(t.more) as more_used, null as batch, null as reply";

const FIXED = "session, session_id, agent, surface, caller, created_at, skill_ids, message_id, seq, delivery_id".split(
  ", ",
);

type Batch = { ids: string[] | null; most: number; keep: number };

type OpenFields = Omit<OpenTurn, "events" | "announce" | "dueAt" | "lease">;

const TURN = fields<Omit<Turn, "skillIds" | "reply" | "error" | "usage">>({
  text: ["turnId", "agent", "surface", "status", "messageId"],
  kept: ["sessionId", "caller", "model", "deliveryId"],
  integer: ["attempt", "seq"],
  bigint: ["createdAt", "startedAt", "endedAt"],
});
const OPEN = fields<OpenFields>({
  boolean: ["waited", "isCancelled"],
  kept: ["countedModel"],
  text: ["replyMessageId"],
  "double precision": ["spentMs"],
  bigint: ["readyOrder"],
});
const ENDED: OpenFields = {
  waited: false,
  countedModel: "",
  replyMessageId: "",
  spentMs: 0,
  isCancelled: false,
  readyOrder: undefined,
};

const layoutOf = (select: string) =>
  layout<TurnRecord>({
    table: "turns",
    key: ["turn_id"],
    keyOf: ({ turn }) => turn.turnId,
    select,
    fixed: FIXED,
    columns: [
      ...TURN.columns<TurnRecord>(({ turn }) => turn),
      ...OPEN.columns<TurnRecord>(({ open }) => open ?? ENDED),
      ...leaseColumns<TurnRecord>(({ open }) => open?.lease),
      ["session", "bigint", ({ ordinal }) => ordinal],
      ["skill_ids", "json", ({ turn }) => turn.skillIds.map(keepText)],
      ["reply_at", "integer", ({ replySeq }) => replySeq || undefined],
      ["error", "text", ({ turn }) => turn.error?.name],
      ["detail", "text", ({ turn }) => keepOptional(turn.error?.detail)],
      ["input", "bigint", ({ turn }) => turn.usage?.input],
      ["output", "bigint", ({ turn }) => turn.usage?.output],
      ["more", "bigint[]", ({ turn }) => moreOf(turn.usage)],
      ["channel", "text", ({ open }) => keepOptional(open?.announce?.channel)],
      ["hops", "integer", ({ open }) => open?.announce?.hops],
      ["has_events", "boolean", ({ open }) => open?.events !== undefined],
      // Since when it can be claimed, or from when on.
      ["ready_at", "double precision", ({ open }, { time }) => (open?.readyOrder === undefined ? open?.dueAt : time)],
    ],
    read: (row, moment) => ({
      turn: {
        ...TURN.read(row),
        skillIds: (row.skill_ids as string[]).map(text),
        reply: optionalText(row.reply),
        error: row.error ? { name: row.error as TurnError["name"], detail: optionalText(row.detail) } : undefined,
        usage: row.input === null ? undefined : usageOf(row.input, row.output, row.more_used),
      },
      ordinal: number(row.session),
      place: number(row.seq),
      replySeq: optional(row.reply_at) ?? 0,
      open: row.ended_at === null ? openOf(row, moment) : undefined,
    }),
  });

const openOf = (row: Row, { time }: Moment): OpenTurn => {
  const batch = row.batch as Batch | null;
  const readyAt = optional(row.ready_at);
  const open = OPEN.read(row);
  const isReady = readyAt !== undefined && readyAt <= time && open.readyOrder !== undefined;
  return {
    ...open,
    events: batch ? { ids: batch.ids ?? [], maxAttempts: batch.most, streamKeep: batch.keep } : undefined,
    announce: row.hops === null ? undefined : { channel: optionalText(row.channel), hops: number(row.hops) },
    replyMessageId: open.replyMessageId ?? "",
    readyOrder: isReady ? open.readyOrder : undefined,
    dueAt: isReady ? undefined : readyAt,
    lease: row.status === "running" ? readLease(row) : undefined,
  };
};

const WHOLE_TURNS = layoutOf(WHOLE);
const LISTED_TURNS = layoutOf(LISTED);

/** The turns of each agent and kind that come first, of all that can be claimed. */
const firstOfAll = (time: Sql): Sql => sql`(
    with recursive agents as (
      (select agent from turns where ready_at is not null order by agent limit 1)
      union all
      select (select t.agent from turns t where t.ready_at is not null and t.agent > a.agent order by t.agent limit 1)
      from agents a where a.agent is not null
    )
    select first.* from agents cross join (values (true), (false)) as kinds (waited) cross join lateral (
      select * from turns t where t.agent = agents.agent and t.waited = kinds.waited and t.ready_at <= ${time} and t.ready_order is not null
      order by t.ready_at, t.ready_order limit ${READY_TOGETHER}
    ) as first) as t`;

const byOrder = ({ open: a }: TurnRecord, { open: b }: TurnRecord): number =>
  (a?.readyOrder ?? 0) - (b?.readyOrder ?? 0);
const byPlace = (a: TurnRecord, b: TurnRecord): number => a.ordinal - b.ordinal || a.place - b.place;

export class Turns implements Part, OpenTurns {
  readonly #transaction: Transaction;
  readonly #whole: Table<TurnRecord>;
  readonly #listed: Table<TurnRecord>;
  readonly #sessions: () => Sessions;
  readonly #journal: Records["journal"];
  readonly #ordinalsOf: (eventIds: readonly string[]) => number[];

  /** Turns whose sessions were asked for ahead of their claims. */
  readonly #ahead = new Set<string>();
  #isReadyWanted = false;
  #readyAgents: Set<string> | undefined;

  /** `ordinalsOf` tells the ordinals of events that are here. */
  constructor(
    transaction: Transaction,
    sessions: () => Sessions,
    journal: Records["journal"],
    ordinalsOf: (eventIds: readonly string[]) => number[],
  ) {
    this.#transaction = transaction;
    this.#sessions = sessions;
    this.#journal = journal;
    this.#ordinalsOf = ordinalsOf;
    transaction.add(this);
    this.#whole = new Table(transaction, WHOLE_TURNS);
    this.#listed = new Table(transaction, LISTED_TURNS);
  }

  readonly records: Records["turns"] = {
    find: (turnId) => {
      if (!this.#whole.knows(turnId)) this.#sessions().wantOfTurn(turnId);
      const record = this.#whole.find(turnId);
      if (record) this.#sessions().records.at(record.ordinal);
      return record;
    },
    put: (record) => {
      const before = this.#whole.peek(record.turn.turnId);
      this.#whole.put(record);
      const change = Number(record.open !== undefined) - Number(before?.open !== undefined);
      if (change !== 0) this.#sessions().addOpen(record.ordinal, change);
      if (!before) this.#sessions().weigh(record.ordinal, TURN_BYTES);
    },
    delete: ({ turn, ordinal }) => {
      this.#whole.delete(turn.turnId);
      this.#sessions().weigh(ordinal, -TURN_BYTES);
    },
    open: (agent) => {
      const isOf = ({ turn, open }: TurnRecord) => open !== undefined && (agent === undefined || turn.agent === agent);
      const where = sql`t.ended_at is null ${agent === undefined ? "" : sql`and t.agent = ${quote(keepText(agent))}`}`;
      return this.#held(this.#whole.scan({ where, order: "t.session, t.seq", matches: isOf, compare: byPlace }));
    },
    before: (turnId, limit) => {
      const scan = {
        where: turnId === undefined ? sql`true` : sql`t.turn_id < ${quote(turnId)}`,
        order: "t.turn_id desc",
        matches: ({ turn }: TurnRecord) => turnId === undefined || turn.turnId < turnId,
        compare: (a: TurnRecord, b: TurnRecord) => (a.turn.turnId < b.turn.turnId ? 1 : -1),
      };
      const found = this.#listed.scan(scan, limit);
      for (const { ordinal } of found) this.#sessions().records.at(ordinal);
      return found;
    },
    readyAgents: () => {
      this.#isReadyWanted = true;
      const agents = new Set(this.#readyAgents);
      for (const [record] of this.#whole.changes())
        if (record?.open?.readyOrder !== undefined) agents.add(record.turn.agent);
      return [...agents];
    },
    firstReady: (agent, waited) => {
      const of = this.#ready(agent, waited);
      // A claim goes on with those behind it: twice as many each time.
      const together = Math.max(READY_TOGETHER, this.#ahead.size);
      for (const { turn, ordinal } of this.#whole.scan(of, together, READY_TOGETHER)) {
        if (this.#ahead.has(turn.turnId)) continue;
        this.#ahead.add(turn.turnId);
        this.#sessions().records.at(ordinal);
        this.#journal(ordinal).after(turn.seq - 2, 1);
      }
      return this.#whole.scan(of, 1).filter(isOpen)[0];
    },
    dueBy: (time) => {
      const scan = {
        where: sql`t.ready_order is null and t.ready_at <= ${this.#transaction.sqlTime}`,
        order: "t.ready_at",
        matches: ({ open }: TurnRecord) => open?.dueAt !== undefined && open.dueAt <= time,
        compare: ({ open: a }: TurnRecord, { open: b }: TurnRecord) => (a?.dueAt ?? 0) - (b?.dueAt ?? 0),
      };
      return this.#held(this.#whole.scan(scan));
    },
    nextDueAt: () => {
      const later = sql`ready_order is null and ready_at > ${this.#transaction.sqlTime}`;
      const rows = this.#transaction.read(sql`select min(ready_at) as due from turns where ${later}`);
      const due = [optional(rows[0]?.due), ...[...this.#whole.changes()].map(([record]) => record?.open?.dueAt)];
      return due.reduce((first, at) => (at === undefined || at >= (first ?? Infinity) ? first : at), undefined);
    },
    leaseEnded: (time) => {
      const scan = {
        where: sql`t.status = 'running' and t.lease_ends <= ${this.#transaction.sqlTime}`,
        order: "t.session, t.seq",
        matches: ({ open }: TurnRecord) => open?.lease !== undefined && open.lease.endsAt <= time,
        compare: byPlace,
      };
      return this.#held(this.#whole.scan(scan));
    },
  };

  ofSession(ordinal: number): OpenTurnRecord[] {
    return this.#whole.here((record) => record.ordinal === ordinal && isOpen(record)).filter(isOpen);
  }

  loading(where: Sql): Statement {
    const of = sql`select t.turn_id from turns t where t.ended_at is null and ${where}`;
    return { sql: this.#whole.query(sql`where t.turn_id in (${of})`), take: (rows) => this.#whole.take(rows) };
  }

  /** Turns whose sessions this transaction holds: of others it asks for them. */
  #held(found: readonly TurnRecord[]): OpenTurnRecord[] {
    for (const { ordinal } of found) this.#sessions().records.at(ordinal);
    return found.filter(isOpen);
  }

  #ready(agent: string, waited: boolean): Scan<TurnRecord> {
    return {
      where: sql`t.agent = ${quote(keepText(agent))} and t.waited = ${waited} and t.ready_at <= ${this.#transaction.sqlTime}
        and t.ready_order is not null`,
      order: "t.ready_at, t.ready_order",
      matches: ({ turn, open }) => open?.readyOrder !== undefined && open.waited === waited && turn.agent === agent,
      compare: byOrder,
    };
  }

  wanted(): Statement[] {
    if (!this.#isReadyWanted || this.#readyAgents) return [];
    const first = sql`select ${WHOLE} from ${firstOfAll(this.#transaction.sqlTime)}`;
    const take = (rows: readonly Row[]): void => {
      this.#readyAgents = new Set(rows.map(({ agent }) => agent as string));
      for (const agent of this.#readyAgents) {
        for (const waited of [true, false]) {
          const first = rows.filter((row) => row.agent === agent && row.waited === waited);
          this.#whole.takeScan(this.#ready(agent, waited), first, READY_TOGETHER);
        }
      }
    };
    return [{ sql: first, take }];
  }

  /** The events that turns work on: a row for all of a turn. */
  saved(): Sql[] {
    const begun: object[] = [];
    const ended: string[] = [];
    for (const [after, before] of this.#whole.changes()) {
      const { turnId = "", agent = "" } = after?.turn ?? {};
      const events = after?.open?.events;
      if (before?.open?.events && !events) ended.push(before.turn.turnId);
      if (!events || before) continue;
      const ordinals = this.#ordinalsOf(events.ids);
      begun.push({ turn_id: turnId, agent, ordinals, most: events.maxAttempts, keep: events.streamKeep });
    }
    const types = "turn_id text, agent text, ordinals bigint[], most integer, keep integer";
    const inserted = sql`insert into event_batches (turn_id, agent, ordinals, most_attempts, stream_keep)
      select turn_id, agent, ordinals, most, keep from json_to_recordset(${json(begun)}) as of (${types})`;
    const deleted = sql`delete from event_batches where turn_id = any (${textList(ended)})`;
    return [...(begun.length > 0 ? [inserted] : []), ...(ended.length > 0 ? [deleted] : [])];
  }
}
