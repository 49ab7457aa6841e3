import { describe, expect, it } from "vitest";
import { giveOffHeap, takeOffHeap } from "#store/memory/off-heap.ts";

describe("memory for records", () => {
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
