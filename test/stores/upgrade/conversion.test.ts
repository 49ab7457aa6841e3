import type pg from "pg";
import { describe, expect, it } from "vitest";
import { Servers } from "#store/postgres/connect.ts";
import { migrate } from "#store/postgres/migrate.ts";
import { encodeKey, encodeText } from "#store/postgres/texts.ts";
import { upgrade } from "#store/postgres/upgrade.ts";
import type {
  AgentCount,
  AgentRecord,
  AnnouncementRecord,
  ApiKeyRecord,
  BeatRecord,
  BeatRun,
  ContentRecord,
  DeliveryRecord,
  KeyRecord,
  OpenTurn,
  OpenTurnRecord,
  SessionRecord,
  SummaryRecord,
  TurnRecord,
} from "#store/rules/records.ts";
import type { Announcement, ApiKey, Entry, Session, SystemEvent, Turn, UsageCount } from "#store/store.ts";
import { type AnyEntry, decodeEntries, GATEWAY } from "#store/tables/journal-rows.ts";
import * as layouts from "#store/tables/layouts.ts";
import type { Layout } from "#store/tables/table.ts";
import { newState, type State } from "#store/tables/table-records.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { fixture } from "./released.ts";

const { LARGE_LAYOUTS, LIVE_LAYOUTS } = layouts;
const ALL: readonly Layout<never>[] = [...LARGE_LAYOUTS, ...LIVE_LAYOUTS];

type Kind<T> = T extends readonly unknown[]
  ? "array"
  : T extends string
    ? "string"
    : T extends number
      ? "number"
      : T extends boolean
        ? "boolean"
        : "object";
/** The fields that a record always has, with their types. The compiler demands all. */
type Shape<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]-?: Kind<T[K]> };

const SESSION: Shape<Session> = {
  sessionId: "string",
  agent: "string",
  channel: "string",
  userId: "string",
  createdAt: "number",
  updatedAt: "number",
  lastSeq: "number",
  firstSeq: "number",
  messageCount: "number",
  turnsQueued: "number",
  usage: "object",
  ordinal: "number",
  contextBytes: "number",
};
const TURN: Shape<Turn> = {
  turnId: "string",
  sessionId: "string",
  agent: "string",
  surface: "string",
  caller: "string",
  status: "string",
  attempt: "number",
  createdAt: "number",
  skillIds: "array",
  messageId: "string",
  seq: "number",
};
const OPEN: Shape<OpenTurn> = {
  waited: "boolean",
  countedModel: "string",
  replyMessageId: "string",
  spentMs: "number",
  isCancelled: "boolean",
};
const EVENT: Shape<SystemEvent> = {
  eventId: "string",
  agent: "string",
  text: "string",
  caller: "string",
  status: "string",
  attempts: "number",
  createdAt: "number",
  ordinal: "number",
};
const DELIVERY: Shape<DeliveryRecord["delivery"]> = {
  deliveryId: "string",
  at: "number",
  surface: "string",
  operation: "string",
  method: "string",
  path: "string",
  address: "string",
  requestId: "string",
  caller: "string",
  showsWords: "boolean",
  bytes: "number",
  answer: "string",
  steps: "array",
};
const RUN: Shape<BeatRun> = {
  began: "number",
  through: "number",
  after: "number",
  events: "number",
  returned: "number",
  turnIds: "array",
  dead: "array",
  isLast: "boolean",
};
const ANNOUNCEMENT: Shape<Announcement> = {
  turnId: "string",
  sessionId: "string",
  agent: "string",
  channel: "string",
  hops: "number",
  createdAt: "number",
  attempts: "number",
};
const API_KEY: Shape<ApiKey> = {
  keyId: "string",
  name: "string",
  prefix: "string",
  hash: "string",
  scopes: "array",
  createdAt: "number",
};
const USAGE: Shape<UsageCount> = {
  hour: "number",
  agent: "string",
  model: "string",
  surface: "string",
  caller: "string",
  messages: "number",
  completed: "number",
  failed: "number",
  cancelled: "number",
  attempts: "number",
  latencyMs: "number",
  input: "number",
  output: "number",
  cached: "number",
  reasoning: "number",
  cost: "number",
};
const COUNTS: Shape<AgentCount> = {
  agent: "string",
  queued: "number",
  running: "number",
  compactions: "number",
  waitingEvents: "number",
  openEvents: "number",
  deadEvents: "number",
};

const OF_TURN = { turn: "object", ordinal: "number", place: "number", replySeq: "number" } as const;
const SHAPES: { readonly [table: string]: object } = {
  sessions: { session: "object", compactedCount: "number" } satisfies Shape<SessionRecord>,
  summaries: {
    ordinal: "number",
    summary: "object",
    through: "number",
    except: "array",
  } satisfies Shape<SummaryRecord>,
  turns: OF_TURN satisfies Shape<TurnRecord>,
  open_turns: { ...OF_TURN, open: "object" } satisfies Shape<OpenTurnRecord>,
  events: EVENT,
  deliveries: { delivery: "object", contentBytes: "number", place: "number" } satisfies Shape<DeliveryRecord>,
  contents: { place: "number", headers: "string" } satisfies Shape<ContentRecord>,
  idempotency_keys: { key: "string", hash: "string", expiresAt: "number" } satisfies Shape<KeyRecord>,
  usage: USAGE,
  agents: { agent: "string", failing: "boolean" } satisfies Shape<AgentRecord>,
  agent_counts: COUNTS,
  beats: { agent: "string", isAsked: "boolean" } satisfies Shape<BeatRecord>,
  announcements: {
    announcement: "object",
    ordinal: "number",
    place: "number",
    fence: "number",
  } satisfies Shape<AnnouncementRecord>,
  api_keys: { key: "object", place: "number" } satisfies Shape<ApiKeyRecord>,
  late_attempts: {},
  erasures: { ordinal: "number" },
};
const NESTED: { readonly [field: string]: object } = {
  session: SESSION,
  turn: TURN,
  open: OPEN,
  delivery: DELIVERY,
  run: RUN,
  announcement: ANNOUNCEMENT,
};

