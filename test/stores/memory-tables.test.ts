import { describe, expect, it } from "vitest";
import { newId } from "#kit/ids.ts";
import { Heap } from "#store/memory/heap.ts";
import { IdempotencyKeys } from "#store/memory/idempotency-keys.ts";
import { NumberFifo } from "#store/memory/number-fifo.ts";
import { OpenQueue } from "#store/memory/open-queue.ts";
import { PackedWriter } from "#store/memory/packed.ts";
import { PackedReader, wantedId } from "#store/memory/packed-reader.ts";
import { NO_SLOT } from "#store/memory/record-segments.ts";
import { SlotOrder } from "#store/memory/slot-order.ts";
import { createRandom } from "#test/harness/random.ts";

const SEEDS = [1, 2, 3];

const oldestOf = (kept: ReadonlyMap<number, unknown>): number => kept.keys().next().value ?? 0;

describe("a queue of numbers", () => {
  it.each(SEEDS)("gives what it took, in order, whatever comes and goes: seed %d", (seed) => {
    const random = createRandom(seed);
    const fifo = new NumberFifo();
    const expected: number[] = [];
    let head = 0;
    for (let step = 0; step < 200_000; step++) {
      // Long phases of growing and of shrinking, and some in which it is mostly empty.
      const grows = Math.floor(step / 20_000) % 3 !== 1;
      if (random.chance(grows && step % 60_000 < 40_000 ? 0.6 : 0.45)) {
        fifo.push(step * 2 ** 20);
        expected.push(step * 2 ** 20);
      } else {
        if (fifo.peek() !== expected[head] || fifo.shift() !== expected[head]) throw new Error(`wrong at step ${step}`);
        if (head < expected.length) head++;
      }
    }
    expect(fifo.size).toBe(expected.length - head);
    const rest = expected.slice(head);
    expect(rest.map(() => fifo.shift())).toEqual(rest);
    expect(fifo.shift()).toBeUndefined();
  });
});

describe("slots in order", () => {
  it.each(SEEDS)("agree with a map, and give the newest below any ordinal: seed %d", (seed) => {
    const random = createRandom(seed);
    const order = new SlotOrder();
    const kept = new Map<number, number>();
    for (let step = 0; step < 30_000; step++) {
      if (kept.size < 10 || random.chance(0.52)) {
        const slot = random.below(1_000);
        kept.set(order.push(slot), slot);
      } else {
        // Mostly the oldest, so that whole pages go; now and then one in the middle or the newest.
        const ordinal = random.chance(0.98) ? oldestOf(kept) : random.pick([...kept.keys()]);
        order.clear(ordinal);
        kept.delete(ordinal);
      }
    }
    const ordinals = [...kept.keys()].sort((a, b) => a - b);
    expect(order.last).toBeGreaterThan(10_000);
    const seen: number[] = [];
    for (let at = order.before(Infinity); at > 0; at = order.before(at - 1)) seen.unshift(at);
    expect(seen).toEqual(ordinals);
    const slots = Array.from({ length: order.last + 2 }, (_, ordinal) => order.slotOf(ordinal));
    expect(slots).toEqual(slots.map((_, ordinal) => kept.get(ordinal) ?? NO_SLOT));
  });

  it("go on behind a page of which nothing is left", () => {
    const order = new SlotOrder();
    for (let round = 1; round <= 5; round++) {
      for (let n = 0; n < 1_024; n++) order.push(7);
      for (let n = 0; n < 1_024; n++) order.clear(order.last - n);
      expect(order.before(Infinity)).toBe(0);
      const next = order.last + 1;
      expect(order.push(8)).toBe(next);
      expect(order.slotOf(order.last)).toBe(8);
      order.clear(order.last);
      for (let n = 1; n < 1_024; n++) order.clear(order.push(7));
    }
  });
});

