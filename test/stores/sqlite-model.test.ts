import { it } from "vitest";
import { runModel } from "./run-model.ts";
import { sqlite } from "./sqlite-engine.ts";

const SEEDS = process.env.RUN_LONG ? 20 : 2;
const STEPS = process.env.RUN_LONG ? 500 : 250;

for (let seed = 1; seed <= SEEDS; seed++) {
  it(`agrees with the model after each of ${STEPS} random steps of seed ${seed}`, { timeout: 120_000 }, async () => {
    await runModel(sqlite, seed, STEPS);
  });
}
