import { describe, expect, it } from "vitest";
import { idLike, newId } from "#kit/ids.ts";
import { KEPT } from "#store/memory/delivery-codec.ts";
import { DeliveryRing } from "#store/memory/delivery-ring.ts";
import { PackedWriter } from "#store/memory/packed.ts";
import { PackedReader, wantedId } from "#store/memory/packed-reader.ts";
import { NO_SLOT } from "#store/memory/record-segments.ts";
import type { Delivery } from "#store/store.ts";
import { deliveryOf } from "./world.ts";

const LIMITS = { entries: 100, bytes: 1e9, refused: 10 };
const SESSION = "chat:a";

const deliveryAt = (at: number, more: Partial<Delivery> = {}): Delivery => {
  const requestId = newId("req", at);
  return { ...deliveryOf(idLike("dlv", requestId, 0), `{"at":${at}}`), requestId, at, ...more };
};
const add = (ring: DeliveryRing, delivery: Delivery): number => {
  const slot = ring.addOfTurn(delivery, LIMITS, idLike("turn", delivery.deliveryId, 0), SESSION);
  ring.finish(slot, KEPT.completed);
  return slot;
};

describe("the recorder's ring", () => {
  it("answers each delivery as it came, whether its head came before, for the first time, or in turns with others", () => {
    const ring = new DeliveryRing();
    const heads = [
      { headers: "a: 1" },
      { headers: "a: 2", method: "PUT" },
      { headers: "b: 3", caller: "dora", path: "/rpc" },
      {},
    ];
    const added = Array.from({ length: 90 }, (_, n) => {
      const delivery = deliveryAt(1_000 + n, heads[(n * n) % heads.length]);
      return { delivery, slot: add(ring, delivery) };
    });
    for (const { delivery, slot } of added) {
      const turnId = idLike("turn", delivery.deliveryId, 0);
      expect(ring.read(slot, false)).toEqual({
        ...delivery,
        turnId,
        sessionId: SESSION,
        eventId: undefined,
        outcome: "completed",
      });
    }
  });

  it("counts a head that many deliveries have once, and gives back all that it took", () => {
    const ring = new DeliveryRing();
    const headers = `x: ${"y".repeat(1_000)}`;
    for (let n = 0; n < 100; n++) add(ring, deliveryAt(n, { headers }));
    const full = ring.bytes;
    expect(full).toBeLessThan(100 * 400 + 3_000);
    for (let n = 0; n < 1_000; n++) add(ring, deliveryAt(n, { headers }));
    expect(ring.size).toBe(100);
    expect(ring.bytes).toBeLessThanOrEqual(full);
    const fresh = new DeliveryRing();
    for (let n = 0; n < 1_000; n++)
      for (const any of [ring, fresh]) add(any, deliveryAt(n, { headers: `x: ${"z".repeat(n % 100)}${n}` }));
    expect(ring.bytes).toBe(fresh.bytes);
  });

  it("finds each by its id, also when the clock went back and forth, and none that has gone", () => {
    const ring = new DeliveryRing();
    const limits = { ...LIMITS, entries: 3_000 };
    const deliveries = Array.from({ length: 5_000 }, (_, n) => deliveryAt(1e12 + ((n * 7_919) % 5_000) * 1_000));
    for (const delivery of deliveries)
      ring.finish(ring.addOfTurn(delivery, limits, newId("turn", 1), SESSION), KEPT.completed);
    for (const [n, { deliveryId }] of deliveries.entries()) {
      const slot = ring.slotOf(deliveryId);
      expect(slot === NO_SLOT ? "gone" : ring.read(slot, true).deliveryId).toBe(n < 2_000 ? "gone" : deliveryId);
    }
    expect(ring.slotOf(newId("dlv", 1e12))).toBe(NO_SLOT);
    const ofOther = ring.addOfTurn(deliveryOf("theirs-1"), limits, "turn-1", SESSION);
    expect(ring.slotOf("theirs-1")).toBe(ofOther);
    expect(ring.slotOf("theirs-2")).toBe(NO_SLOT);
  });

  it("keeps a step that is added later beside a head that is kept apart", () => {
    const ring = new DeliveryRing();
    add(ring, deliveryAt(1));
    const delivery = deliveryAt(2);
    add(ring, delivery);
    add(ring, deliveryAt(3));
    ring.addStep(delivery.deliveryId, { at: 5, name: "announcement.sent", detail: "{}" });
    const { steps, headers, path, body } = ring.read(ring.slotOf(delivery.deliveryId), false);
    expect({ steps, headers, path, body: `${body}` }).toEqual({
      steps: [{ at: 5, name: "announcement.sent", detail: "{}" }],
      headers: delivery.headers,
      path: delivery.path,
      body: `${delivery.body}`,
    });
  });
});

describe("an id that is like another", () => {
  const turnId = newId("turn", Date.now());
  const readBack = (id: string, prefix: string): { id: string; bytes: number } => {
    const writer = new PackedWriter();
    writer.idLike(id, prefix, turnId);
    return { id: new PackedReader(writer.bytes, 0).idLike(prefix, turnId), bytes: writer.length };
  };

  it("takes a byte, and any other what it took before", () => {
    expect(readBack(idLike("msg", turnId, 0), "msg_")).toEqual({ id: idLike("msg", turnId, 0), bytes: 1 });
    const other = newId("msg", Date.now());
    expect(readBack(other, "msg_")).toEqual({ id: other, bytes: 17 });
    for (const id of ["", "msg_1", `key${idLike("msg", turnId, 0).slice(3)}`, turnId])
      expect(readBack(id, "msg_").id).toBe(id);
  });

  it("is found by its text", () => {
    const writer = new PackedWriter();
    writer.id(turnId, "turn_");
    writer.idLike(idLike("req", turnId, 0), "req_", turnId);
    const nextIs = (text: string): boolean => {
      const reader = new PackedReader(writer.bytes, 0);
      reader.skipId();
      return reader.nextIs(wantedId(text), "req_", 0);
    };
    expect(nextIs(idLike("req", turnId, 0))).toBe(true);
    expect(nextIs(newId("req", 1))).toBe(false);
    expect(nextIs(turnId)).toBe(false);
  });
});
