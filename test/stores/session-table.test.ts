import { describe, expect, test, vi } from "vitest";
import { newId } from "#kit/ids.ts";
import { hashOf } from "#store/memory/id-index.ts";
import { IdempotencyKeys } from "#store/memory/idempotency-keys.ts";
import { OrderedSlots } from "#store/memory/ordered-slots.ts";
import type { QueueRow } from "#store/memory/rows.ts";
import { SessionTable } from "#store/memory/session-table.ts";
import { SlotTable } from "#store/memory/slot-table.ts";
import { TextHeap } from "#store/memory/text-heap.ts";
import { agree, agreeIn } from "#test/harness/agree.ts";
import { createRandom } from "#test/harness/random.ts";

const SEEDS = [1, 2, 3, 4, 5];
const NAMES = ["plain", "with space", "Grüße", "日本語", "a\ud800b", "", "x".repeat(256), "é".repeat(300)];

describe("the table of sessions", () => {
  test.each(SEEDS)("agrees with a map after many random steps of seed %d", (seed) => {
    const random = createRandom(seed);
    const table = new SessionTable();
    const known = new Map<
      string,
      { ordinal: number; agent: string; channel: string; userId: string; lastSeq: number; chunk: number }
    >();
    let ordinals = 0;
    for (let step = 0; step < 6_000; step++) {
      const sessionId = `${random.pick(NAMES)}:${random.below(2_000)}`;
      const row = table.get(sessionId);
      const expected = known.get(sessionId);
      agree(row?.ordinal, expected?.ordinal);
      if (!row || !expected) {
        const made = { agent: `agent-${random.below(5)}`, channel: random.pick(NAMES), userId: random.pick(NAMES) };
        const ordinal = ++ordinals;
        const added = table.add({ sessionId, ...made, ordinal, createdAt: step });
        expect([added.updatedAt, added.lastSeq, added.queue, added.gone]).toEqual([step, 0, [], false]);
        known.set(sessionId, { ordinal, ...made, lastSeq: 0, chunk: -1 });
      } else if (random.chance(0.4)) {
        table.delete(row);
        agree(row.gone, true);
        known.delete(sessionId);
      } else {
        agreeIn(row, expected);
        agree(table.at(row.slot).sessionId, sessionId);
        row.lastSeq = expected.lastSeq = random.below(2 ** 31) * 1000;
        row.chunk = expected.chunk = 2 ** 40 + step;
      }
      agree(table.size, known.size);
    }
    expect(known.size).toBeGreaterThan(100);
    for (const [sessionId, expected] of known) agreeIn(table.get(sessionId), expected);
  });

  test("gives a slot to another session, which has nothing of the one before", () => {
    const table = new SessionTable();
    const names = { agent: "main", channel: "rpc", userId: "u", createdAt: 1 };
    const first = table.add({ sessionId: "first", ordinal: 1, ...names });
    const queue = [{} as QueueRow];
    first.queue = queue;
    first.input = 5;
    expect(table.get("first")?.queue).toBe(queue);
    table.delete(first);
    const second = table.add({ sessionId: "second", ordinal: 2, ...names });
    expect(second.slot).toBe(first.slot);
    expect([second.queue, second.input, second.gone, first.gone]).toEqual([[], 0, false, true]);
    expect(table.get("first")).toBeUndefined();
  });

  test("takes many, lets them go, and takes as many again in the same memory", () => {
    const table = new SessionTable();
    const many = 20_000;
    const fill = (from: number) => {
      for (let n = 0; n < many; n++) {
        table.add({
          sessionId: `s${from + n}`,
          agent: "main",
          channel: "rpc",
          userId: "u",
          ordinal: from + n + 1,
          createdAt: 0,
        });
      }
    };
    fill(0);
    for (let n = 0; n < many; n++) table.delete(table.get(`s${n}`) ?? expect.unreachable());
    expect(table.size).toBe(0);
    fill(many);
    expect(Math.max(...Array.from({ length: many }, (_, n) => table.get(`s${many + n}`)?.slot ?? -1))).toBeLessThan(
      2 * many,
    );
  });
});

describe("slots in the order of their ordinals", () => {
  test.each(SEEDS)("agree with a sorted list after many random steps of seed %d", (seed) => {
    const random = createRandom(seed);
    const order = new OrderedSlots();
    let rows: { ordinal: number; slot: number }[] = [];
    let ordinal = 0;
    for (let step = 0; step < 8_000; step++) {
      if (rows.length === 0 || random.chance(step < 5_000 ? 0.7 : 0.2)) {
        ordinal += 1 + random.below(3);
        const slot = random.below(1_000_000);
        order.push(ordinal, slot);
        rows.push({ ordinal, slot });
      } else {
        const gone = random.pick(rows);
        order.delete(gone.ordinal);
        rows = rows.filter((row) => row !== gone);
        agree(order.find(gone.ordinal), undefined);
      }
      agree(order.size, rows.length);
      if (step % 50 !== 0 || rows.length === 0) continue;
      const some = random.pick(rows);
      expect(order.find(some.ordinal)).toBe(some.slot);
      const after = random.below(ordinal + 2);
      const behind = rows.filter((row) => row.ordinal > after).map(({ slot }) => slot);
      expect([...order.after(after)]).toEqual(behind);
      const limit = 1 + random.below(40);
      const read: number[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = order.page(limit, cursor, (slot) => slot);
        agree(page.items.length <= limit, true);
        read.push(...page.items);
        if (page.next === undefined) break;
        agree(page.items.length, limit);
        cursor = page.next;
      }
      expect(read).toEqual(rows.map(({ slot }) => slot).reverse());
    }
  });

  test("a page goes on where it stopped, though the row it stopped at has gone", () => {
    const order = new OrderedSlots();
    for (let n = 1; n <= 5_000; n++) order.push(n, n);
    const first = order.page(10, undefined, (slot) => slot);
    for (let n = 100; n <= 4_995; n++) order.delete(n);
    expect(order.page(3, first.next, (slot) => slot).items).toEqual([99, 98, 97]);
  });

  test("a page looks at few that are gone, wherever they were", () => {
    const order = new OrderedSlots();
    for (let n = 1; n <= 200_000; n++) order.push(n, n);
    for (let n = 1; n <= 200_000; n++) if (n % 100 !== 0) order.delete(n);
    for (let times = 0; times < 10_000; times++) agree(order.page(50, undefined, (slot) => slot).items.length, 50);
  });
});