function kindOf(value: unknown): string {
  return Array.isArray(value) ? "array" : typeof value;
}

function expectShape(value: object, shape: object): void {
  const kinds = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, kindOf(field)]));
  expect(kinds, JSON.stringify(value)).toMatchObject(shape);
}

/** The columns of all tables, and their indexes, without those of the migrations. */
const CATALOG = `select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
    a.attcollation::regcollation::text as collation, c.reloptions as settings, null as index
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'v', 'S') and a.attnum > 0 and not a.attisdropped
    and c.relname <> 'gateway_migrations'
  union all select tablename, indexname, null, null, null, null, regexp_replace(indexdef, ' ON \\S+\\.', ' ON ')
  from pg_indexes where schemaname = current_schema() and tablename <> 'gateway_migrations' order by 1, 2`;

await postgresTests((server) => {
  const bodies = async <R>(client: pg.Client, table: string): Promise<R[]> =>
    (await client.query(`select body from ${table}`)).rows.map(({ body }) => body);

  const connect = async (url: string) => {
    const client = await new Servers([url]).find();
    return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
  };

  /** A converted database. `change` is run on the schema of version 0.2.0. */
  const converted = async (change = "") => {
    const url = await server.createDatabase();
    await server.run(url, fixture("postgres.sql").toString());
    if (change !== "") await server.run(url, change);
    const client = await connect(url);
    await upgrade(client, () => {});
    return client;
  };

  /** The bytes of all records and journals, as the layouts and the rules count them. */
  const weigh = async (client: pg.Client): Promise<number> => {
    let bytes = 0;
    for (const { table, weigh } of ALL) {
      for (const record of await bodies<never>(client, table)) bytes += weigh?.(record) ?? 0;
    }
    const { rows } = await client.query("select body, calls from journal where session <> $1", [GATEWAY]);
    const entries = rows.flatMap(({ body, calls }) => decodeEntries(body as AnyEntry[], calls ?? undefined));
    return entries.reduce((sum, entry) => sum + layouts.weighEntry(entry as Entry), bytes);
  };

  describe("a converted database of version 0.2.0", () => {
    it("has the tables, columns and indexes of a new one", async () => {
      await using old = await converted();
      await using other = await connect(await server.createDatabase());
      await migrate(other, 1);
      expect((await old.query(CATALOG)).rows).toEqual((await other.query(CATALOG)).rows);
    });

    it("has records with all fields, and columns that follow from them", async () => {
      await using client = await converted();
      for (const { table, columns } of ALL) {
        const { rows } = await client.query(`select * from ${table}`);
        if (!["late_attempts", "erasures"].includes(table)) expect([table, rows.length > 0]).toEqual([table, true]);
        for (const { body, ...stored } of rows) {
          expectShape(body, SHAPES[table] as object);
          for (const [name, shape] of Object.entries(NESTED)) {
            if (typeof body[name] === "object") expectShape(body[name], shape);
          }
          if (table === "api_keys") expectShape(body.key, API_KEY);
          const encode = table === "idempotency_keys" ? encodeKey : encodeText;
          const values = Object.entries(columns).map(([name, [type, of]]) => {
            const value = of(body as never);
            return [name, type === "text" && value !== undefined ? encode(value as string) : (value ?? null)];
          });
          expect(stored).toEqual(Object.fromEntries(values));
        }
      }
    });

    it("has the numbers and the bytes of its records as its state", async () => {
      await using client = await converted();
      const [state] = (await bodies<State>(client, "gateway_state")) as [State];
      expect(Object.keys(state).sort()).toEqual(Object.keys(newState()).sort());
      expect(state.bytes).toBe(await weigh(client));
      const shelves = newState().shelves;
      for (const record of await bodies<DeliveryRecord>(client, "deliveries")) {
        const shelf = layouts.DELIVERIES.columns.refused[1](record) ? shelves.refused : shelves.others;
        shelf.size++;
        shelf.bytes += layouts.weighDelivery(record);
        if (record.endedOrder !== undefined) shelf.ended++;
      }
      expect(state.shelves).toEqual(shelves);
      const deliveries = await bodies<DeliveryRecord>(client, "deliveries");
      const contents = new Map((await bodies<ContentRecord>(client, "contents")).map((one) => [one.place, one]));
      for (const { place, contentBytes, delivery } of deliveries) {
        const { headers = "", body } = contents.get(place) ?? {};
        expect(contentBytes).toBe(headers.length + (body?.length ?? 0));
        if (body !== undefined) expect(body.length).toBe(delivery.bytes);
      }
      const numbers = [
        ...deliveries.flatMap(({ place, endedOrder = 0 }) => [place, endedOrder]),
        ...(await bodies<OpenTurnRecord>(client, "open_turns")).flatMap(({ place, open }) => [
          place,
          open.readyOrder ?? 0,
        ]),
      ];
      expect(Math.min(state.numbers.order, state.numbers.place)).toBeGreaterThan(
        Math.max(...numbers.map((n) => n - 20)),
      );
    });
  });
});
