import pg from "pg";
import { afterAll } from "vitest";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import type { Store } from "#store/store.ts";
import { newState } from "#store/tables/table-records.ts";
import type { ManualClock } from "#test/harness/clock.ts";
import type { TestPostgres } from "#test/harness/postgres.ts";
import { recyclePostgres } from "#test/harness/postgres-recycler.ts";
import type { Engine } from "./world.ts";

/** A few connections, of which two can overlap. */
const CONNECTIONS = 3;

const TABLES = `select quote_ident(tablename) as name from pg_tables
  where schemaname = current_schema() and tablename not in ('gateway_migrations', 'gateway_state')`;

/**
 * Returns the url of a separate schema, which is empty at each call. It is created once, because that takes longest, and emptied over a persistent
 * connection, because opening one takes second longest; the server's sessions of the schema continue, too. It exists until the tests end.
 */
export function emptySchema(server: Pick<TestPostgres, "createSchema">): () => Promise<string> {
  let made: ReturnType<typeof make> | undefined;
  const make = async () => {
    const url = await server.createSchema();
    const { port } = new URL(url);
    const recycler = await recyclePostgres(Number(port));
    return { url, recycler, recycled: url.replace(`:${port}/`, `:${recycler.port}/`) };
  };
  let kept: pg.Client | undefined;
  let text = "";
  afterAll(async () => {
    await kept?.end();
    await (await made)?.recycler[Symbol.asyncDispose]();
  });
  const open = async (url: string): Promise<pg.Client> => {
    kept = new pg.Client({ connectionString: url });
    await kept.connect();
    const { rows } = await kept.query(TABLES);
    const state = JSON.stringify(newState());
    text = `${rows.map(({ name }) => `delete from ${name};`).join("")} update gateway_state set body = '${state}'`;
    return kept;
  };
  return async () => {
    const isNew = made === undefined;
    made ??= make();
    const { url, recycled } = await made;
    if (!isNew) await (kept ?? (await open(url))).query(text);
    return recycled;
  };
}

/** The engine on a separate schema, which is emptied for each world. */
export function postgresEngine(server: TestPostgres): Engine {
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
}