test.each(SEEDS)("a table by slot agrees with a map after many random steps of seed %d", (seed) => {
  const random = createRandom(seed);
  const table = new SlotTable<number>();
  const known = new Map<number, number>();
  for (let step = 0; step < 20_000; step++) {
    const slot = random.below(3_000);
    if (random.chance(0.6)) {
      table.set(slot, step);
      known.set(slot, step);
    } else {
      table.delete(slot);
      known.delete(slot);
    }
    const other = random.below(3_000);
    agree(table.get(other), known.get(other));
  }
});

test.each(SEEDS)("texts stay what they are, while others come and go, of seed %d", (seed) => {
  const random = createRandom(seed);
  const heap = new TextHeap();
  const held = new Map<number, Buffer>();
  for (let step = 0; step < 20_000; step++) {
    if (random.chance(0.55)) {
      const text = Buffer.alloc(1 + random.below(random.chance(0.01) ? 400_000 : 200), step % 251);
      const place = heap.add(text, text.length);
      agree(held.has(place), false);
      held.set(place, text);
    } else if (held.size > 0) {
      const place = random.pick([...held.keys()].slice(0, 50));
      heap.delete(place);
      held.delete(place);
    }
  }
  for (const [place, text] of held) {
    const { bytes, at } = heap.read(place);
    agree(text.compare(bytes, at, at + text.length), 0);
  }
});

/** How often memory was taken from the system meanwhile. */
const takings = (act: () => void): number => {
  let taken = 0;
  class Counted extends SharedArrayBuffer {
    constructor(bytes: number) {
      super(bytes);
      taken++;
    }
  }
  vi.stubGlobal("SharedArrayBuffer", Counted);
  try {
    act();
  } finally {
    vi.unstubAllGlobals();
  }
  return taken;
};

test("texts are put where others were, though one in a thousand stays for good", () => {
  const heap = new TextHeap();
  const passing: number[] = [];
  const staying: { place: number; text: Buffer }[] = [];
  let highest = 0;
  for (let n = 0; n < 500_000; n++) {
    const text = Buffer.from(`session ${n} of ${"x".repeat(n % 50)}`);
    const place = heap.add(text, text.length);
    highest = Math.max(highest, place);
    if (n % 1_000 === 0) staying.push({ place, text });
    else passing.push(place);
    if (passing.length === 2_000) for (const gone of passing.splice(0, 1_000)) heap.delete(gone);
  }
  // What is there at once is a fifth of a megabyte; half a million were 20.
  expect(highest).toBeLessThan(4_000_000);
  for (const { place, text } of staying) {
    const { bytes, at } = heap.read(place);
    agree(text.compare(bytes, at, at + text.length), 0);
  }
});

test("pages of texts are let go when nothing is left on them", () => {
  const heap = new TextHeap();
  const text = Buffer.alloc(100, "x");
  const fill = () => Array.from({ length: 50_000 }, () => heap.add(text, text.length));
  for (const place of fill()) heap.delete(place);
  const taken = takings(() => fill());
  expect(taken).toBeGreaterThan(15);
});

test("a list that stays short takes no memory anew, whatever comes and goes", () => {
  const order = new OrderedSlots();
  let ordinal = 0;
  const comeAndGo = (most: number): void => {
    for (let times = 0; times < 5_000; times++) {
      order.push(++ordinal, 1);
      if (ordinal > most) order.delete(ordinal - most);
    }
  };
  comeAndGo(0);
  expect(takings(() => comeAndGo(0))).toBe(0);
});

test("a key that shares the hash of many others, as a caller may choose it, is found as soon", () => {
  const keys = new IdempotencyKeys();
  const turnId = newId("turn", 1);
  // Each word is one of two that lead to the same state, from the end on: 16 384 keys of one hash, were it not for the seed.
  const words = wordsOfOneHash(14);
  for (let n = 0; n < 2 ** words.length; n++) {
    const key = `rest\0key\0chat\0${words.map((pair, at) => pair[(n >> at) & 1]).join("")}`;
    agree(keys.get(key), undefined);
    keys.keep({ key, hash: "", expiresAt: 1 }, { turnId, eventId: undefined });
  }
});

/** Pairs of words of four letters, the last of a text first: after either of a pair the hash without a seed is the same. */
const wordsOfOneHash = (count: number): [string, string][] => {
  const pairs: [string, string][] = [];
  let behind = "";
  while (pairs.length < count) {
    const seen = new Map<number, string>();
    for (let n = 0; ; n++) {
      const word = n.toString(36).padStart(4, "-");
      const hash = hashOf(word + behind);
      const other = seen.get(hash);
      seen.set(hash, word);
      if (other === undefined) continue;
      pairs.unshift([word, other]);
      behind = word + behind;
      break;
    }
  }
  return pairs;
};
