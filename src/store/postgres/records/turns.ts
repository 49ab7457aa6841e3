import { laneOf } from "#store/rules/leases.ts";
import { isOpen, type OpenTurn, type OpenTurnRecord, type Records, type TurnRecord } from "#store/rules/records.ts";
import type { CompactionTask, Turn, TurnAnnouncement, TurnError } from "#store/store.ts";
import { encodeOptional, encodeText } from "../texts.ts";
import { fields, leaseColumns, moreOf, readLease, usageOf } from "./fields.ts";
import type { OpenTurns, Sessions } from "./sessions.ts";
import { json, number, optional, optionalText, type Row, type Sql, sql, text, textList } from "./sql.ts";
import { layout, type Moment, type Scan, Table } from "./table.ts";
import type { Part, Statement, Transaction } from "./transaction.ts";

const TURN_BYTES = 800;
/** The number of ready turns that a claim loads together, for each agent and each lane. */
const PREFETCHED = 32;

const BATCH = `(select json_build_object('most', b.most_attempts, 'keep', b.stream_keep, 'ids',
  (select json_agg(e.event_id order by e.ordinal) from events e where e.ordinal = any (b.ordinals)))
  from event_batches b where t.has_events and b.turn_id = t.turn_id)`;
const WHOLE = `t.*, to_json(t.more) as more_used, ${BATCH} as batch,
  (select e.text from entries e where e.session = t.session and e.seq = t.reply_at) as reply`;
/** The columns for lists: without replies. */
const LISTED = "t.*, to_json(t.more) as more_used, null as batch, null as reply";

const FIXED =
  "session, place, session_id, agent, surface, caller, created_at, skill_ids, message_id, seq, delivery_id, preview".split(
    ", ",
  );

type Batch = { ids: string[] | null; most: number; keep: number };

type OpenFields = Omit<OpenTurn, "task" | "announce" | "dueAt" | "lease">;

