import { expect, it, vi } from "vitest";
import { ArrayStream } from "#store/memory/stream.ts";

type Numbered = { seq: number };
function numbered(from: number, through: number): Numbered[] {
  return Array.from({ length: Math.max(through - from + 1, 0) }, (_, n) => ({ seq: from + n }));
}

/** Entries are packed in a stream that has more than 500, so both a short one and a long one are walked through. */
it.each(["weighed", "not weighed"])("a stream reads and erases like an array, however long it is: %s", (how) => {
  let weight = 0;
  const weigh = (_: Numbered, by: 1 | -1) => {
    weight += by;
  };
  const stream = new ArrayStream<Numbered>(how === "weighed" ? weigh : undefined);
  let kept: Numbered[] = [];
  let last = 0;
  for (let step = 0; step < 200; step++) {
    const count = ((step * 7) % 13) * 4;
    const added = numbered(last + 1, last + count);
    stream.append(added);
    kept.push(...added);
    last += count;
    if (step % 5 === 4) {
      const bound = (kept[0]?.seq ?? last + 1) + ((step * 11) % 60) * 3;
      if (how === "weighed") stream.erase(kept.filter(({ seq }) => seq < bound));
      else stream.eraseBefore(bound);
      stream.erase([]);
      kept = kept.filter(({ seq }) => seq >= bound);
    }
    const first = kept[0]?.seq ?? last + 1;
    expect([stream.first, stream.last, weight]).toEqual([first, last, how === "weighed" ? kept.length : 0]);
    if (step % 4 > 0) continue;
    for (const seq of [0, first - 1, first + 3, first + 70, last - 40, last, Infinity]) {
      for (const limit of [1, 33, Infinity]) {
        expect(stream.after(seq, limit)).toEqual(kept.filter((entry) => entry.seq > seq).slice(0, limit));
        expect(stream.before(seq, limit)).toEqual(
          kept
            .filter((entry) => entry.seq < seq)
            .reverse()
            .slice(0, limit),
        );
      }
    }
  }
});

it("a stream without a weight unpacks nothing when its oldest entry is erased", () => {
  const stream = new ArrayStream<Numbered>();
  stream.append(numbered(1, 2_000));
  using parse = vi.spyOn(JSON, "parse");
  stream.eraseBefore(2);
  expect(parse).not.toHaveBeenCalled();
  expect(stream.after(0, 1)).toEqual([{ seq: 2 }]);
});
