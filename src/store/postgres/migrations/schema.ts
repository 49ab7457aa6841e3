import { LARGE_LAYOUTS, LIVE_LAYOUTS } from "#store/tables/layouts.ts";
import { postgresSchema } from "#store/tables/schema.ts";
import { newState } from "#store/tables/table-records.ts";

/**
 * The tables of records, their journals and the state of the store. Sweeps find idle sessions by the minute, because PostgreSQL writes to all
 * indexes of a row whenever an indexed value changes.
 */
export const RECORD_TABLES = `${postgresSchema([...LARGE_LAYOUTS, ...LIVE_LAYOUTS])}
create index sessions_idle on sessions (is_webhook, idle_minute, ordinal);
insert into gateway_state (body) values ('${JSON.stringify(newState())}');
`;

/** The tables that gateways on one database share, which have no layouts. */
export const SHARED_TABLES = /* sql */ `
create table gateway_store (
  single boolean primary key default true check (single),
  epoch text not null
);

-- The running gateways, by the database's clock.
create table nodes (
  node text primary key,
  seen double precision not null
) with (fillfactor = 50);

-- The agents of each gateway. The row of a gateway remains for a day after its end.
create table gateways (
  node text primary key,
  agents text[] not null,
  seen double precision not null
) with (fillfactor = 50);

create unlogged table rate_counts (
  key text collate "C" primary key,
  slices bigint[] not null default '{}',
  counts integer[] not null default '{}',
  width_ms double precision not null default 0,
  ends_at double precision not null default 0
) with (fillfactor = 50);

create unlogged table reply_texts (
  session_id text not null,
  seq bigint not null,
  place integer not null,
  length integer not null,
  turn_id text not null,
  message_id text not null,
  text text not null,
  at timestamptz not null default clock_timestamp(),
  primary key (session_id, seq, place)
);
`;
