import { describe, expect, it } from "vitest";
import { newId } from "#kit/ids.ts";
import { IdIndex } from "#store/memory/id-index.ts";
import { NumberFifo } from "#store/memory/number-fifo.ts";
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

  it("is not kept for a page of which nothing is left", () => {
    const order = new SlotOrder();
    const before = process.memoryUsage().arrayBuffers;
    for (let round = 0; round < 2_000; round++) {
      for (let n = 0; n < 1_024; n++) order.push(7);
      for (let n = 0; n < 1_024; n++) order.clear(order.last - n);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2_000_000);
  });

  it("is as much as what is kept, however many came before", () => {
    const order = new SlotOrder();
    const before = process.memoryUsage().arrayBuffers;
    for (let n = 0; n < 1_000_000; n++) {
      order.push(n);
      if (n >= 5) order.clear(n - 3);
    }
    expect(order.before(Infinity)).toBe(1_000_000);
    expect(order.before(999_996)).toBe(1);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2_000_000);
  });

  it("is given back where records have gone, though a few records stay for long", () => {
    const records = new RecordSegments();
    const source = Buffer.alloc(1_000);
    const waiting: number[] = [];
    const before = process.memoryUsage().arrayBuffers;
    for (let n = 0; n < 100_000; n++) {
      records.begin().blob(source);
      const slot = records.add(NO_TAIL, 0);
      // One in five hundred stays: more than one for each segment.
      if (n % 500 !== 0) waiting.push(slot);
      if (waiting.length > 1_000) records.delete(waiting.shift() as number);
    }
    expect(records.size).toBe(1_200);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000);
  });
});
