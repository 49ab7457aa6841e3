import type pg from "pg";
import { describe, expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { Servers } from "#store/postgres/connect.ts";
import { migrate } from "#store/postgres/migrate.ts";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import { encodeKey, encodeText } from "#store/postgres/texts.ts";
import { upgrade } from "#store/postgres/upgrade.ts";
import type { ContentRecord, DeliveryRecord, OpenTurnRecord } from "#store/rules/records.ts";
import type { BeatTask, Entry, TurnEnd } from "#store/store.ts";
import { type AnyEntry, decodeEntries, GATEWAY } from "#store/tables/journal-rows.ts";
import * as layouts from "#store/tables/layouts.ts";
import type { Layout } from "#store/tables/table.ts";
import { newState, type State } from "#store/tables/table-records.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { LEASE_MS, sweepOrder } from "../world.ts";
import { BINARY, CALLS, DEAD, HARD, HARD_SESSION, HEALTH, HOSTILE } from "./hard-cases.ts";
import { fixture } from "./released.ts";
import { expectWhole } from "./shapes.ts";

const { LARGE_LAYOUTS, LIVE_LAYOUTS } = layouts;
const ALL: readonly Layout<never>[] = [...LARGE_LAYOUTS, ...LIVE_LAYOUTS];
const COMPLETED: Omit<TurnEnd, "now"> = { status: "completed", reply: "hi", error: undefined, usage: undefined };

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
    return Object.assign(client, { url, [Symbol.asyncDispose]: () => client.end() });
  };

  /** A database of version 0.2.0, on which `change` was run. */
  const released = async (change = "") => {
    const url = await server.createDatabase();
    await server.run(url, fixture("postgres.sql").toString());
    if (change !== "") await server.run(url, change);
    return await connect(url);
  };
  /** The same, converted. */
  const converted = async (change = "") => {
    const client = await released(change);
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

    it.each([
      ["of the fixture", ""],
      ["with texts that PostgreSQL cannot store", HARD],
    ])("has records with all fields, and columns that follow from them: %s", async (_, change) => {
      await using client = await converted(change);
      for (const { table, columns } of ALL) {
        const { rows } = await client.query(`select * from ${table}`);
        // Version 0.2.0 had none of these, and its turns and events count for no share.
        const isEmpty =
          ["shares", "budgets", "notifications", "schedules"].includes(table) ||
          (change === "" && ["late_attempts", "erasures"].includes(table));
        expect([table, rows.length > 0]).toEqual([table, !isEmpty]);
        for (const { body, ...stored } of rows) {
          expectWhole(table, body);
          const encode = table === "idempotency_keys" ? encodeKey : encodeText;
          const values = Object.entries(columns).map(([name, [type, of]]) => {
            const value = of(body as never);
            return [name, type === "text" && value !== undefined ? encode(value as string) : (value ?? null)];
          });
          expect(stored).toEqual(Object.fromEntries(values));
        }
      }
    });

    it.each([
      ["of the fixture", ""],
      ["with texts that PostgreSQL cannot store", HARD],
    ])("has the numbers and the bytes of its records as its state: %s", async (_, change) => {
      await using client = await converted(change);
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

    it("has the stored texts, entries and news, whatever their characters", async () => {
      await using client = await converted(HARD);
      const one = async <R>(table: string, where: string): Promise<R> =>
        (await client.query(`select body from ${table} where ${where}`)).rows[0].body;
      const { rows } = await client.query("select first_seq, body, calls from journal where session = $1 order by 1", [
        HARD_SESSION,
      ]);
      const usage = { input: 4, output: 5 };
      expect(rows.map(({ first_seq }) => first_seq)).toEqual([1, 2, 4, 5, 6]);
      expect(rows.flatMap(({ body, calls }) => decodeEntries(body, calls ?? undefined))).toEqual([
        {
          seq: 1,
          at: 1,
          turnId: "turn_hard",
          name: "message.created",
          messageId: "msg_1",
          role: "system",
          text: HOSTILE,
          outside: true,
          context: HOSTILE,
        },
        {
          seq: 2,
          at: 2,
          turnId: "turn_hard",
          name: "message.completed",
          messageId: "msg_2",
          text: HOSTILE,
          toolCalls: CALLS,
        },
        {
          seq: 3,
          at: 3,
          turnId: "turn_hard",
          name: "turn.cancelled",
          reply: HOSTILE,
          model: HOSTILE,
          usage: { ...usage, more: { cached: 1, reasoning: 2, cost: 3 } },
        },
        {
          seq: 4,
          at: 4,
          turnId: "turn_hard",
          name: "turn.failed",
          usage,
          error: { name: "turn-failed", detail: HOSTILE },
        },
        { seq: 5, at: 5, turnId: "turn_hard", name: "turn.cancelled", usage: { input: 0, output: 0 }, reply: HOSTILE },
        { seq: 6, at: 6, turnId: "", name: "turn.started", attempt: 2 },
      ]);
      const news = await one<AnyEntry[]>("journal", `session = ${GATEWAY} and first_seq = 500`);
      expect(news).toEqual([
        { seq: 500, at: 9, ...DEAD, reason: HOSTILE },
        { seq: 501, at: 9, ...HEALTH },
      ]);
      expect(await one("turns", "turn_id = 'turn_hard'")).toMatchObject({
        turn: {
          sessionId: HOSTILE,
          caller: HOSTILE,
          model: HOSTILE,
          skillIds: [HOSTILE, "plain"],
          error: { detail: HOSTILE },
        },
      });
      expect(await one("summaries", `session = ${HARD_SESSION}`)).toEqual({
        ordinal: HARD_SESSION,
        summary: { text: HOSTILE, outside: true },
        through: 2,
        except: [1],
      });
      expect(await one("deliveries", "delivery_id = 'dlv_hard'")).toMatchObject({
        delivery: {
          operation: HOSTILE,
          path: HOSTILE,
          caller: HOSTILE,
          mapping: HOSTILE,
          senderId: HOSTILE,
          steps: [{ detail: HOSTILE }, { name: "y" }],
        },
        contentBytes: 12,
      });
      const { place } = await one<DeliveryRecord>("deliveries", "delivery_id = 'dlv_hard'");
      expect(await one("contents", `place = ${place}`)).toEqual({
        place,
        headers: "host: é",
        body: BINARY.toString("latin1"),
      });
      expect(await one("events", "event_id = 'evt_dead'")).toMatchObject({
        text: HOSTILE,
        metadata: HOSTILE,
        reason: HOSTILE,
      });
      expect(await one("usage", "body::text like '%xxxxxxxxxx%' limit 1")).toMatchObject({
        model: HOSTILE,
        messages: 2,
        latencyMs: 1,
      });
    });

    it.each([
      [
        "deliveries",
        "dlv_hard",
        "update deliveries set record = replace(record, '}', '') where delivery_id = 'dlv_hard'",
      ],
      ["deliveries", "dlv_hard", "update deliveries set body = 'b!' where delivery_id = 'dlv_hard'"],
      ["entries", `${HARD_SESSION}/2`, `update entries set context = '[' where session = ${HARD_SESSION} and seq = 2`],
      ["turns", "turn_hard", "update turns set model = chr(1) || 'x' where turn_id = 'turn_hard'"],
      ["gateway_entries", "500", "update gateway_entries set news = '[' where first = 500"],
    ])("is not made if a record in %s is damaged, and the error names the record", async (table, key, damage) => {
      await using client = await released(`${HARD} ${damage}`);
      await expect(upgrade(client, () => {})).rejects.toThrow(
        new RegExp(
          `\\(the record ${key} of the table ${table} is damaged: .*\\. Restore a backup, or correct or delete this record\\)`,
        ),
      );
      const { rows } = await client.query("select max(version) as version from gateway_migrations");
      expect(rows).toEqual([{ version: 6 }]);
    });

    it.each([
      ["create view busy as select agent from live_turns", "view busy depends on view live_turns"],
      [
        "create materialized view used as select * from usage_counts",
        "materialized view used depends on table usage_counts",
      ],
      [
        "create schema reports; create view reports.live_turns as select agent from turns",
        "view reports.live_turns depends on table turns",
      ],
      [
        "create table notes (turn text references turns)",
        "constraint notes_turn_fkey on table notes depends on table turns",
      ],
      ["create table more () inherits (sessions)", "table more depends on table sessions"],
      ["create table notes (key api_keys)", "column key of table notes depends on type api_keys"],
      [
        "create table notes (n bigint default nextval('event_ordinals'))",
        "default value for column n of table notes depends on sequence event_ordinals",
      ],
      ["create table usage (note text)", "with the names of new tables: usage. Rename them"],
      ["create domain journal as text", "with the names of new tables: journal. Rename them"],
      ["create table old_sessions (note text)", "with the names of new tables: old_sessions. Rename them"],
    ])("is not made if objects of an operator are in the way, and the error names them: %s", async (create, reason) => {
      await using client = await released(create);
      await expect(upgrade(client, () => {})).rejects.toThrow(reason);
      expect((await client.query("select count(*) from turns")).rows).toEqual([{ count: 118 }]);
    });

    it("may be in a schema with any name, next to tables of other programs", async () => {
      const url = await server.createDatabase();
      await server.run(url, fixture("postgres.sql").toString());
      const name = new URL(url).pathname.slice(1);
      await server.run(
        url,
        `alter schema public rename to "Odd Name"; alter database ${name} set search_path = "Odd Name"`,
      );
      await server.run(
        url,
        "create table notes (note text primary key); create schema public; create table public.turns (note text primary key)",
      );
      await using client = await connect(url);
      expect(await upgrade(client, () => {})).toEqual({ from: 6, to: 8 });
      const { rows } = await client.query("select count(*) as turns, (select count(*) from notes) as notes from turns");
      expect(rows).toEqual([{ turns: 102, notes: 0 }]);
    });

    it("has one batch of an agent, and no turn that waits for a compaction", async () => {
      await using client = await converted(HARD);
      const { rows } = await client.query("select body from beats where id = 'watch'");
      const turnIds = ["turn_01M8J7FQEXPCFFVDXN1X5C17PX", "turn_z"];
      const run = { before: 12, after: 114, events: 102, turnIds, openTurnId: turnIds[0] };
      expect(rows[0].body).toMatchObject({ isAsked: true, run });
      const turns = await bodies<OpenTurnRecord>(client, "open_turns");
      const openOf = (turnId: string) => turns.find(({ turn }) => turn.turnId === turnId)?.open;
      expect(openOf("turn_z")?.task).toMatchObject({ kind: "beat", maxAttempts: 3, streamKeep: 9 });
      expect(openOf("turn_01M8J7FK11QP1EHCHDF5E5X8RX")?.dueAt).toBeGreaterThan(Date.now());
      expect(openOf("turn_01M8J7FQHC2D53GCTW0TE2EADC")?.readyOrder).toBeGreaterThan(400_000);
      expect(openOf("turn_01M8J7FQJPFCHGN5S4PWQXTBAV")?.readyOrder).toBeUndefined();
      expect(await bodies(client, "erasures")).toEqual([{ ordinal: 112 }]);
      const { rows: tables } = await client.query(
        "select to_regclass('counts') as counts, to_regclass('entries') as entries",
      );
      expect(tables).toEqual([{ counts: null, entries: null }]);
    });

    it("continues a beat with two turns after the end of both, even if the later turn is cancelled first", async () => {
      await using client = await converted(HARD);
      await using store = await createPostgresStore({ clock: systemClock, url: [client.url], connections: 2 });
      const free = async () => {
        const events = await store.readQueuedEvents({ agent: "watch", after: 0, through: 1e9, limit: 1e3, bytes: 1e9 });
        return events.map(({ eventId }) => eventId);
      };
      const [first] = (await bodies<OpenTurnRecord>(client, "open_turns")).filter(
        ({ turn, open }) => turn.agent === "watch" && open.task?.kind === "beat" && turn.turnId !== "turn_z",
      );
      const { ids = [] } = (first?.open.task ?? {}) as Partial<BeatTask>;
      const before = await free();
      await store.cancelTurn("turn_z", Date.now());
      expect(await store.dueBeats(["watch"])).toEqual({ due: [], nextDueInMs: undefined });
      expect(await free()).toEqual(before);
      await store.sweep(sweepOrder(Date.now()));
      const freeOf = (agent: string) => (agent === "watch" ? 1 : 0);
      const newMessageId = () => "msg_1";
      const claim = { now: Date.now(), node: "node_a", leaseMs: LEASE_MS, free: 8, freeOf, newMessageId };
      const { turns } = await store.claimTurns(claim);
      expect(turns.map(({ turn }) => turn.turnId)).toEqual([first?.turn.turnId]);
      for (const { claim } of turns) await store.endTurn(claim, { ...COMPLETED, now: Date.now() });
      expect((await Promise.all(ids.map((id) => store.getEvent(id)))).map((event) => event?.status)).toEqual(
        ids.map(() => "handled"),
      );
      expect(await store.dueBeats(["watch"])).toMatchObject({ due: ["watch"] });
      expect(store.agentCounts("watch").waitingEvents).toBe((await free()).length);
    });
  });
});
