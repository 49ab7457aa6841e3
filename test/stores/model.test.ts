import { it } from "vitest";
import { createMemoryStore } from "#store/memory/memory.ts";
import { runModel } from "./run-model.ts";
import type { Engine } from "./world.ts";

const memory: Engine = { name: "memory", open: async (clock) => createMemoryStore({ clock }) };

for (let seed = 1; seed <= 20; seed++) {
  it(`agrees with the model after each of 500 random steps of seed ${seed}`, async () => {
    await runModel(memory, seed, 500);
  });
}
