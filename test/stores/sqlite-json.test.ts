import { serialize } from "node:v8";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KINDS, packDelivery } from "#store/sqlite/delivery-codec.ts";
import { encodeBody, encodeHead } from "#store/sqlite/event-codec.ts";
import { quoteAll } from "#store/sqlite/json.ts";
import { hookOf, record } from "./deliveries.ts";
import { sqlite } from "./sqlite-engine.ts";
import { openWorld } from "./world.ts";

const text = fc.string({ unit: "binary" });

describe("what is made JSON by hand", () => {
  it("is what JSON.stringify makes of it, whatever stands in it", () => {
    fc.assert(fc.property(fc.array(fc.option(text)), (all) => quoteAll(all) === JSON.stringify(all)));
    fc.assert(fc.property(fc.array(fc.stringMatching(/^evt_\w+$/)), (all) => quoteAll(all) === JSON.stringify(all)));
    const head = fc.record({ ids: fc.array(text, { minLength: 1 }), agent: text });
    fc.assert(
      fc.property(head, ({ ids, agent }) => {
        const agents = ids.map(() => agent);
        return encodeHead(ids, agents, ids) === JSON.stringify([ids, agent, ids]);
      }),
    );
    fc.assert(
      fc.property(text, fc.option(text), text, (words, metadata, caller) => {
        const body = encodeBody(words, metadata ?? undefined, caller, 1_700_000_000_001);
        return body === JSON.stringify([words, metadata, caller, 1_700_000_000_001]);
      }),
    );
  });

  it("is a delivery's own part, with the steps of the one before or others", () => {
    const steps = fc.array(fc.record({ at: fc.nat(), name: text, detail: fc.option(text, { nil: undefined }) }));
    fc.assert(
      fc.property(text, fc.option(text, { nil: undefined }), steps, (id, senderId, noted) => {
        const delivery = hookOf(id, { senderId, steps: noted, body: undefined });
        for (const _ of ["first", "again"]) {
          const [, , , part] = packDelivery(delivery, { eventId: id }, KINDS.event);
          const [kind, own, kept, body] = JSON.parse(part);
          expect([kind, own[0], own[7], own[10], body]).toEqual([KINDS.event, id, senderId ?? null, id, null]);
          expect(kept).toEqual(noted.map(({ at, name, detail }) => [at, name, detail ?? null]));
        }
      }),
    );
  });
});

describe("deliveries on their way between the threads", () => {
  it("take what they have alike with them once", () => {
    const [one, other] = [hookOf("dlv_a"), hookOf("dlv_b")].map((delivery) => packDelivery(delivery, {}));
    const alike = hookOf("dlv_a").headers.length;
    const alone = serialize([one]).byteLength;
    expect(serialize([one, other]).byteLength).toBeLessThan(2 * alone - alike);
  });
});

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
