import { isUtf8 } from "node:buffer";
import { type DeliveryRecord, isOfStranger, type Records } from "#store/rules/records.ts";
import type { Delivery, DeliveryAnswer, DeliveryStep } from "#store/store.ts";
import { encodeText } from "../texts.ts";
import { fields } from "./fields.ts";
import { bounded, number, optional, type Row, type Sql, sql, textList } from "./sql.ts";
import { layout, type Scan, Table } from "./table.ts";
import type { Part, Transaction } from "./transaction.ts";

const ROW_BYTES = 300;
/** The number of ended deliveries that are loaded in advance. */
const PREFETCHED = 20;

/** The fields that no query searches. They are stored as JSON in one column. */
type Rest = Pick<
  Delivery,
  "operation" | "method" | "path" | "address" | "caller" | "headers" | "showsWords" | "bytes" | "status" | "replayOf"
> &
  Pick<DeliveryRecord, "agent" | "messageId" | "isOfCaller" | "refusal">;
/** The counters of both shelves: all deliveries, and those that were refused. */
type ShelfTotal = "deliveries" | "deliveryBytes" | "refused" | "refusedBytes";
/** A delivery with the sizes of its row and its body in bytes. `texts` are the encoded columns of a changed delivery. */
type DeliveryRow = DeliveryRecord & { readonly weight: number; readonly bodyWeight: number; readonly texts?: Texts };
type Texts = { readonly record: string; readonly steps: string | undefined; readonly body: string | undefined };

/** The first character of a stored body: most bodies are UTF-8 and are stored as text, the others as base64. */
const TEXT = "t";
const BASE64 = "b";

function encodeBody(bytes: string): string {
  const body = Buffer.from(bytes, "latin1");
  return isUtf8(body) && !body.includes(0) ? TEXT + body.toString() : BASE64 + body.toString("base64");
}

function decodeBody(stored: string): string {
  return Buffer.from(stored.slice(1), stored.startsWith(TEXT) ? "utf8" : "base64").toString("latin1");
}

/** The row of a changed delivery. An existing body is never replaced, only removed. */
function rowOf(record: DeliveryRecord, before: DeliveryRow | undefined): DeliveryRow {
  const { delivery, agent, messageId, isOfCaller, refusal } = record;
  if (before?.delivery === delivery) return { ...before, ...record };
  const { operation, method, path, address, caller, headers, showsWords, bytes, status, replayOf } = delivery;
  const request = { operation, method, path, address, caller, headers, showsWords, bytes, status, replayOf };
  const rest: Rest = Object.assign(request, { agent, messageId, isOfCaller, refusal });
  const texts = {
    record: JSON.stringify(rest),
    steps: delivery.steps.length === 0 ? undefined : JSON.stringify(delivery.steps),
    body: delivery.body && !before ? encodeBody(delivery.body) : undefined,
  };
  const bodyWeight = delivery.body ? (before?.bodyWeight ?? texts.body?.length ?? 0) : 0;
  const weight = ROW_BYTES + texts.record.length + (texts.steps?.length ?? 0) + bodyWeight;
  // `record` may be a loaded row with older texts, which these replace.
  return Object.assign({}, record, { texts, bodyWeight, weight });
}

function kindOf({ delivery: { answer }, turnId, eventId }: DeliveryRecord): string {
  if (answer !== "accepted") return answer;
  if (turnId !== undefined) return "turn";
  return eventId === undefined ? "gone" : "event";
}

const FIXED = "at, surface, kept, request_id, turn_id, session_id, event_id, mapping, sender_id, record, body".split(
  ", ",
);

const SEARCHED = fields<Pick<Delivery, "deliveryId" | "at" | "surface" | "requestId" | "mapping" | "senderId">>({
  escaped: ["deliveryId", "requestId", "mapping", "senderId"],
  bigint: ["at"],
  text: ["surface"],
});
const WORK = fields<Pick<DeliveryRecord, "turnId" | "sessionId" | "eventId">>({
  text: ["turnId", "eventId"],
  escaped: ["sessionId"],
});

function layoutOf(select: string, from?: string) {
  return layout<DeliveryRow>({
    table: "deliveries",
    key: ["delivery_id"],
    keyOf: ({ delivery }) => delivery.deliveryId,
    select,
    ...(from !== undefined && { from }),
    fixed: FIXED,
    isSaved: (after, before) => after.delivery !== before?.delivery,
    columns: [
      ...SEARCHED.columns<DeliveryRow>(({ delivery }) => delivery),
      ...WORK.columns<DeliveryRow>((record) => record),
      ["kept", "text", kindOf],
      ["record", "text", ({ texts }) => texts?.record],
      ["steps", "text", ({ texts }) => texts?.steps],
      ["step_count", "smallint", ({ delivery }) => delivery.steps.length],
      ["body", "text", ({ texts }) => texts?.body],
      ["bytes", "integer", ({ weight }) => weight],
    ],
    computed: {
      place: [() => "t.ordinal", ({ place }) => place],
      is_refused: [() => "f.is_refused", isOfStranger],
      end: [() => "f.place, each_of.n", ({ endedOrder }) => endedOrder],
    },
    read: (row) => readDelivery(row),
  });
}

