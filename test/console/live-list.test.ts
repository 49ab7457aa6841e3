import { describe, expect, it } from "vitest";
import {
  caughtUp,
  emptyList,
  extended,
  filled,
  hasOlder,
  isAway,
  type LiveList,
  MOST_ROWS,
  MOST_SHOWN,
  MOST_WAITING,
  merged,
  movedNewer,
  movedOlder,
  PAGE,
  released,
} from "#console/lib/live-list.ts";

type Item = { id: string; state: string };
function item(id: number | string, state = "queued"): Item {
  return { id: String(id), state };
}
function keyOf({ id }: Item) {
  return id;
}
function ids(items: readonly Item[]) {
  return items.map(keyOf).join(" ");
}
/** A number of items, counting down from the first. */
function down(from: number, count: number): Item[] {
  return Array.from({ length: count }, (_, n) => item(from - n));
}
function ends({ items }: LiveList<Item>) {
  return [items[0]?.id, items.at(-1)?.id, items.length];
}

/** A list with this number of read pages, which starts at item 10 000. */
function deep(pages: number): LiveList<Item> {
  let list = filled(down(10_000, PAGE), true);
  for (let n = 1; n < pages; n++) list = extended(list, down(10_000 - n * PAGE, PAGE), true, keyOf);
  return list;
}

describe("a live list", () => {
  it("MUST add new rows at its top while the user is not reading", () => {
    const list = merged(filled([item(1)], false), [item(3), item(2)], { keyOf, isReading: false });
    expect(ids(list.items)).toBe("3 2 1");
    expect(list.waiting).toEqual([]);
  });

  it("MUST move nothing under a reader, and add waiting rows on request", () => {
    const start = filled([item(1)], true);
    const reading = merged(merged(start, [item(2)], { keyOf, isReading: true }), [item(3)], { keyOf, isReading: true });
    expect([ids(reading.items), ids(reading.waiting)]).toEqual(["1", "3 2"]);
    expect(ids(released(reading).items)).toBe("3 2 1");
    expect(released(reading).hasMore).toBe(true);
  });

  it("MUST change shown and waiting rows in place", () => {
    const start = merged(filled([item(1), item(0)], false), [item(2)], { keyOf, isReading: true });
    const changed = merged(start, [item(2, "running"), item(0, "completed")], { keyOf, isReading: true });
    expect(changed.items.map(({ state }) => state)).toEqual(["queued", "completed"]);
    expect(changed.waiting).toEqual([item(2, "running")]);
  });

  it("MUST show the latest of two changes that arrive together", () => {
    const news = [item(1, "completed"), item(2, "completed"), item(2, "running"), item(1, "running")];
    const list = merged(filled([item(1)], false), news, { keyOf, isReading: false });
    expect(list.items.map(({ state }) => state)).toEqual(["completed", "completed"]);
  });

  it("MUST repeat nothing when a page overlaps it", () => {
    const list = extended(filled([item(3), item(2)], true), [item(2), item(1)], false, keyOf);
    expect(ids(list.items)).toBe("3 2 1");
    expect(list.hasMore).toBe(false);
  });

  it("MUST hold a limited number of rows while it is live, and say that there are older ones", () => {
    const list = merged(emptyList<Item>(), down(5_000, 500), { keyOf, isReading: false });
    expect([list.items.length, list.older.length, list.hasMore]).toEqual([MOST_SHOWN, 300, false]);
    const longer = merged(list, down(9_000, 3_000), { keyOf, isReading: false });
    expect([longer.items.length, longer.older.length, longer.hasMore]).toEqual([MOST_SHOWN, MOST_ROWS, true]);
  });

  it("MUST say that rows are missing once more are waiting than it holds", () => {
    const list = merged(filled([item(1)], false), down(500, 300), { keyOf, isReading: true });
    expect([list.waiting.length, isAway(list)]).toEqual([MOST_WAITING, true]);
  });
});

describe("moving to older and newer rows", () => {
  it("MUST show the two pages at the end, and drop the newest", () => {
    expect(ends(deep(2))).toEqual(["10000", "9801", MOST_SHOWN]);
    expect(isAway(deep(2))).toBe(false);
    expect(ends(deep(5))).toEqual(["9700", "9501", MOST_SHOWN]);
    expect(isAway(deep(5))).toBe(true);
  });

  it("MUST return to the newest rows page by page, and move to older ones again without another read", () => {
    let list = deep(5);
    for (const first of ["9800", "9900", "10000"]) {
      list = movedNewer(list);
      expect(list.items[0]?.id).toBe(first);
      expect(list.items).toHaveLength(MOST_SHOWN);
    }
    expect(isAway(list)).toBe(false);
    for (const last of ["9701", "9601", "9501"]) {
      list = movedOlder(list);
      expect(list.items.at(-1)?.id).toBe(last);
    }
    expect([list.older.length, hasOlder(list)]).toEqual([0, true]);
    expect(new Set([...list.newer, ...list.items].map(keyOf)).size).toBe(500);
  });

  it("MUST hold a limited number of hidden rows, and lead to the newest by a new read", () => {
    let list = deep(40);
    expect([list.newer.length, list.isCut]).toEqual([MOST_ROWS, true]);
    for (let n = 0; n < 40; n++) list = movedNewer(list);
    expect([list.newer.length, list.items.length, isAway(list)]).toEqual([0, MOST_SHOWN, true]);
    expect(list.older).toHaveLength(MOST_ROWS);
  });

  it("MUST hold new rows while the newest are hidden, and change hidden rows in place", () => {
    const list = merged(deep(5), [item("new"), item(10_000, "completed"), item(9_600, "failed")], {
      keyOf,
      isReading: false,
    });
    expect([ids(list.waiting), list.newer[0]?.state]).toEqual(["new", "completed"]);
    expect(list.items.find(({ id }) => id === "9600")?.state).toBe("failed");
    expect(ends(list)).toEqual(ends(deep(5)));
  });

  it("MUST show rows again that live ones displaced, without a gap", () => {
    const list = merged(deep(1), down(10_150, 150), { keyOf, isReading: false });
    expect(ends(list)).toEqual(["10150", "9951", MOST_SHOWN]);
    expect(ids(movedOlder(list).items.slice(-51))).toBe(ids(down(9_951, 51)));
  });
});

describe("the newest page that is read after a loss of the stream", () => {
  it("MUST be merged if it overlaps the stored rows", () => {
    const list = caughtUp(deep(1), down(10_050, PAGE), { keyOf, isReading: false });
    expect(list && ends(list)).toEqual(["10050", "9901", 150]);
  });

  it("MUST replace the list if it does not, and move nothing under a reader", () => {
    expect(caughtUp(deep(1), down(20_000, PAGE), { keyOf, isReading: false })).toBeUndefined();
    const reading = caughtUp(deep(1), down(20_000, PAGE), { keyOf, isReading: true });
    expect([reading && ends(reading), reading?.isCut, reading?.waiting.length]).toEqual([ends(deep(1)), true, PAGE]);
    const away = caughtUp(deep(5), down(20_000, PAGE), { keyOf, isReading: false });
    expect(away && ends(away)).toEqual(ends(deep(5)));
  });
});
