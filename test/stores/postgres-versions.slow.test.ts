import { afterAll, describe, it } from "vitest";
import { embeddedBin, type PostgresServer, startPostgres } from "#test/harness/postgres.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { runModel } from "./run-model.ts";
import { storeSuite } from "./suite.ts";

/** `RUN_LONG=1 npx vitest run test/stores/postgres-versions.slow.test.ts`: two minutes for each version. */
const versions = process.env.RUN_LONG ? (["oldest", "newest"] as const) : [];

for (const version of versions) {
  const bin = embeddedBin(version);
  if (!bin) throw new Error(`npm has not brought the ${version} PostgreSQL for this platform`);
  const server: PostgresServer = await startPostgres({ bin });
  afterAll(() => server[Symbol.asyncDispose]());

  describe(`on the ${version} PostgreSQL that npm brings`, () => {
    const engine = postgresEngine(server);
    storeSuite(engine);

    for (let seed = 1; seed <= 20; seed++) {
      it(`agrees with the model after each of 500 random steps of seed ${seed}`, { timeout: 120_000 }, async () => {
        await runModel(engine, seed, 500);
      });
    }
  });
}

describe.runIf(versions.length === 0)("other versions of PostgreSQL", () => {
  it.skip("run the suite with RUN_LONG=1 alone: it takes minutes", () => {});
});
