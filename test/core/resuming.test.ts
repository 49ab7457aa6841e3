import { describe, expect, it } from "vitest";
import type { TurnStep } from "#core/turns/turn-events.ts";
import { createRandom } from "#test/harness/random.ts";
import { ENTRIES, entriesOf, isSaid, startCore, textOf } from "./start-core.ts";

describe("resuming", () => {
  it("starts the reply again for a mark beyond what was written", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const first = core.follow(turn);
    const run = await core.scripted.next();
    run.say("alpha");
    await first.until(isSaid("alpha"));
    const { mark } = first.steps.at(-1) as TurnStep;
    const reader = core.follow(turn, { ...mark, offset: 9_999 });
    await reader.until(isSaid("alpha"));
    run.say(" beta");
    run.end();
    expect(textOf(await reader.done)).toBe("alpha beta");
  });

  it("ends at once after the last mark of an ended turn, also if its session continues", async () => {
    await using core = await startCore();
    const turn = await core.start();
    (await core.scripted.next()).end();
    const ended = await core.ended(turn);
    const all = await core.follow(ended).done;
    const last = all.at(-1)?.mark;
    expect(await core.follow(ended, last).done).toEqual([]);
    await core.start({ text: "the session goes on" });
    expect(await core.follow(ended, last).done).toEqual([]);
  });

  it("ends with the turn if the mark is beyond the last entry", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const reader = core.follow(turn, { seq: 999_999, offset: 7 });
    (await core.scripted.next()).end();
    expect(await reader.done).toEqual([]);
  });

  it("loses and repeats nothing, whenever a reader disconnects and returns", async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = createRandom(seed);
      await using core = await startCore();
      const turn = await core.start();
      const run = await core.scripted.next();
      const seen: TurnStep[] = [];
      let reply = "";
      for (let round = 0; round < 12; round++) {
        const reader = core.follow(turn, seen.at(-1)?.mark);
        for (let n = random.below(4); n > 0; n--) {
          const text = "abcdefgh🙂".slice(random.below(5));
          reply += text;
          run.say(text);
          if (random.chance(0.3)) await core.clock.settle();
          if (random.chance(0.2)) await core.start({ text: "another of the session" });
        }
        await core.clock.settle();
        reader.stop();
        seen.push(...(await reader.done));
      }
      const last = core.follow(turn, seen.at(-1)?.mark);
      await core.clock.settle();
      run.end();
      seen.push(...(await last.done));
      expect(textOf(seen), `seed ${seed}`).toBe(reply);
      expect(entriesOf(seen), `seed ${seed}`).toEqual(ENTRIES);
    }
  });
});
