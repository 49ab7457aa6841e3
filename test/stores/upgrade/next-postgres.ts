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
create or replace function note_label_${newest}(in_label text) returns void language sql as $$
  insert into labels (label) values (in_label) on conflict do nothing
$$;
create or replace function engine_time(at_ms double precision) returns double precision language sql volatile as $$
  select case when at_ms is null then extract(epoch from clock_timestamp())::double precision * 1000 else at_ms end
$$;
`;

export const MIGRATIONS = [...known, { version: newest, oldest: 1, sql: step }];
export const FUNCTIONS = { sql: `${KNOWN.sql}${functions}`, digest: `${KNOWN.digest}-next` };
