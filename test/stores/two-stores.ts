import pg from "pg";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import type { Store, StoreWatcher } from "#store/store.ts";
import { createManualClock, type ManualClock } from "#test/harness/clock.ts";
import type { TestPostgres } from "#test/harness/postgres.ts";
import { emptySchema } from "./postgres-engine.ts";
import { openWorld, type World } from "./world.ts";

/** Two gateways on one database, as far as their stores go. */
export type Two = { one: World; two: World; clock: ManualClock; url: string } & AsyncDisposable;

/** Opens two stores on one database that holds nothing, each with its own watchers. Their ids do not collide. */
export const twoStores = (server: TestPostgres): (() => Promise<Two>) => {
  const empty = emptySchema(server);
  return async () => {
    const url = await empty();
    const clock = createManualClock();
    const open = (): Promise<Store> => createPostgresStore({ clock, url: [url], connections: 3 });
    const one = await openWorld({ name: "postgres", open });
    const two = await openWorld({ name: "postgres", open });
    for (let n = 0; n < 100_000; n++) two.newId("other");
    const close = async () => {
      await one[Symbol.asyncDispose]();
      await two[Symbol.asyncDispose]();
    };
    return { one, two, clock, url, [Symbol.asyncDispose]: close };
  };
};

/** A connection beside the gateways'. */
export const connect = async (connectionString: string) => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
};

export const times = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

/** A watcher that nothing comes of. */
export const silent: StoreWatcher = {
  entries: () => {},
  sessionDeleted: () => {},
  gatewayEntries: () => {},
  work: () => {},
  cancel: () => {},
  compaction: () => {},
  beat: () => {},
  announcement: () => {},
};
