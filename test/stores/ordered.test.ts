import { expect, it } from "vitest";
import { Ordered } from "#store/live/ordered.ts";
import { createRandom } from "#test/harness/random.ts";

it.each([1, 2, 3])("keeps values in the order of their keys, whatever comes and goes: seed %d", (seed) => {
  const random = createRandom(seed);
  const ordered = new Ordered<number, string>();
  const expected = new Map<number, string>();
  const keys = () => [...expected.keys()].sort((a, b) => a - b);
  for (let step = 0; step < 5_000; step++) {
    // Long phases of growing and of shrinking, mostly from the front.
    const isGrowing = Math.floor(step / 1_000) % 2 === 0;
    const front = keys()[random.below(3)];
    const key = random.chance(0.8) ? step : random.below(5_000);
    if (random.chance(isGrowing ? 0.7 : 0.2)) {
      ordered.set(key, `${step}`);
      expected.set(key, `${step}`);
    } else {
      const gone = random.chance(0.8) ? (front ?? key) : key;
      ordered.delete(gone);
      expected.delete(gone);
    }
    if (step % 50 !== 0) continue;
    const sorted = keys();
    const from = random.below(5_000);
    const valuesOf = (some: number[]) => some.map((one) => expected.get(one));
    expect(ordered.size).toBe(expected.size);
    expect(ordered.firstKey()).toBe(sorted[0]);
    expect(ordered.first()).toBe(sorted[0] === undefined ? undefined : expected.get(sorted[0]));
    expect(ordered.get(from)).toBe(expected.get(from));
    expect(ordered.after(from, 5)).toEqual(valuesOf(sorted.filter((one) => one > from).slice(0, 5)));
    expect(ordered.through(from)).toEqual(valuesOf(sorted.filter((one) => one <= from)));
    expect(ordered.before(from, 5)).toEqual(
      valuesOf(
        sorted
          .filter((one) => one < from)
          .reverse()
          .slice(0, 5),
      ),
    );
    expect(ordered.after(undefined, 1e9)).toEqual(valuesOf(sorted));
    expect(ordered.before(undefined, 1e9)).toEqual(valuesOf(sorted.reverse()));
  }
});
