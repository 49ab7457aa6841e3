import pg from "pg";
import { test } from "vitest";
import { createPostgresStore } from "#store/postgres/postgres.ts";
import type { Store } from "#store/store.ts";
import { createManualClock, type ManualClock } from "#test/harness/clock.ts";
import type { TestPostgres } from "#test/harness/postgres.ts";
import { emptySchema } from "./postgres-engine.ts";
import { type Engine, openWorld, type World } from "./world.ts";

/** The stores of two gateways on one database. */
export type Two = { one: World; two: World; clock: ManualClock; url: string } & AsyncDisposable;

/** Opens two stores on one empty database, each with its own watchers. Their ids do not collide. */
export function twoStores(server: Pick<TestPostgres, "createSchema">): () => Promise<Two> {
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
}

/** Declares tests that each have two such stores: `it("…", async ({ on }) => { … })`. */
export function testsOnTwo(server: Pick<TestPostgres, "createSchema">) {
  const open = twoStores(server);
  return test.extend<{ on: Two }>({
    on: async ({ task: _ }, use) => {
      await using on = await open();
      await use(on);
    },
  });
}

/** Both as one store, for the suite's tests of overlapping calls: the calls alternate between the two. */
export function alternating(server: TestPostgres): Engine {
  const empty = emptySchema(server);
  return {
    name: "postgres, by two gateways in turn",
    countsLater: true,
    open: async (clock) => {
      const url = await empty();
      const open = () => createPostgresStore({ clock, url: [url], connections: 3 });
      const stores = [await open(), await open()] as const;
      let calls = 0;
      const inTurn = (name: keyof Store) => {
        const call = (store: Store) => store[name] as (...of: readonly unknown[]) => unknown;
        return (...of: readonly unknown[]) => call(stores[calls++ % 2] as Store)(...of);
      };
      const names = Object.keys(stores[0]).filter((name) => typeof stores[0][name as keyof Store] === "function");
      const both = Object.fromEntries(names.map((name) => [name, inTurn(name as keyof Store)]));
      const close = async () => {
        for (const store of stores) await store[Symbol.asyncDispose]();
      };
      const { stats, agentCounts } = stores[0];
      const watch: Store["watch"] = (watcher) => stores[0].watch({ ...watcher, wants: () => true });
      return { ...stores[0], ...both, watch, stats, agentCounts, [Symbol.asyncDispose]: close };
    },
  };
}

/** A connection in addition to the gateways'. */
export async function connect(connectionString: string) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}