describe("what is open, in order", () => {
  it.each(SEEDS)("gives every free one above any ordinal, in order: seed %d", (seed) => {
    const random = createRandom(seed);
    const queue = new OpenQueue();
    const open = new Map<number, boolean>();
    let last = 0;
    const isFree = (ordinal: number) => open.get(ordinal) === true;
    for (let step = 0; step < 20_000; step++) {
      const some = open.size === 0 || random.chance(0.95) ? oldestOf(open) : random.pick([...open.keys()]);
      if (some === 0 || random.chance(0.5)) {
        last += 1 + random.below(3);
        queue.push(last);
        open.set(last, true);
      } else if (isFree(some)) {
        queue.take(some);
        open.set(some, false);
      } else if (random.chance(0.3)) {
        queue.giveBack(some);
        open.set(some, true);
      } else {
        queue.end(some);
        open.delete(some);
      }
      if (step % 500 !== 0) continue;
      for (const after of [0, random.below(last + 2), last]) {
        const given = [...queue.after(after)];
        expect(given.filter(isFree)).toEqual([...open.keys()].filter((ordinal) => ordinal > after && isFree(ordinal)));
      }
    }
  });

  it("passes over what is taken or has ended without a look at each", () => {
    const queue = new OpenQueue();
    for (let ordinal = 1; ordinal <= 100_000; ordinal++) queue.push(ordinal);
    for (let ordinal = 1; ordinal <= 99_900; ordinal++) queue.take(ordinal);
    for (let ordinal = 1; ordinal <= 50_000; ordinal++) queue.end(ordinal);
    expect([...queue.after(0)].length).toBeLessThan(1_000);
  });
});

describe("a heap", () => {
  it.each(SEEDS)("gives the smallest first: seed %d", (seed) => {
    const random = createRandom(seed);
    const heap = new Heap<{ key: number }>(({ key }) => key);
    const expected: number[] = [];
    for (let step = 0; step < 3_000; step++) {
      if (random.chance(0.6)) {
        const key = random.below(500);
        heap.push({ key });
        expected.push(key);
        expected.sort((a, b) => a - b);
      } else {
        expect(heap.peek()?.key).toBe(expected[0]);
        expect(heap.pop()?.key).toBe(expected.shift());
      }
      expect(heap.size).toBe(expected.length);
    }
  });
});

describe("idempotency keys", () => {
  it("are found by their text until they have ended, and the newest of the same text counts", () => {
    const keys = new IdempotencyKeys();
    const turnId = newId("turn", 1);
    const eventId = "evt_of_another_make";
    for (let n = 0; n < 1_000; n++) {
      keys.keep({ key: `key ü ${n}`, hash: `hash ${n}`, expiresAt: n }, { turnId, eventId: undefined });
    }
    keys.keep({ key: "key ü 0", hash: "again", expiresAt: 2_000 }, { turnId: undefined, eventId });
    expect(keys.get("key ü 0")).toEqual({ hash: "again", expiresAt: 2_000, turnId: undefined, eventId });
    expect(keys.get("key ü 7")).toEqual({ hash: "hash 7", expiresAt: 7, turnId, eventId: undefined });
    expect(keys.get("key ü")).toBeUndefined();
    expect(keys.forgetUntil(500, 100)).toBe(100);
    expect(keys.forgetUntil(500, 1_000)).toBe(401);
    expect(keys.get("key ü 500")).toBeUndefined();
    expect(keys.get("key ü 501")).toBeDefined();
    expect(keys.get("key ü 0")).toBeDefined();
    expect(keys.forgetUntil(5_000, 10_000)).toBe(500);
    expect(keys.get("key ü 0")).toBeUndefined();
    expect(keys.bytes).toBe(0);
  });
});

describe("a packed id to look for", () => {
  const some = newId("dlv", 1);
  const ids = [
    some,
    some.replace("dlv", "turn"),
    newId("turn", 2),
    "dlv_",
    "dlv_short",
    "",
    "chat:ü",
    `dlv_${"U".repeat(26)}`,
  ];

  it.each(ids)("is found in its place and nowhere else: %j", (id) => {
    const writer = new PackedWriter();
    for (const other of ids) {
      writer.begin();
      writer.id(other, "dlv_");
      writer.byte(7);
      const reader = new PackedReader(writer.bytes, 0);
      expect(reader.nextIs(wantedId(id), "dlv_")).toBe(id === other);
      expect(reader.byte()).toBe(7);
    }
  });
});
