import { describe, expect, it } from "vitest";
import { hookOf, record } from "./deliveries.ts";
import { sqlite } from "./sqlite-engine.ts";
import { openWorld } from "./world.ts";

describe("a body that is kept", () => {
  it.each([
    ["no byte", Buffer.alloc(0)],
    ["JSON", Buffer.from('{"text":"a \\"word\\"","metadata":{"a":["\\u0000",1]}}')],
    ["every byte", Buffer.from(Array.from({ length: 256 }, (_, n) => n))],
    ["a long text", Buffer.from(`{"text":"${"a \\n".repeat(1_000)}"}`)],
    ["long bytes", Buffer.from(`${"ü".repeat(2_000)}\0`)],
  ])("is given back byte for byte: %s", async (_, body) => {
    await using world = await openWorld(sqlite);
    await record(world, hookOf("dlv_a", { body }));
    for (const _ of ["at once", "after a restart"]) {
      expect((await world.store.getDelivery("dlv_a"))?.body).toEqual(body);
      await world.reopen();
    }
  });
});
