import { describe, expect, it } from "vitest";
import { emptyList, extended, filled, MOST_ITEMS, MOST_WAITING, merged, released } from "#console/lib/live-list.ts";

type Item = { id: string; state: string };
const item = (id: number | string, state = "queued"): Item => ({ id: String(id), state });
const keyOf = ({ id }: Item) => id;
const ids = (items: readonly Item[]) => items.map(keyOf).join(" ");

describe("a list that follows what happens", () => {
  it("MUST take new ones in at its top while nobody reads", () => {
    const list = merged(filled([item(1)], false), [item(3), item(2)], { keyOf, isReading: false });
    expect(ids(list.items)).toBe("3 2 1");
    expect(list.waiting).toEqual([]);
  });

  it("MUST move nothing under a reader, and let what waits in when asked", () => {
    const start = filled([item(1)], true);
    const reading = merged(merged(start, [item(2)], { keyOf, isReading: true }), [item(3)], { keyOf, isReading: true });
    expect([ids(reading.items), ids(reading.waiting)]).toEqual(["1", "3 2"]);
    expect(ids(released(reading).items)).toBe("3 2 1");
    expect(released(reading).hasMore).toBe(true);
  });

  it("MUST change what is shown or waits in its place", () => {
    const start = merged(filled([item(1), item(0)], false), [item(2)], { keyOf, isReading: true });
    const changed = merged(start, [item(2, "running"), item(0, "completed")], { keyOf, isReading: true });
    expect(changed.items.map(({ state }) => state)).toEqual(["queued", "completed"]);
    expect(changed.waiting).toEqual([item(2, "running")]);
  });

  it("MUST double nothing when a page overlaps it", () => {
    const list = extended(filled([item(3), item(2)], true), [item(2), item(1)], false, keyOf);
    expect(ids(list.items)).toBe("3 2 1");
    expect(list.hasMore).toBe(false);
  });

  it("MUST keep a bounded number, and say that there are older ones", () => {
    const many = Array.from({ length: 500 }, (_, n) => item(n));
    const list = merged(emptyList<Item>(), many, { keyOf, isReading: false });
    expect([list.items.length, list.hasMore]).toEqual([MOST_ITEMS, true]);
    expect(merged(emptyList<Item>(), many, { keyOf, isReading: true }).waiting).toHaveLength(MOST_WAITING);
  });
});
