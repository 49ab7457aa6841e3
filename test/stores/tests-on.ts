import { test } from "vitest";
import { type Engine, openWorld, type World } from "./world.ts";

/** Declares tests that each have a new empty store: `it("…", async ({ world }) => { … })`. */
export function testsOn(engine: Pick<Engine, "name" | "open">) {
  return test.extend<{ world: World }>({
    world: async ({ task: _ }, use) => {
      await using world = await openWorld(engine);
      await use(world);
    },
  });
}
