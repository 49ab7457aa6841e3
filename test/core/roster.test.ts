import { describe, expect, it } from "vitest";
import { NOWHERE, Roster } from "#kit/roster.ts";
import { createRandom } from "#test/harness/random.ts";

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