const ANSWERS: readonly string[] = ["repeated", "unmatched", "refused", "challenge"] satisfies DeliveryAnswer[];

function readDelivery(row: Row): DeliveryRow {
  const { agent, messageId, isOfCaller, refusal, ...rest } = JSON.parse(row.record as string) as Rest;
  const stored = row.kept as string;
  return {
    delivery: {
      ...rest,
      status: rest.status,
      replayOf: rest.replayOf,
      showsWords: rest.showsWords,
      ...SEARCHED.read(row),
      body: row.body === null ? undefined : decodeBody(row.body as string),
      answer: ANSWERS.includes(stored) ? (stored as DeliveryAnswer) : "accepted",
      steps: row.steps === null ? [] : readSteps(row.steps as string),
    },
    ...WORK.read(row),
    place: number(row.ordinal),
    agent,
    messageId,
    isOfCaller,
    refusal,
    endedOrder: optional(row.ended_place) ?? (row.is_ended === true ? 0 : undefined),
    weight: number(row.bytes),
    bodyWeight: number(row.body_weight ?? 0),
  };
}

function readSteps(steps: string): DeliveryStep[] {
  return (JSON.parse(steps) as { at: number; name: string; detail?: string }[]).map(({ at, name, detail }) => {
    return { at, name, detail };
  });
}

const NAMES = `t.ordinal, t.delivery_id, t.at, t.surface, t.kept, t.request_id, t.turn_id, t.session_id, t.event_id, t.mapping,
  t.sender_id, t.bytes`;
/** True if the work that a delivery started has ended. */
const IS_ENDED = `case t.kept
  when 'turn' then not exists (select from turns w where w.turn_id = t.turn_id and w.ended_at is null)
  when 'event' then not exists (select from events w where w.event_id = t.event_id and w.is_recorded)
  else true end as is_ended`;
/** The columns for a rule that writes: the body is replaced by its length, because rules need nothing else of it. */
const CHANGING = `${NAMES}, t.record, t.steps, case when t.body is null then null else '${TEXT}' end as body, length(t.body) as body_weight,
  ${IS_ENDED}`;
/** The columns for lists: without bodies and steps. */
const LISTED = `${NAMES}, t.record, null as steps, null as body`;
/**
 * The columns for the deletion of the oldest deliveries. A row of `finished_deliveries` lists deliveries that ended in the same transaction, in
 * order. The order of a delivery is the place of its row times `MOST_IN_ROW`, plus its position in the list.
 */
const MOST_IN_ROW = 2 ** 20;
const ENDED = `${NAMES}, f.place * ${MOST_IN_ROW} + each_of.n as ended_place,
  case when f.is_refused then '{}' else '{"isOfCaller":true}' end as record, null as steps, null as body`;
const FINISHED = `finished_deliveries f cross join lateral unnest(f.ordinals) with ordinality as each_of (ordinal, n)
  cross join lateral (select * from deliveries d where d.ordinal = each_of.ordinal offset 0) as t`;

const WHOLE = layoutOf("t.*");
const CHANGED = layoutOf(CHANGING);
const IN_LISTS = layoutOf(LISTED);
const WITH_ENDS = layoutOf(ENDED, FINISHED);

function byEnd(a: DeliveryRow, b: DeliveryRow): number {
  return (a.endedOrder ?? 0) - (b.endedOrder ?? 0);
}

/** The recorder's deliveries. */
export class Deliveries implements Part {
  readonly #transaction: Transaction;
  readonly #counted: (name: ShelfTotal) => number;
  readonly #table: Table<DeliveryRow>;
  readonly #listed: Table<DeliveryRow>;
  readonly #ended: Table<DeliveryRow>;
  #added = 0;

  constructor(transaction: Transaction, counted: (name: ShelfTotal) => number) {
    this.#transaction = transaction;
    this.#counted = counted;
    this.#table = new Table(transaction, transaction.isWriting ? CHANGED : WHOLE);
    this.#listed = new Table(transaction, IN_LISTS);
    this.#ended = new Table(transaction, WITH_ENDS);
    transaction.add(this);
  }

