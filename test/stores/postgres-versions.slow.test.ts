import { afterAll, describe, it } from "vitest";
import { embeddedBin, type PostgresServer, startPostgres } from "#test/harness/postgres.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { storeSuite } from "./suite.ts";

/** `RUN_LONG=1 npx vitest run test/stores/postgres-versions.slow.test.ts`: two minutes for each version. */
const versions = process.env.RUN_LONG ? (["oldest", "newest"] as const) : [];

for (const version of versions) {
  const bin = embeddedBin(version);
  if (!bin) throw new Error(`npm has not brought the ${version} PostgreSQL for this platform`);
  const server: PostgresServer = await startPostgres({ bin });
  afterAll(() => server[Symbol.asyncDispose]());

  describe(`on the ${version} PostgreSQL of the npm package`, () => {
    storeSuite(postgresEngine(server));
  });
}

describe.runIf(versions.length === 0)("other versions of PostgreSQL", () => {
  it.skip("run the suite only with RUN_LONG=1, because it takes minutes", () => {});
});
