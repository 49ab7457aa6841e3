import { createPostgresStore } from "#store/postgres/postgres.ts";
import type { Store } from "#store/store.ts";
import type { ManualClock } from "#test/harness/clock.ts";
import type { TestPostgres } from "#test/harness/postgres.ts";
import type { Engine } from "./world.ts";

/** Each function is compiled once a connection: few of them, and two that can overlap. */
const CONNECTIONS = 3;

const EMPTY = `do $$ declare t text; begin
  for t in
    select quote_ident(tablename) from pg_tables
    where schemaname = current_schema() and tablename not in ('gateway_migrations', 'gateway_place')
  loop execute 'delete from ' || t; end loop;
  update gateway_place set first = 1, last = 0;
end $$`;

/** Answers the url of a schema of one's own, which holds nothing whenever it is asked for: made once, as that takes longest. */
export const emptySchema = (server: TestPostgres): (() => Promise<string>) => {
  let schema: Promise<string> | undefined;
  return async () => {
    const isNew = schema === undefined;
    schema ??= server.createSchema();
    const url = await schema;
    if (!isNew) await server.run(url, EMPTY);
    return url;
  };
};

/** The engine on a schema of its own, which is emptied for each world. */
export const postgresEngine = (server: TestPostgres): Engine => {
  const empty = emptySchema(server);
  let url = "";
  const openAt = async (clock: ManualClock): Promise<Store> =>
    await createPostgresStore({ clock, url: [url], connections: CONNECTIONS });
  return {
    name: "postgres",
    open: async (clock) => {
      url = await empty();
      return await openAt(clock);
    },
    reopen: async (store, clock) => {
      await store[Symbol.asyncDispose]();
      return await openAt(clock);
    },
  };
};
