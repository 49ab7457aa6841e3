import type { Records, Stream } from "#store/rules/records.ts";
import type { Entry, Role, SessionSize, ToolCall, TurnError, Usage } from "#store/store.ts";
import { encodeOptional } from "../texts.ts";
import { moreOf, usageOf } from "./fields.ts";
import type { Sessions } from "./sessions.ts";
import { bounded, json, number, optionalText, type Row, type Sql, sql, text } from "./sql.ts";
import type { Part, Transaction } from "./transaction.ts";

/** The size of an entry's row without its text, in bytes. */
const ENTRY_BYTES = 75;

/** An entry with the optional fields of every kind of entry. */
type AnyEntry = Entry & {
  messageId?: string;
  role?: Role;
  text?: string;
  outside?: boolean;
  context?: string | undefined;
  toolCalls?: ToolCall[] | undefined;
  attempt?: number;
  usage?: Usage;
  model?: string | undefined;
  error?: TurnError;
  before?: SessionSize;
  after?: SessionSize;
};
/** An entry of a session, and the entry before it in the same append. */
type Written = { session: number; entry: AnyEntry; previous: Entry | undefined };

const COLUMNS: readonly (readonly [name: string, type: string, value: (written: Written) => unknown])[] = [
  ["session", "bigint", ({ session }) => session],
  ["seq", "integer", ({ entry }) => entry.seq],
  ["at", "bigint", ({ entry }) => entry.at],
  ["turn_id", "text", ({ entry }) => entry.turnId],
  ["name", "text", ({ entry }) => entry.name],
  ["message_id", "text", ({ entry, previous }) => entry.messageId ?? replyOf(entry, previous)],
  ["role", "text", ({ entry }) => entry.role],
  ["text", "text", ({ entry }) => encodeOptional(entry.text)],
  ["outside", "boolean", ({ entry }) => entry.outside],
  ["context", "text", ({ entry }) => encodeOptional(entry.context ?? encodeCalls(entry.toolCalls))],
  ["attempt", "integer", ({ entry }) => entry.attempt],
  ["input", "bigint", ({ entry }) => entry.usage?.input],
  ["output", "bigint", ({ entry }) => entry.usage?.output],
  ["error", "text", ({ entry }) => entry.error?.name],
  ["detail", "text", ({ entry }) => encodeOptional(entry.error?.detail)],
  ["sizes", "json", ({ entry: { before, after } }) => before && [before, after]],
  ["used", "json", ({ entry: { usage, model } }) => usedOf(moreOf(usage), encodeOptional(model))],
];
const NAMES = COLUMNS.map(([name]) => name).join(", ");
/** The same columns without tool calls. Replies store their tool calls in the column `context`. */
const WITHOUT_CALLS = NAMES.replace(
  " context,",
  " case when name = 'message.completed' then null else context end as context,",
);

/** The message that contains the reply of a turn's end. The end refers to it, so that the text is stored only once. */
function replyOf(entry: Entry, previous: Entry | undefined): string | undefined {
  return "reply" in entry && previous?.name === "message.completed" ? previous.messageId : undefined;
}

function usedOf(more: unknown, model: string | undefined): unknown {
  return more || model !== undefined ? [more ?? null, model ?? null] : undefined;
}

function encodeCalls(calls: ToolCall[] | undefined) {
  return calls && JSON.stringify(calls);
}
function decodeCalls(calls: string | undefined) {
  return calls === undefined ? undefined : (JSON.parse(calls) as ToolCall[]);
}

const NO_SIZE: SessionSize = { messages: 0, tokens: 0 };

/** Reads an entry. If the row of a turn's end refers to a message, the reply is the text of the row `before` it. */
function readEntry(row: Row, before: Row | undefined): Entry {
  const name = row.name as Entry["name"];
  const of = { seq: number(row.seq), at: number(row.at), turnId: row.turn_id as string };
  const message = { messageId: row.message_id as string, text: text(row.text ?? "") };
  const used = row.used as [unknown, unknown] | null;
  const usage = usageOf(row.input ?? 0, row.output ?? 0, used?.[0]);
  const model = optionalText(used?.[1]);
  switch (name) {
    case "message.created": {
      const { messageId, text } = message;
      const rest = { outside: row.outside === true, context: optionalText(row.context) };
      return { name, ...of, messageId, role: (row.role ?? "user") as Role, text, ...rest };
    }
    case "message.completed":
      return { name, ...of, ...message, toolCalls: decodeCalls(optionalText(row.context)) };
    case "turn.queued":
      return { name, ...of };
    case "turn.started":
      return { name, ...of, attempt: number(row.attempt) };
    case "turn.failed": {
      const error = { name: (row.error ?? "internal") as TurnError["name"], detail: optionalText(row.detail) };
      return { name, ...of, usage, model, error };
    }
    case "session.compacted": {
      const [before, after] = (row.sizes as [SessionSize, SessionSize] | null) ?? [NO_SIZE, NO_SIZE];
      return { name, ...of, before, after };
    }
    default:
      return { name, ...of, usage, model, reply: text((row.message_id === null ? row : before)?.text ?? "") };
  }
}

