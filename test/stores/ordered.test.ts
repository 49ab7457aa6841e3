import { expect, it } from "vitest";
import { Ordered } from "#store/tables/ordered.ts";
import { createRandom } from "#test/harness/random.ts";

type Pair = { key: number; value: string };

it.each([1, 2, 3])("stores values in the order of their keys, whatever is added and deleted: seed %d", (seed) => {
  const random = createRandom(seed);
  const ordered = new Ordered<number, string>();
  let expected: Pair[] = [];
  for (let step = 0; step < 5_000; step++) {
    // Long phases of growth and of shrinking, mostly from the front. Some keys are added more than once.
    const isGrowing = Math.floor(step / 1_000) % 2 === 0;
    if (random.chance(isGrowing ? 0.7 : 0.2)) {
      const pair = { key: random.chance(0.8) ? Math.floor(step / 3) : random.below(2_000), value: `${step}` };
      ordered.add(pair.key, pair.value);
      expected.push(pair);
      expected.sort((a, b) => a.key - b.key);
    } else {
      const gone = expected[random.chance(0.8) ? random.below(3) : random.below(expected.length + 1)];
      ordered.delete(gone?.key ?? step, gone?.value ?? "");
      expected = expected.filter((pair) => pair !== gone);
    }
    if (step % 50 !== 0) continue;
    const from = random.below(2_000);
    const valuesOf = (matches: (key: number) => boolean) =>
      expected.filter(({ key }) => matches(key)).map(({ value }) => value);
    expect(ordered.size).toBe(expected.length);
    expect(ordered.scan({})).toEqual(valuesOf(() => true));
    expect(ordered.scan({ newestFirst: true })).toEqual(valuesOf(() => true).reverse());
    expect(ordered.scan({ above: from, limit: 5 })).toEqual(valuesOf((key) => key > from).slice(0, 5));
    expect(ordered.scan({ upTo: from })).toEqual(valuesOf((key) => key <= from));
    expect(ordered.scan({ above: from, below: from + 9 })).toEqual(valuesOf((key) => key > from && key < from + 9));
    const before = valuesOf((key) => key < from).reverse();
    expect(ordered.scan({ below: from, newestFirst: true, limit: 5 })).toEqual(before.slice(0, 5));
  }
});
