import { expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { postgresEngine } from "./postgres-engine.ts";
import { runModel } from "./run-model.ts";
import { storeSuite } from "./suite.ts";
import { openWorld } from "./world.ts";

await postgresTests((server) => {
  const engine = postgresEngine(server);

  storeSuite(engine);

  it("says that it keeps things past the end of the process", async () => {
    await using world = await openWorld(engine);
    expect(world.store).toMatchObject({ kind: "postgres", durable: true });
  });

  for (const seed of [1, 2]) {
    it(`agrees with the model after each of 200 random steps of seed ${seed}`, async () => {
      await runModel(engine, seed, 200);
    });
  }
});
