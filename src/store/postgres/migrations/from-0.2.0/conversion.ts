/** The conversion of the schema of version 6, which is that of release 0.2.0. */
import { LARGE_LAYOUTS, LIVE_LAYOUTS } from "#store/tables/layouts.ts";
import { RECORD_TABLES } from "../schema.ts";
import { DELIVERIES, EVENTS, IS_REFUSED, shelf } from "./inbound.ts";
import { GATEWAY, JOURNAL } from "./journal.ts";
import { bytesOf, FUNCTIONS, lengthOf, object, whole } from "./json.ts";
import { SESSIONS, TURNS } from "./sessions.ts";
import { AGENTS, countsWith, SMALL_TABLES } from "./small-tables.ts";

/** The tables of version 6 that are replaced. Their names get a prefix first, and so do the names of their indexes. */
const OLD_TABLES =
  "agent_ends announcements api_keys beats compactions counts deliveries entries erased_sessions event_batches events finished_deliveries gateway_entries gateway_place idempotency_keys late_attempts news sessions turns usage_counts".split(
    " ",
  );
const NEW_TABLES = [...[...LARGE_LAYOUTS, ...LIVE_LAYOUTS].map(({ table }) => table), "journal", "gateway_state"];
const ADDED = NEW_TABLES.filter((name) => !OLD_TABLES.includes(name));
const IN_SCHEMA = "relnamespace = quote_ident(current_schema())::regnamespace";

const OLD_SEQUENCES = "event_ordinals, announcement_ordinals, ready_orders, news_ids";
const NEW_NAMES = [...ADDED, ...OLD_TABLES.map((name) => `old_${name}`)];

/**
 * Refuses a schema with objects of an operator that conflict with the upgrade. It drops the old tables and rolls back, because only PostgreSQL knows all kinds of objects
 * that can depend on a table.
 */
const CHECKED = /* sql */ `
do $$ declare found text; begin
  begin
    drop view if exists live_turns;
    execute (select 'drop table ' || string_agg(c.oid::regclass::text, ', ') from pg_class c where c.${IN_SCHEMA} and c.relkind = 'r'
      and c.relname = any ('{${OLD_TABLES.join(",")}}'));
    drop sequence if exists ${OLD_SEQUENCES};
    raise exception using errcode = 'AG000';
  exception
    when sqlstate 'AG000' then null;
    when dependent_objects_still_exist then
      get stacked diagnostics found = pg_exception_detail;
      raise exception 'other objects depend on tables that the upgrade replaces: %. Drop them now, and create them for the new tables after the upgrade',
        replace(found, chr(10), '; ');
  end;
  select string_agg(distinct name, ', ') into found from (
    select relname as name from pg_class c where c.${IN_SCHEMA}
    union all select typname from pg_type where typnamespace = quote_ident(current_schema())::regnamespace) as named
  where name = any ('{${NEW_NAMES.join(",")}}');
  if found is not null then
    raise exception 'the schema has other objects with the names of new tables: %. Rename them, or move them to another schema', found;
  end if;
end $$;
`;

const RENAMED = /* sql */ `
select set_config(name, 'on', true) from pg_settings where name in ('enable_seqscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin');
drop view if exists live_turns;
do $$ declare of record; begin
  for of in select c.relname as name, c.relkind as kind from pg_class c where c.${IN_SCHEMA} and c.relkind = 'r'
    and c.relname = any ('{${OLD_TABLES.join(",")}}')
  union all select i.relname, i.relkind from pg_class c join pg_index x on x.indrelid = c.oid join pg_class i on i.oid = x.indexrelid
    where c.${IN_SCHEMA} and c.relname = any ('{${OLD_TABLES.join(",")}}')
  loop
    execute format('alter %s %I rename to %I', case of.kind when 'r' then 'table' else 'index' end, of.name, 'old_' || of.name);
  end loop;
end $$;
`;

/** The greatest number that was given for an order or a place. New ones are greater. */
const BASE = /* sql */ `
create temp table base on commit drop as select greatest(
  (select (last_value + 1) * 1024 from ready_orders),
  (select coalesce(max(ordinal), 0) from old_deliveries),
  (select coalesce(max(ordinal), 0) from old_announcements),
  (select coalesce(max(ordinal), 0) from old_api_keys),
  (select coalesce(max(last_seq), 0) from old_sessions)) as n, round(extract(epoch from clock_timestamp()) * 1000)::bigint as now;
`;

/** The weights of records, as the layouts count them. */
const WEIGHTS = [
  `select 800 + ${lengthOf("session_id")} + ${lengthOf("channel")} + ${lengthOf("user_id")} from old_sessions`,
  `select 200 + ${bytesOf("summary")} + 8 * cardinality(summary_except) from old_sessions where summary is not null`,
  `select 640 + ${bytesOf("detail")} + case when ended_at is null then 200 else 0 end from old_turns`,
  `select 110 + case when name like 'message.%' then ${bytesOf("text")} + ${bytesOf("context")} else 0 end from old_entries`,
  `select 400 + ${bytesOf("text")} + ${bytesOf("metadata")} + ${bytesOf("reason")} from old_events`,
  "select 200 + octet_length(key) + octet_length(hash) from old_idempotency_keys",
  "select 400 from usage",
  "select 500 from outgoing",
];
const STATE = /* sql */ `
update gateway_state set body = (${object({
  version: "'1'",
  numbers: object({
    session: "(select last_value from sessions_ordinal_seq)::text",
    event: "(select case when is_called then last_value else 0 end from event_ordinals)::text",
    place: "(select n from base)::text",
    order: "(select n + (select count(*) from open_turns) from base)::text",
  }),
  sessions: "(select count(*) from sessions)::text",
  bytes: `(select coalesce(sum(bytes), 0) from (${WEIGHTS.join(" union all ")}) as of (bytes))::text`,
  shelves: object({ refused: shelf(IS_REFUSED), others: shelf(`not (${IS_REFUSED})`) }),
  open: `(select ${object(countsWith("sum"))} from counted)`,
  announcements: "(select count(*) from outgoing)::text",
  notifications: object({ waiting: "'{}'", ended: "'{}'" }),
  gateway: `(select ${object({ first: whole("first"), last: whole("last") })} from old_gateway_place)`,
})})::json;
`;

const DROPPED = /* sql */ `
drop table if exists ${OLD_TABLES.map((name) => `old_${name}`).join(", ")};
drop sequence if exists ${OLD_SEQUENCES};
drop function pg_temp.report, pg_temp.counted, pg_temp.record, pg_temp.bytes, pg_temp.damaged;
analyze ${NEW_TABLES.join(", ")};
`;

/**
 * All statements, in one transaction. A gateway of version 0.2.0 that still runs fails with each write, because its counters are deleted. `RECORD_TABLES` are
 * those of version 8: a later version that changes the layouts must first store their text here.
 */
export const CONVERSION = [
  CHECKED,
  FUNCTIONS,
  RENAMED,
  RECORD_TABLES,
  BASE,
  SESSIONS,
  TURNS,
  JOURNAL,
  GATEWAY,
  EVENTS,
  DELIVERIES,
  SMALL_TABLES,
  AGENTS,
  STATE,
  DROPPED,
].join("");
