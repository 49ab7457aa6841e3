import { describe, expect, it } from "vitest";
import { createEchoBackend } from "#backends/echo.ts";
import { systemClock } from "#kit/clock.ts";
import type { SystemEvent } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { type BeatingCore, startBeating } from "./beating-core.ts";
import { followLive } from "./follow-live.ts";

const COUNT = 100_000;
const AGENTS = [{ name: "main" }, { name: "other" }];
const MANY = Array.from({ length: 500 }, (_, n) => ({ name: `agent${n}` }));
const LONGEST_REST_MS = 100;
/** Turns run in real time; beats follow a clock that does not move. */
function realTime() {
  const still = createManualClock();
  const after = (ms: number, fire: () => void) => (ms > LONGEST_REST_MS ? still : systemClock).after(ms, fire);
  return { ...still, after, monotonic: () => performance.now() };
}

async function fill(core: BeatingCore): Promise<Map<string, string[]>> {
  const ids = new Map<string, string[]>(AGENTS.map(({ name }) => [name, []]));
  for (let n = 0; n < COUNT; n++) {
    const agent = n % 4 === 0 ? "other" : "main";
    const { event } = (await core.queueFully({ agent, text: `event ${n}` })) as { event: SystemEvent };
    ids.get(agent)?.push(event.eventId);
  }
  return ids;
}

/** Follows the states of events; resolves when all have ended. */
function whenEnded(core: BeatingCore, count: number) {
  const ended = new Map<string, string[]>(AGENTS.map(({ name }) => [name, []]));
  let left = count;
  const done = new Promise<void>((resolve) => {
    followLive(core.core.gatewayStream, (entry) => {
      if (entry.name !== "event.handled" && entry.name !== "event.dead") return;
      ended.get(entry.agentName)?.push(entry.eventId);
      if (--left === 0) resolve();
    });
  });
  return { ended, done };
}

describe("100 000 waiting events", () => {
  // F18
  it("are handled in one beat, each once and in order", {
    timeout: 120_000,
  }, async () => {
    await using core = await startBeating({ agents: AGENTS, backend: createEchoBackend(), clock: realTime() });
    const ids = await fill(core);
    const { ended, done } = whenEnded(core, COUNT + AGENTS.length);
    for (const { name } of AGENTS) ids.get(name)?.push((await core.queue("now", { agent: name, mode: "now" })).eventId);
    await done;
    expect(ended).toEqual(ids);
    expect(core.store.stats()).toMatchObject({ eventsQueued: 0, eventsDead: 0 });
  });

  it("are dead, each once and in order, when their agents are removed", {
    timeout: 120_000,
  }, async () => {
    await using core = await startBeating({ agents: AGENTS, backend: createEchoBackend(), clock: realTime() });
    const ids = await fill(core);
    const { ended, done } = whenEnded(core, COUNT);
    await core.core.reconfigure(core.settingsWith([{ name: "new" }]));
    await done;
    expect(ended).toEqual(ids);
    expect(core.store.stats()).toMatchObject({ eventsQueued: 0, eventsDead: COUNT });
  });
});

describe("500 agents with beats at the same time", () => {
  it("all handle their events", { timeout: 120_000 }, async () => {
    await using core = await startBeating({ agents: MANY, backend: createEchoBackend(), clock: realTime() });
    for (const { name } of MANY) await core.queueMany(40, { agent: name });
    await core.settle();
    for (const { name } of MANY) core.queueFully({ agent: name, mode: "now" });
    await new Promise<void>((resolve) => {
      let left = MANY.length;
      followLive(core.core.gatewayStream, ({ name }) => {
        if (name === "heartbeat.ran" && --left === 0) resolve();
      });
    });
    expect(core.store.stats()).toMatchObject({ eventsQueued: 0, eventsDead: 0 });
  });
});
