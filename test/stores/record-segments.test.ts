import { describe, expect, it } from "vitest";
import { KEPT } from "#store/memory/delivery-codec.ts";
import { DeliveryRing } from "#store/memory/delivery-ring.ts";
import { NO_SLOT, NO_TAIL, RecordSegments } from "#store/memory/record-segments.ts";
import { createRandom } from "#test/harness/random.ts";
import { deliveryOf } from "./world.ts";

describe("record segments", () => {
  it.each([1, 2, 3, 4, 5])("agree with a map after many random steps of seed %d", (seed) => {
    const random = createRandom(seed);
    const records = new RecordSegments();
    const kept = new Map<number, { text: string; tail: number }>();
    const slots = () => [...kept.keys()];
    for (let step = 0; step < 20_000; step++) {
      if (kept.size < 300 || random.chance(0.5)) {
        // Now and then one that is larger than a segment.
        const length = random.chance(0.002) ? 300_000 : random.below(2_000);
        const text = String(step % 10).repeat(length);
        const tail = random.chance(0.5) ? random.below(length + 1) : NO_TAIL;
        records.begin().blob(Buffer.from(text));
        const slot = records.add(tail, step);
        expect(kept.has(slot)).toBe(false);
        kept.set(slot, { text, tail });
      } else if (random.chance(0.1)) {
        const slot = random.pick(slots());
        const { text, tail } = kept.get(slot) as { text: string; tail: number };
        records.eraseTail(slot);
        kept.set(slot, { text: tail < 0 ? text : text.slice(0, text.length - tail), tail: NO_TAIL });
      } else {
        // Mostly the oldest, as a ring does, so that what stays is moved on.
        const slot = random.chance(0.9) ? (slots()[0] as number) : random.pick(slots());
        records.delete(slot);
        kept.delete(slot);
      }
    }
    expect(records.size).toBe(kept.size);
    for (const [slot, { text, tail }] of kept) {
      const place = records.read(slot);
      expect(place.bytes.toString("latin1", place.from, place.to)).toBe(text);
      expect(place.tail).toBe(tail);
    }
  });

  it("overwrite what is replaced", () => {
    const records = new RecordSegments();
    records.begin().text("the secret");
    const slot = records.add(NO_TAIL, 0);
    const { bytes, from, to } = records.read(slot);
    records.begin().text("another");
    records.replace(slot, NO_TAIL);
    expect(bytes.subarray(from, to).every((byte) => byte === 0)).toBe(true);
    const place = records.read(slot);
    expect(place.bytes.toString("latin1", place.from, place.to)).toContain("another");
    expect(records.size).toBe(1);
  });
});

describe("the ring of deliveries", () => {
  it("erases a body in place, also of a record that was moved on", () => {
    const ring = new DeliveryRing();
    const limits = { entries: 10, bytes: 1e9, refused: 10 };
    const add = (id: string, body?: string) => ring.addOfTurn(deliveryOf(id, body), limits, "turn_1", "chat:a");
    const read = (id: string) => ring.read(ring.slotOf(id), false);
    const first = add("dlv_first", "the secret of the first");
    for (let n = 0; n < 5_000; n++) ring.finish(add(`dlv_${n}`, "x".repeat(500)), KEPT.completed);
    expect(read("dlv_first")).toMatchObject(deliveryOf("dlv_first", "the secret of the first"));
    ring.erase("dlv_first");
    expect(read("dlv_first").body).toBeUndefined();
    expect(ring.size).toBe(10);
    ring.finish(first, KEPT.completed);
    ring.finish(add("dlv_last"), KEPT.completed);
    for (let n = 0; n < 20; n++) ring.finish(add(`dlv_more_${n}`), KEPT.completed);
    expect(ring.slotOf("dlv_first")).toBe(NO_SLOT);
  });
});
