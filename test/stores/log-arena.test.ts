import { describe, expect, it } from "vitest";
import { LogArena, NONE, UNIT } from "#store/memory/log-arena.ts";

describe("the log arena", () => {
  it("writes into chunks until they are full, and refuses what does not fit", () => {
    const arena = new LogArena();
    const chunk = arena.take(10, NONE, 1);
    const source = Buffer.alloc(UNIT, 1);
    expect(arena.write(chunk, source, UNIT - 12)).toBe(true);
    expect(arena.write(chunk, source, 13)).toBe(false);
    expect(arena.write(chunk, source, 12)).toBe(true);
    const { from, to } = arena.read(chunk);
    expect(to - from).toBe(UNIT);
  });

  it("gives what is too large for a chunk a buffer of its own", () => {
    const arena = new LogArena();
    const large = arena.take(2_000_000, NONE, 7);
    const source = Buffer.alloc(2_000_000, 2);
    expect(arena.write(large, source, source.length)).toBe(true);
    expect(arena.read(large)).toMatchObject({ from: 0, to: 2_000_000, firstSeq: 7, before: NONE });
    expect(arena.write(large, source, 20)).toBe(true);
    expect(arena.write(large, source, 100)).toBe(false);
    expect(arena.liveBytes - 2_000_000).toBeLessThan(100);
    expect(arena.give(large)).toBe(NONE);
    expect(arena.liveBytes).toBe(0);
  });

  it("keeps what is larger than usual with little waste, and uses its place again", () => {
    const arena = new LogArena();
    for (const size of [3_100, 5_000, 30_000, 65_600, 131_072, 400_000, 1_000_000]) {
      const source = Buffer.alloc(size, size % 251);
      const chunk = arena.take(size, NONE, 1);
      expect(arena.write(chunk, source, size)).toBe(true);
      const { bytes, from, to } = arena.read(chunk);
      expect(bytes.subarray(from, to).equals(source)).toBe(true);
      expect(arena.write(chunk, source, 20)).toBe(true);
      expect(arena.liveBytes).toBeLessThan(size * 2);
      arena.give(chunk);
      expect(arena.take(size, NONE, 1)).toBe(chunk);
      arena.give(chunk);
    }
    expect(arena.liveBytes).toBe(0);
  });

  it("frees a log from its oldest chunk on, whatever their sizes", () => {
    const arena = new LogArena();
    const sizes = [100, 5_000, 100, 300, 2_000_000, 2_000, 100_000, 100, 100];
    const chunks: number[] = [];
    for (const [n, size] of sizes.entries()) chunks.push(arena.take(size, chunks.at(-1) ?? NONE, n + 1));
    let oldest = chunks[0] as number;
    for (const chunk of chunks.slice(1)) {
      expect(arena.nextOf(oldest)).toBe(chunk);
      oldest = arena.giveFirst(oldest);
      expect(oldest).toBe(chunk);
      expect(arena.read(oldest).before).toBe(NONE);
    }
    expect(arena.liveBytes).toBe(UNIT);
    arena.give(oldest);
    expect(arena.liveBytes).toBe(0);
  });

  it("uses what was freed of one size for any other, and gives back what nobody needs", () => {
    const arena = new LogArena();
    const chunks = Array.from({ length: 200_000 }, (_, n) => arena.take(100, NONE, n));
    const full = arena.heldBytes;
    expect(full).toBeGreaterThanOrEqual(200_000 * UNIT);
    for (const chunk of chunks.splice(0, 80_000)) arena.give(chunk);
    const source = Buffer.alloc(3_000, 7);
    const large = Array.from({ length: 8_000 }, (_, n) => arena.take(3_000, NONE, n));
    for (const chunk of large) expect(arena.write(chunk, source, source.length)).toBe(true);
    expect(arena.heldBytes).toBe(full);
    for (const chunk of large)
      expect(arena.read(chunk).bytes.subarray(arena.read(chunk).from).readUInt8(2_999)).toBe(7);
    for (const chunk of [...chunks.splice(0), ...large]) arena.give(chunk);
    expect(arena.heldBytes).toBeLessThan(full / 5);
    expect(arena.liveBytes).toBe(0);
    // What stayed is used before more is taken.
    const { heldBytes } = arena;
    arena.take(100, NONE, 1);
    expect(arena.heldBytes).toBe(heldBytes);
  });

  it("uses freed chunks again, and never one that is in use", () => {
    const arena = new LogArena();
    const live = new Set<number>();
    let most = 0;
    let highest = 0;
    for (let round = 0; round < 40; round++) {
      for (let n = 0; n < 2_000; n++) {
        const chunk = arena.take(100, NONE, n);
        expect(live.has(chunk)).toBe(false);
        // Chunks are numbered through all arenas.
        highest = Math.max(highest, chunk);
        live.add(chunk);
      }
      most = Math.max(most, arena.liveBytes);
      for (const chunk of [...live].slice(0, 1_950)) {
        arena.give(chunk);
        live.delete(chunk);
      }
    }
    expect(most).toBeLessThan(4_000 * UNIT + 1);
    expect(highest).toBeLessThan(4 * 4_000);
    expect(arena.liveBytes).toBe(live.size * UNIT);
  });
});