  readonly records: Records["deliveries"] = {
    find: (deliveryId) => this.#table.find(deliveryId),
    listed: (deliveryId) => this.#listed.find(deliveryId),
    put: (record) => {
      const before = this.#table.peek(record.delivery.deliveryId);
      const row = rowOf(record, before);
      this.#table.put(row);
      this.#count(record, before ? 0 : 1, row.weight - (before?.weight ?? 0));
      if (before) return;
      this.#added++;
      // Requested in advance: when the recorder is full, each new delivery replaces the oldest ended one.
      this.#firstEnded(isOfStranger(record));
    },
    delete: (record) => {
      const { deliveryId } = record.delivery;
      const { weight = 0 } = this.#table.peek(deliveryId) ?? this.#ended.peek(deliveryId) ?? {};
      // Only the table that has loaded the delivery deletes its row.
      for (const table of [this.#table, this.#ended]) table.delete({ ...record, weight: 0, bodyWeight: 0 });
      this.#count(record, -1, -weight);
    },
    shelf: (ofStrangers) => {
      const [size, bytes] = [this.#counted("refused"), this.#counted("refusedBytes")];
      if (ofStrangers) return { size, bytes };
      return { size: this.#counted("deliveries") - size, bytes: this.#counted("deliveryBytes") - bytes };
    },
    firstEnded: (ofStrangers) => {
      const first = this.#firstEnded(ofStrangers);
      if (first) return first;
      const isEnded = (record: DeliveryRow) => record.endedOrder !== undefined && isOfStranger(record) === ofStrangers;
      return this.#table.filter(isEnded).sort(byEnd)[0];
    },
    before: (below, limit) => this.#listed.scan({ where: { place: { below } }, by: "place", newestFirst: true, limit }),
  };

  reset(): void {
    this.#added = 0;
  }

  saved(): Sql[] {
    return [...this.#erasedBodies(), ...this.#newlyEnded(), ...this.#deletedEnded()];
  }

  /** The statements that remove the bodies which this pass has erased. */
  #erasedBodies(): Sql[] {
    const erased = [...this.#table.changes()].flatMap(([after, before]) =>
      before?.delivery.body && after && !after.delivery.body ? after.delivery.deliveryId : [],
    );
    return erased.length === 0
      ? []
      : [sql`update deliveries set body = null where delivery_id = any (${textList(erased.map(encodeText))})`];
  }

  /** The statements that store all deliveries which have ended as one row, because updating each row would be slower. */
  #newlyEnded(): Sql[] {
    const ended = [...this.#table.changes()].flatMap(([after, before]) =>
      after?.endedOrder !== undefined && before?.endedOrder === undefined ? after : [],
    );
    return [true, false].flatMap((ofStrangers) => {
      const some = ended.filter((record) => isOfStranger(record) === ofStrangers).sort(byEnd);
      if (some.length === 0) return [];
      const ids = textList(some.map(({ delivery }) => encodeText(delivery.deliveryId)));
      return [
        sql`insert into finished_deliveries (is_refused, ordinals) select ${ofStrangers}, array_agg(d.ordinal order by of.n)
        from unnest(${ids}) with ordinality as of (id, n) join deliveries d on d.delivery_id = of.id`,
      ];
    });
  }

  /** The statements that remove deleted deliveries from `finished_deliveries`. Deleted deliveries are always the oldest. */
  #deletedEnded(): Sql[] {
    const last = new Map<boolean, number>();
    for (const [, before] of this.#ended.changes()) {
      if (!before) continue;
      const ofStrangers = isOfStranger(before);
      last.set(ofStrangers, Math.max(last.get(ofStrangers) ?? 0, before.endedOrder ?? 0));
    }
    return [...last].flatMap(([ofStrangers, at]) => {
      const place = bounded(Math.floor(at / MOST_IN_ROW));
      const rest = sql`ordinals[${bounded((at % MOST_IN_ROW) + 1)}:]`;
      return [
        sql`delete from finished_deliveries where is_refused = ${ofStrangers} and place < ${place}`,
        sql`update finished_deliveries set ordinals = ${rest} where is_refused = ${ofStrangers} and place = ${place}`,
      ];
    });
  }

  #firstEnded(ofStrangers: boolean): DeliveryRow | undefined {
    const scan: Scan = { where: { is_refused: ofStrangers }, by: "end", limit: 1 };
    return this.#ended.scan(scan, this.#added + PREFETCHED)[0];
  }

  #count(record: DeliveryRecord, size: number, bytes: number): void {
    this.#transaction.count("deliveries", size);
    this.#transaction.count("deliveryBytes", bytes);
    if (!isOfStranger(record)) return;
    this.#transaction.count("refused", size);
    this.#transaction.count("refusedBytes", bytes);
  }
}