const TURN = fields<Omit<Turn, "skillIds" | "reply" | "error" | "usage" | "announcement">>({
  text: ["turnId", "agent", "surface", "status", "messageId"],
  escaped: ["sessionId", "caller", "model", "deliveryId", "preview", "replyPreview"],
  integer: ["attempt", "seq"],
  bigint: ["createdAt", "startedAt", "endedAt"],
});
const OPEN = fields<OpenFields>({
  boolean: ["waited", "isCancelled"],
  escaped: ["countedModel"],
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

function weightOf(record: TurnRecord | undefined): number {
  if (!record) return 0;
  const { preview = "", replyPreview = "" } = record.turn;
  return TURN_BYTES + Buffer.byteLength(preview) + Buffer.byteLength(replyPreview);
}

function layoutOf(select: string) {
  return layout<TurnRecord>({
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
      ["skill_ids", "json", ({ turn }) => turn.skillIds.map(encodeText)],
      ["reply_at", "integer", ({ replySeq }) => replySeq || undefined],
      ["error", "text", ({ turn }) => turn.error?.name],
      ["detail", "text", ({ turn }) => encodeOptional(turn.error?.detail)],
      ["input", "bigint", ({ turn }) => turn.usage?.input],
      ["output", "bigint", ({ turn }) => turn.usage?.output],
      ["more", "bigint[]", ({ turn }) => moreOf(turn.usage)],
      ["announcement", "text", ({ turn }) => turn.announcement && JSON.stringify(turn.announcement)],
      ["channel", "text", ({ open }) => encodeOptional(open?.announce?.channel)],
      ["hops", "integer", ({ open }) => open?.announce?.hops],
      ["has_events", "boolean", ({ open }) => open?.task?.kind === "beat"],
      ["task", "json", ({ open }) => (open?.task?.kind === "compact" ? open.task : undefined)],
      ["place", "bigint", ({ place }) => place],
      ["lane", "text", ({ open }) => open && laneOf(open)],
      // The time from which the turn can be claimed, in the past or in the future.
      ["ready_at", "double precision", ({ open }, { time }) => (open?.readyOrder === undefined ? open?.dueAt : time)],
    ],
    computed: {
      is_open: [() => "t.ended_at is null", ({ open }) => open !== undefined],
      is_running: [() => "t.status = 'running'", ({ turn }) => turn.status === "running"],
      is_ready: [
        (now) => `t.ready_at <= ${now} and t.ready_order is not null`,
        ({ open }) => open?.readyOrder !== undefined,
      ],
      is_delayed: [() => "t.ready_order is null", ({ open }) => open?.dueAt !== undefined],
      ready: [() => "t.ready_at, t.ready_order", ({ open }) => open?.readyOrder],
    },
    read: (row, moment) => ({
      turn: {
        skillIds: (row.skill_ids as string[]).map(text),
        ...TURN.read(row),
        reply: optionalText(row.reply),
        error: row.error ? { name: row.error as TurnError["name"], detail: optionalText(row.detail) } : undefined,
        usage: row.input === null ? undefined : usageOf(row.input, row.output, row.more_used),
        announcement: announcementOf(row),
      },
      ordinal: number(row.session),
      place: optional(row.place) ?? number(row.seq),
      replySeq: optional(row.reply_at) ?? 0,
      open: row.ended_at === null ? openOf(row, moment) : undefined,
    }),
  });
}

function announcementOf(row: Row): TurnAnnouncement | undefined {
  if (!row.announcement) return undefined;
  const { channel, hops, state, reason } = JSON.parse(row.announcement as string) as TurnAnnouncement;
  return { channel, hops, state, reason };
}

function openOf(row: Row, { time }: Moment): OpenTurn {
  const batch = row.batch as Batch | null;
  const readyAt = optional(row.ready_at);
  const open = OPEN.read(row);
  const isReady = readyAt !== undefined && readyAt <= time && open.readyOrder !== undefined;
  return {
    task: batch
      ? { kind: "beat", ids: batch.ids ?? [], maxAttempts: batch.most, streamKeep: batch.keep }
      : ((row.task as CompactionTask | null) ?? undefined),
    ...open,
    announce: row.hops === null ? undefined : { channel: optionalText(row.channel), hops: number(row.hops) },
    replyMessageId: open.replyMessageId ?? "",
    readyOrder: isReady ? open.readyOrder : undefined,
    dueAt: isReady ? undefined : readyAt,
    lease: row.status === "running" ? readLease(row) : undefined,
  };
}

const WHOLE_TURNS = layoutOf(WHOLE);
const LISTED_TURNS = layoutOf(LISTED);

/** The agents of turns that can be claimed. The query jumps from agent to agent in the index, so that it does not read all turns. */
function readyAgents(now: Sql): Sql {
  return sql`with recursive agents as (
    (select agent from turns where ready_at is not null order by agent limit 1)
    union all
    select (select t.agent from turns t where t.ready_at is not null and t.agent > a.agent order by t.agent limit 1)
    from agents a where a.agent is not null
  )
  select agent from agents where exists (
    select from turns t where t.agent = agents.agent and t.ready_at <= ${now} and t.ready_order is not null)`;
}

export class Turns implements Part, OpenTurns {
  readonly #transaction: Transaction;
  readonly #whole: Table<TurnRecord>;
  readonly #listed: Table<TurnRecord>;
  readonly #sessions: () => Sessions;
  readonly #journal: Records["journal"];
  readonly #ordinalsOf: (eventIds: readonly string[]) => number[];

  /** The turns whose sessions were loaded in advance for a claim. */
  readonly #ahead = new Set<string>();

  /** `ordinalsOf` returns the ordinals of the events that are loaded. */
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
    this.#whole = new Table(transaction, WHOLE_TURNS, (before, after) => {
      const ordinal = (before ?? after)?.ordinal ?? 0;
      sessions().addOpen(ordinal, (after?.open ? 1 : 0) - (before?.open ? 1 : 0));
      sessions().weigh(ordinal, weightOf(after) - weightOf(before));
    });
    this.#listed = new Table(transaction, LISTED_TURNS);
  }

  readonly records: Records["turns"] = {
    find: (turnId) => {
      if (!this.#whole.knows(turnId)) this.#sessions().wantOfTurn(turnId);
      const record = this.#whole.find(turnId);
      if (record) this.#sessions().records.at(record.ordinal);
      return record;
    },
    listed: (turnId) => {
      const record = this.#listed.find(turnId);
      if (record) this.#sessions().records.at(record.ordinal);
      return record;
    },
    put: (record) => this.#whole.put(record),
    delete: (record) => this.#whole.delete(record),
    open: (agent) => this.#held({ where: { is_open: true, agent }, by: "session" }),
    before: (below, limit) => {
      const found = this.#listed.scan({ where: { turn_id: { below } }, by: "turn_id", newestFirst: true, limit });
      for (const { ordinal } of found) this.#sessions().records.at(ordinal);
      return found;
    },
    readyAgents: () => {
      const ready = this.#transaction.read(readyAgents(this.#transaction.sqlTime));
      const agents = new Set(ready.map(({ agent }) => agent as string));
      for (const [record] of this.#whole.changes())
        if (record?.open?.readyOrder !== undefined) agents.add(record.turn.agent);
      return [...agents];
    },
    firstReady: (agent, lane) => {
      const ready: Scan = { where: { agent, lane, is_ready: true }, by: "ready" };
      // A claim continues with the next turns, and doubles the number that is loaded each time.
      const limit = Math.max(PREFETCHED, this.#ahead.size);
      for (const { turn, ordinal } of this.#whole.scan({ ...ready, limit }, PREFETCHED)) {
        if (this.#ahead.has(turn.turnId)) continue;
        this.#ahead.add(turn.turnId);
        this.#sessions().records.at(ordinal);
        if (lane !== "compact") this.#journal(ordinal).after(turn.seq - 2, 1);
      }
      return this.#whole.scan({ ...ready, limit: 1 }).filter(isOpen)[0];
    },
    dueBy: (upTo) => this.#held({ where: { is_delayed: true, ready_at: { upTo } }, by: "ready_at" }),
    nextDueAt: () => {
      const later = sql`ready_order is null and ready_at > ${this.#transaction.sqlTime}`;
      const rows = this.#transaction.read(sql`select min(ready_at) as due from turns where ${later}`);
      const due = [optional(rows[0]?.due), ...[...this.#whole.changes()].map(([record]) => record?.open?.dueAt)];
      return due.reduce((first, at) => (at === undefined || at >= (first ?? Infinity) ? first : at), undefined);
    },
    leaseEnded: (upTo) => this.#held({ where: { is_running: true, lease_ends: { upTo } }, by: "session" }),
  };

  ofSession(ordinal: number): OpenTurnRecord[] {
    return this.#whole.filter((record) => record.ordinal === ordinal && isOpen(record)).filter(isOpen);
  }

  loading(where: Sql): Statement {
    const of = sql`select t.turn_id from turns t where t.ended_at is null and ${where}`;
    return { sql: this.#whole.query(sql`where t.turn_id in (${of})`), take: (rows) => this.#whole.take(rows) };
  }

  /** The turns of a scan. Loads and locks their sessions. */
  #held(scan: Scan): OpenTurnRecord[] {
    const found = this.#whole.scan(scan);
    for (const { ordinal } of found) this.#sessions().records.at(ordinal);
    return found.filter(isOpen);
  }

  /** The statements that save the events of turns, with one row for each turn. */
  saved(): Sql[] {
    const begun: object[] = [];
    const ended: string[] = [];
    for (const [after, before] of this.#whole.changes()) {
      const { turnId = "", agent = "" } = after?.turn ?? {};
      const task = after?.open?.task;
      if (before?.open?.task?.kind === "beat" && !task) ended.push(before.turn.turnId);
      if (task?.kind !== "beat" || before) continue;
      const ordinals = this.#ordinalsOf(task.ids);
      begun.push({ turn_id: turnId, agent, ordinals, most: task.maxAttempts, keep: task.streamKeep });
    }
    const types = "turn_id text, agent text, ordinals bigint[], most integer, keep integer";
    const inserted = sql`insert into event_batches (turn_id, agent, ordinals, most_attempts, stream_keep)
      select turn_id, agent, ordinals, most, keep from json_to_recordset(${json(begun)}) as of (${types})`;
    const deleted = sql`delete from event_batches where turn_id = any (${textList(ended)})`;
    return [...(begun.length > 0 ? [inserted] : []), ...(ended.length > 0 ? [deleted] : [])];
  }
}
