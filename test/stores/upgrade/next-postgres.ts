import { FUNCTIONS as KNOWN, MIGRATIONS as known } from "#store/postgres/migrations/migrations.ts";

/** Every table gets another column, so that whatever an older gateway has prepared, cached or cast meets it. */
const step = `
do $$ declare t text; begin
  for t in
    select quote_ident(tablename) from pg_tables where schemaname = current_schema() and tablename <> 'gateway_migrations' order by 1
  loop execute 'alter table ' || t || ' add column later text'; end loop;
end $$;
create table labels (label text primary key);
`;

const newest = known.length + 1;

/** Two things that a later version may do to functions: add one under a name of its own, and replace one by what takes the same calls. */
const functions = `
create or replace function leave_node_${newest}(in_node text, in_label text) returns void language sql as $$
  insert into labels (label) values (in_label) on conflict do nothing;
  select leave_node(in_node)
$$;
create or replace function ready_agents(at_time double precision) returns setof text language sql stable as $$
  select distinct agent from turns where ready_at <= at_time and later is null
$$;
`;

export const MIGRATIONS = [...known, { version: newest, oldest: 1, sql: step }];
export const FUNCTIONS = { sql: `${KNOWN.sql}${functions}`, digest: `${KNOWN.digest}-next` };