function weigh(entry: Entry): number {
  if (entry.name === "message.created") {
    return ENTRY_BYTES + Buffer.byteLength(entry.text) + Buffer.byteLength(entry.context ?? "");
  }
  if (entry.name !== "message.completed") return ENTRY_BYTES;
  return ENTRY_BYTES + Buffer.byteLength(entry.text) + Buffer.byteLength(encodeCalls(entry.toolCalls) ?? "");
}

/** The journals of sessions. */
export class Journals implements Part {
  readonly #transaction: Transaction;
  readonly #sessions: Sessions;
  #journals = new Map<number, Journal>();

  constructor(transaction: Transaction, sessions: Sessions) {
    this.#transaction = transaction;
    this.#sessions = sessions;
    transaction.add(this);
  }

  readonly of: Records["journal"] = (ordinal) => {
    let journal = this.#journals.get(ordinal);
    if (!journal) {
      journal = new Journal(this.#transaction, this.#sessions, ordinal);
      this.#journals.set(ordinal, journal);
    }
    return journal;
  };

  reset(): void {
    this.#journals = new Map();
  }

  saved(): Sql[] {
    const rows: object[] = [];
    const erased: object[] = [];
    for (const [session, { appended, erasedBefore }] of this.#journals) {
      for (const [n, entry] of appended.entries()) {
        const written = { session, entry, previous: appended[n - 1] };
        rows.push(Object.fromEntries(COLUMNS.map(([name, , value]) => [name, value(written)])));
      }
      if (erasedBefore > 0) erased.push({ session, seq: erasedBefore });
    }
    const types = COLUMNS.map(([name, type]) => `${name} ${type}`).join(", ");
    const stored = sql`insert into entries (${NAMES}) select ${NAMES} from json_to_recordset(${json(rows)}) as of (${types})`;
    const deletion = sql`delete from entries using json_to_recordset(${json(erased)}) as of (session bigint, seq integer)
      where entries.session = of.session and entries.seq < of.seq`;
    return [...(rows.length > 0 ? [stored] : []), ...(erased.length > 0 ? [deletion] : [])];
  }
}

class Journal implements Stream<Entry> {
  readonly #transaction: Transaction;
  readonly #sessions: Sessions;
  readonly #ordinal: number;
  readonly appended: Entry[] = [];
  readonly #seen = new Map<number, Entry>();
  erasedBefore = 0;

  constructor(transaction: Transaction, sessions: Sessions, ordinal: number) {
    this.#transaction = transaction;
    this.#sessions = sessions;
    this.#ordinal = ordinal;
  }

  get first(): number {
    const first = this.#ends()?.first as number | null | undefined;
    return Math.max(first ?? this.appended[0]?.seq ?? 1, this.erasedBefore);
  }

  get last(): number {
    const last = this.#ends()?.last as number | null | undefined;
    return this.appended.at(-1)?.seq ?? last ?? this.first - 1;
  }

  append(entries: readonly Entry[]): void {
    this.appended.push(...entries);
    this.#sessions.weigh(
      this.#ordinal,
      entries.reduce((sum, entry) => sum + weigh(entry), 0),
    );
  }

  after(seq: number, limit: number): Entry[] {
    const from = Math.max(seq, this.erasedBefore - 1);
    const isHere = (this.appended[0]?.seq ?? Infinity) <= from + 1;
    const stored = isHere ? [] : this.#read(NAMES, from, sql`t.seq >= ${bounded(from)} order by t.seq`, limit);
    return [...stored, ...this.appended.filter((entry) => entry.seq > from)].slice(0, limit);
  }

  before(seq: number, limit: number, withToolCalls = false): Entry[] {
    const columns = withToolCalls ? NAMES : WITHOUT_CALLS;
    const stored = this.#read(columns, -1, sql`t.seq < least(${bounded(seq)}, 2147483647) order by t.seq desc`, limit);
    return [...this.appended.filter((entry) => entry.seq < seq).reverse(), ...stored].slice(0, limit);
  }

  eraseBefore(seq: number): void {
    // All erased entries are in `#seen`, because a rule reads entries before it erases them.
    for (const [at, entry] of this.#seen) {
      if (at < seq && at >= this.erasedBefore) this.#sessions.weigh(this.#ordinal, -weigh(entry));
    }
    this.erasedBefore = Math.max(this.erasedBefore, seq);
  }

  #ends(): Row | undefined {
    const ends = sql`select min(seq) as first, max(seq) as last from entries where session = ${bounded(this.#ordinal)}`;
    return this.#transaction.read(ends)[0];
  }

  /** Reads entries with a `seq` above `after`. One more row is read, because it may contain the reply of the entry that follows it. */
  #read(columns: Sql, after: number, rest: Sql, limit: number): Entry[] {
    const of = bounded(this.#ordinal);
    const found = sql`select ${columns} from entries t where t.session = ${of} and ${rest} limit ${bounded(limit + 1)}`;
    const rows = new Map(this.#transaction.read(found).map((row) => [number(row.seq), row]));
    const entries = [...rows.values()].filter(({ seq }) => number(seq) > after).slice(0, limit);
    return entries.map((row) => {
      const entry = readEntry(row, rows.get(number(row.seq) - 1));
      if (columns === NAMES) this.#seen.set(entry.seq, entry);
      return entry;
    });
  }
}
