import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { createGathering, MOST_MS } from "#backends/outbound/gathering.ts";

setFlagsFromString("--expose_gc");
const collect = runInNewContext("gc") as () => void;

describe("how long connections are left alone", () => {
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await sleep(1);
  };

  it("follows the event loop up and down while answers are many, and is nothing when they are few", async () => {
    let use = 1;
    const gathering = createGathering({ loopUse: () => use, many: 2, lookMs: 1 });
    gathering.begin();
    await sleep(10);
    expect(gathering.holdMs).toBe(0);
    gathering.begin();
    await until(() => gathering.holdMs === MOST_MS);
    use = 0.5;
    await sleep(10);
    expect(gathering.holdMs).toBe(MOST_MS);
    use = 0.1;
    await until(() => gathering.holdMs === 0);
    use = 1;
    await until(() => gathering.holdMs > 0);
    gathering.end();
    await until(() => gathering.holdMs === 0);
    gathering.begin();
    await until(() => gathering.holdMs > 0);
    gathering.end();
    gathering.end();
  });

  it("is over for each once, in the order in which they were held, also as it becomes shorter", async () => {
    let use = 1;
    const gathering = createGathering({ loopUse: () => use, many: 1, lookMs: 1 });
    gathering.begin();
    await until(() => gathering.holdMs === MOST_MS);
    const released: number[] = [];
    const began = performance.now();
    const times: number[] = [];
    const hold = (from: number, to: number) => {
      for (let n = from; n < to; n++)
        gathering.hold({
          release() {
            released.push(n);
            times.push(performance.now() - began);
          },
        });
    };
    hold(0, 100);
    expect(released).toEqual([]);
    use = 0;
    await until(() => gathering.holdMs === 0);
    hold(100, 200);
    await until(() => released.length === 200);
    await sleep(5);
    expect(released).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(MOST_MS - 1);
    gathering.end();
  });

  it("keeps nothing of what is released, though others always wait", async () => {
    const gathering = createGathering({ loopUse: () => 1, many: 1, lookMs: 1 });
    gathering.begin();
    await until(() => gathering.holdMs > 0);
    let isOver = false;
    let [kept, released] = [0, 0];
    const gone = new FinalizationRegistry<void>(() => void kept--);
    // Each waits anew as soon as it is released, a little after the other.
    const wait = () => {
      kept++;
      const one = {
        release() {
          released++;
          if (!isOver) wait();
        },
      };
      gone.register(one, undefined);
      gathering.hold(one);
    };
    wait();
    await sleep(3);
    for (let n = 0; n < 100; n++) wait();
    await until(() => released > 500);
    while (kept > 200) {
      collect();
      await sleep(1);
    }
    isOver = true;
    gathering.end();
  });
});
