import { expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { storeSuite } from "./suite.ts";
import { openWorld } from "./world.ts";

await postgresTests((server) => {
  const engine = postgresEngine(server);

  storeSuite(engine);

  it("reports that it is durable", async () => {
    await using world = await openWorld(engine);
    expect(world.store).toMatchObject({ kind: "postgres", durable: true });
  });
});
