import { expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { startCore } from "#test/core/start-core.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { leastOf, watchLoop } from "#test/harness/loop.ts";

const COUNT = 20_000;

it("thousands of turns that become ready are all run, in slices of at most 20 ms", {
  timeout: 60_000,
}, async () => {
  const least = await leastOf(3, 20, async () => {
    const clock = { ...createManualClock(), monotonic: () => performance.now() };
    // The only place has a turn that never ends.
    await using core = await startCore({ agents: [{ name: "main", concurrency: 1 }], clock });
    for (let n = 0; n <= COUNT; n++) await core.start({ session: `s${n}` });
    expect(core.store.stats()).toMatchObject({ turnsQueued: COUNT, turnsRunning: 1 });
    const longest = watchLoop();
    await core.core.reconfigure(
      core.settingsWith([{ name: "main", concurrency: 4_096, backend: createEchoBackend() }]),
    );
    await expect.poll(() => core.store.stats().turnsQueued, { timeout: 20_000 }).toBe(0);
    return longest();
  });
  expect(least).toBeLessThan(20);
});
