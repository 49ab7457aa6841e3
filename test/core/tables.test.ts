import { describe, expect, it } from "vitest";
import { newId } from "#kit/ids.ts";
import { IdTable, NOWHERE, Roster } from "#kit/tables.ts";
import { createRandom } from "#test/harness/random.ts";

describe("a table by id", () => {
  it("agrees with a map after many random steps", () => {
    const random = createRandom(1);
    const table = new IdTable<number>();
    const map = new Map<string, number>();
    // Short ids and like ends share buckets.
    const ids = Array.from({ length: 2_000 }, (_, n) => (n % 2 ? newId("turn", n) : `${n}:the same end`));
    for (let step = 0; step < 50_000; step++) {
      const id = random.pick(ids);
      if (random.chance(0.55)) {
        table.set(id, step);
        map.set(id, step);
      } else {
        expect(table.delete(id)).toBe(map.delete(id));
      }
    }
    expect(table.size).toBe(map.size);
    for (const id of ids) expect(table.get(id)).toBe(map.get(id));
    expect(table.values().sort()).toEqual([...map.values()].sort());
  });

  it("may be changed by who looks through its values", () => {
    const table = new IdTable<string>();
    for (let n = 0; n < 100; n++) table.set(`turn_${n}`, `turn_${n}`);
    for (const id of table.values()) table.delete(id);
    expect(table.size).toBe(0);
  });
});

describe("a roster", () => {
  it("knows who is on it, whoever leaves", () => {
    const random = createRandom(2);
    const roster = new Roster<{ at: number }>();
    const all = Array.from({ length: 100 }, () => ({ at: NOWHERE }));
    const on = new Set<{ at: number }>();
    for (let step = 0; step < 10_000; step++) {
      const one = random.pick(all);
      if (on.delete(one)) roster.delete(one);
      else {
        on.add(one);
        roster.add(one);
      }
    }
    expect(roster.size).toBe(on.size);
    expect(new Set(roster.list())).toEqual(on);
    expect(all.filter(({ at }) => at === NOWHERE)).toHaveLength(100 - on.size);
  });

  it("takes no notice of one that leaves twice", () => {
    const roster = new Roster<{ at: number }>();
    const [one, other] = [{ at: NOWHERE }, { at: NOWHERE }];
    roster.add(one);
    roster.add(other);
    roster.delete(one);
    roster.delete(one);
    expect(roster.list()).toEqual([other]);
  });
});
