import { describe, expect, it } from "vitest";
import { newId } from "#core/ids.ts";
import { IdIndex } from "#store/memory/id-index.ts";
import { NumberFifo } from "#store/memory/number-fifo.ts";
import { giveOffHeap, takeOffHeap } from "#store/memory/off-heap.ts";
import { OpenQueue } from "#store/memory/open-queue.ts";
import { OrderedSlots } from "#store/memory/ordered-slots.ts";
import { NO_TAIL, RecordSegments } from "#store/memory/record-segments.ts";
import { SlotOrder } from "#store/memory/slot-order.ts";

/** So many are in a table at once, and go in batches, as retention lets them go. */
const KEPT = 40_000;
const BATCH = 10_000;

type Table = { add(n: number): void; drop(n: number): void };

/** Everything that comes and goes with what the store keeps. */
const TABLES: Readonly<Record<string, () => Table>> = {
  ids: () => {
    const index = new IdIndex();
    const ids = Array.from({ length: KEPT + BATCH }, (_, n) => newId("turn", n));
    const idOf = (n: number) => ids[n % ids.length] as string;
    return {
      add: (n) => index.add(idOf(n), { ordinal: n, seq: 1 }),
      drop: (n) => index.delete(idOf(n), { ordinal: n, seq: 1 }),
    };
  },
  "numbers in a queue": () => {
    const fifo = new NumberFifo();
    return { add: (n) => fifo.push(n), drop: () => fifo.shift() };
  },
  "events that wait": () => {
    const queue = new OpenQueue();
    return {
      add: (n) => queue.push(n),
      drop: (n) => {
        queue.take(n);
        queue.end(n);
      },
    };
  },
  "slots by their ordinals": () => {
    const order = new SlotOrder();
    return { add: (n) => order.push(n), drop: (n) => order.clear(n) };
  },
  "a list that is read by pages": () => {
    const slots = new OrderedSlots();
    // One in a hundred stays until all around it are gone.
    const stays = (n: number) => n % 100 === 7;
    return {
      add: (n) => slots.push(n, n),
      drop: (n) => {
        if (!stays(n)) slots.delete(n);
        if (n > BATCH && stays(n - BATCH)) slots.delete(n - BATCH);
      },
    };
  },
  records: () => {
    const records = new RecordSegments();
    const slots: number[] = [];
    return {
      add: (n) => {
        records.begin().text("what came with it, as it is kept for a while".repeat(1 + (n % 5)));
        slots[n % (KEPT + BATCH)] = records.add(NO_TAIL, 0);
      },
      drop: (n) => records.delete(slots[n % (KEPT + BATCH)] as number),
    };
  },
};

/** As many come as go, for so long. */
const turnOver = ({ add, drop }: Table, from: number, rounds: number): void => {
  for (let round = 0; round < rounds; round++) {
    const first = from + round * BATCH;
    for (let n = first; n < first + BATCH; n++) add(n);
    for (let n = first - KEPT; n < first - KEPT + BATCH; n++) drop(n);
  }
};

describe("memory for records", () => {
  it.each(Object.keys(TABLES))("is used again, and no more is taken for as many as go: %s", (name) => {
    const table = (TABLES[name] as () => Table)();
    for (let n = 1; n <= KEPT; n++) table.add(n);
    const settled = 30;
    turnOver(table, KEPT + 1, settled);
    const before = process.memoryUsage().arrayBuffers;
    turnOver(table, KEPT + 1 + settled * BATCH, 40);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(500_000);
  });

  it("is given to the next who wants as much, and to nobody else", () => {
    const memory = takeOffHeap(9_999);
    expect(memory.byteLength).toBe(9_999);
    giveOffHeap(memory);
    expect(takeOffHeap(9_998)).not.toBe(memory);
    expect(takeOffHeap(9_999)).toBe(memory);
    expect(takeOffHeap(9_999)).not.toBe(memory);
  });

  it("is kept up to a bound", () => {
    const all = Array.from({ length: 50 }, () => takeOffHeap(1_000_001));
    for (const memory of all) giveOffHeap(memory);
    const again = Array.from({ length: 50 }, () => takeOffHeap(1_000_001));
    expect(again.filter((memory) => all.includes(memory))).toHaveLength(4);
  });
});
