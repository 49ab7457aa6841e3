import { MIGRATIONS as known } from "#store/postgres/migrations/migrations.ts";

/** Every table gets another column, so that everything that an older gateway has prepared, cached or cast is affected. */
const step = `
do $$ declare t text; begin
  for t in
    select quote_ident(tablename) from pg_tables where schemaname = current_schema() and tablename <> 'gateway_migrations' order by 1
  loop execute 'alter table ' || t || ' add column later text'; end loop;
end $$;
create table labels (label text primary key);
`;

const newest = Math.max(...known.map(({ version }) => version)) + 1;

export const MIGRATIONS = [...known, { version: newest, oldest: 1, sql: step }];
