import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Stream, type Taker } from "#core/follow.ts";

type Item = { seq: number };

/** A stream over a plain list, whose reads the test answers one by one. `lastPublished` may be behind `stored`, like the notifications of an engine. */
class ListStream extends Stream<Item> {
  stored: Item[] = [];
  last = 0;
  lastPublished = 0;
  abandonedCount = 0;
  readonly pending: { answer(): void; fail(): void }[] = [];

  override read(after: number, limit: number): Promise<readonly Item[]> {
    return new Promise((resolve, reject) => {
      this.pending.push({
        answer: () => resolve(this.stored.filter(({ seq }) => seq > after).slice(0, limit)),
        fail: () => reject(new Error("the store does not answer")),
      });
    });
  }

  append(count: number): void {
    for (let n = 0; n < count; n++) this.stored.push({ seq: ++this.last });
  }

  publishAll(): void {
    const entries = Array.from({ length: this.last - this.lastPublished }, (_, n) => ({
      seq: this.lastPublished + n + 1,
    }));
    this.lastPublished = this.last;
    this.publish(entries);
  }

  override onAbandoned(): void {
    this.abandonedCount++;
  }
}

/** A taker of all entries or only of even ones. Its pages are read as for a connection. */
class ListTaker implements Taker<Item> {
  isFull = false;
  hasRoom = true;
  isBehind = false;
  readonly got: (number | `gap ${number}`)[] = [];
  readonly isPicky: boolean;

  constructor(isPicky: boolean) {
    this.isPicky = isPicky;
  }

  wants({ seq }: Item): boolean {
    return !this.isPicky || seq % 2 === 0;
  }

  take({ seq }: Item): void {
    this.got.push(seq);
  }

  onGap(before: number): void {
    this.got.push(`gap ${before}`);
  }

  onBackfill(): void {
    this.isBehind = true;
  }
}

const FULL = { isFull: true, hasRoom: false };
const EMPTY = { isFull: false, hasRoom: true };

type Step =
  | { do: "append" | "erase"; count: number }
  | { do: "restart"; from: number }
  | { do: "startLive"; isPlaceGiven: boolean }
  | { do: "publishAll" | "pull" | "answer" | "fail" | "fill" | "drain" | "leave" };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("append" as const, "erase" as const), count: fc.nat(5) }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constantFrom("publishAll" as const, "pull" as const, "answer" as const) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("fail" as const, "fill" as const, "drain" as const) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), from: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("startLive" as const), isPlaceGiven: fc.boolean() }) },
);

/** Plays the steps, then lets the follower read all that is left. */
async function play(steps: readonly Step[], start: number, isPicky: boolean) {
  const stream = new ListStream();
  stream.append(3);
  stream.publishAll();
  const taker = new ListTaker(isPicky);
  const follower = stream.follow(taker);
  const erased = new Set<number>();
  let isPulling = false;
  let left: number | undefined;
  /** The place of the last start. Entries before it are ignored. */
  let from = start;
  const pull = () => {
    if (!taker.isBehind || isPulling || !taker.hasRoom) return;
    isPulling = true;
    taker.isBehind = false;
    const end = (isMore: boolean) => {
      isPulling = false;
      taker.isBehind ||= isMore;
    };
    follower.page(4).then(end, () => end(true));
  };
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  follower.start(from);
  for (const one of steps) {
    if (one.do === "append") stream.append(one.count);
    else if (one.do === "erase") for (const { seq } of stream.stored.splice(0, one.count)) erased.add(seq);
    else if (one.do === "publishAll") stream.publishAll();
    else if (one.do === "pull") pull();
    else if (one.do === "answer" || one.do === "fail") stream.pending.shift()?.[one.do]();
    else if (one.do === "fill") Object.assign(taker, FULL);
    else if (one.do === "drain") Object.assign(taker, EMPTY);
    else if (one.do === "restart" || one.do === "startLive") {
      if (left !== undefined) continue;
      taker.got.length = 0;
      from = one.do === "restart" ? Math.min(one.from, stream.last) : stream.lastPublished;
      if (one.do === "restart") follower.start(from);
      else if (one.isPlaceGiven) follower.startLive(from);
      else follower.startLive();
    } else {
      follower.leave();
      left ??= taker.got.length;
    }
    if (one.do !== "publishAll" && one.do !== "append") await settle();
  }
  Object.assign(taker, EMPTY);
  stream.publishAll();
  for (let n = 0; n < 200 && (taker.isBehind || isPulling); n++) {
    pull();
    stream.pending.shift()?.answer();
    await settle();
  }
  return { stream, taker, follower, erased, left, from };
}

describe("a follower", () => {
  it("gets each entry after its last start once and in order under random faults, and a gap for erased entries", async () => {
    const orders = fc.array(step, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(orders, fc.nat(3), fc.boolean(), async (steps, start, isPicky) => {
        const { stream, taker, follower, erased, left, from } = await play(steps, start, isPicky);
        if (left !== undefined) {
          expect(taker.got).toHaveLength(left);
          expect(stream.abandonedCount).toBe(1);
          return;
        }
        expect(follower.phase).toBe("live");
        const seen = new Set<number>();
        let last = from;
        for (const one of taker.got) {
          const seq = Number(String(one).replace("gap ", ""));
          if (typeof one === "number") seen.add(seq);
          else for (let n = last + 1; n <= seq; n++) if (taker.wants({ seq: n })) expect(erased).toContain(n);
          expect(seq).toBeGreaterThan(last);
          last = seq;
        }
        for (const { seq } of stream.stored) {
          if (seq > from) expect(seen.has(seq), `${seq}`).toBe(taker.wants({ seq }));
        }
        for (let seq = from + 1; seq <= stream.last; seq++)
          if (taker.wants({ seq }) && !seen.has(seq)) expect(erased).toContain(seq);
      }),
      { numRuns: 1_000 },
    );
  });

  it("starts with the next entry if no place is given, without reading the store", () => {
    const stream = new ListStream();
    stream.append(3);
    const taker = new ListTaker(false);
    stream.follow(taker).startLive();
    stream.lastPublished = 3;
    stream.append(2);
    stream.publishAll();
    expect(taker.got).toEqual([4, 5]);
    expect(stream.pending).toEqual([]);
  });
});
