import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import type { SystemEvent } from "#store/store.ts";
import type { ScriptedRun } from "#test/backends/scripted.ts";
import { deliveryOf } from "#test/stores/world.ts";
import { type BeatingCore, MAIN, startBeating } from "./beating-core.ts";

async function fail(core: BeatingCore, run: ScriptedRun): Promise<void> {
  run.fail(new BackendError("the backend is broken"));
  await core.end(run);
}

describe("events whose turn fails", () => {
  it("return to the queue with one more attempt, for the next beat and not for the current one", async () => {
    await using core = await startBeating();
    const events = await core.queueMany(101);
    await core.beat();
    const first = await core.scripted.next();
    await fail(core, first);
    expect(core.handed().map(({ length }) => length)).toEqual([100, 1]);
    expect(await core.read(events[0] as SystemEvent)).toMatchObject({
      status: "queued",
      attempts: 1,
      turnId: first.turn.turnId,
      reason: "the backend is broken",
    });
    await core.end(await core.scripted.next());
    await core.beat();
    expect(core.handed().map(({ length }) => length)).toEqual([100, 1, 100]);
    expect(core.scripted.runs[2]?.turn.message.text).toContain(", from shared, tried 1 time before\n");
    await core.endAll();
    expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
  });

  it("are dead after three failures, which the log and the gateway's stream report", async () => {
    await using core = await startBeating();
    const event = await core.queue("poison");
    for (let n = 0; n < 3; n++) {
      await core.beat();
      await fail(core, await core.scripted.next());
    }
    const reason = "the backend is broken";
    expect(await core.read(event)).toMatchObject({ status: "dead", attempts: 3, reason });
    const dead = { eventId: event.eventId, attempts: 3, reason };
    expect(await core.logged("event.dead")).toMatchObject([dead]);
    const told = (await core.told()).filter(({ name }) => name === "event.dead");
    expect(told).toMatchObject([{ ...dead, agentName: "main" }]);
    await core.beat();
    expect(core.scripted.runs).toHaveLength(3);
    expect(core.store.stats()).toMatchObject({ eventsQueued: 0, eventsDead: 1 });
  });

  it("are the only dead ones if the other events of their turns were newer", async () => {
    await using core = await startBeating();
    const old = await core.queue("old");
    await core.beat();
    await fail(core, await core.scripted.next());
    const newer = await core.queue("newer");
    for (let n = 0; n < 2; n++) {
      await core.beat();
      await fail(core, await core.scripted.next());
    }
    expect(core.handed()).toEqual([["old"], ["old", "newer"], ["old", "newer"]]);
    expect(await core.statusesOf([old, newer])).toEqual(["dead", "queued"]);
    await core.beat();
    await core.endAll();
    expect(await core.read(newer)).toMatchObject({ status: "handled", attempts: 2 });
  });

  it("remain with their turn while it is retried", async () => {
    await using core = await startBeating();
    const event = await core.queue("one");
    await core.beat();
    (await core.scripted.next()).fail(new BackendError("busy", { retryable: true }));
    await core.clock.advance(500);
    expect(await core.read(event)).toMatchObject({ status: "queued", attempts: 0 });
    await core.end(await core.scripted.next());
    expect(await core.read(event)).toMatchObject({ status: "handled", attempts: 0 });
    expect(core.scripted.runs.map(({ turn }) => turn.attempt)).toEqual([1, 2]);
  });

  it("get a step for each return in the timeline of their delivery", async () => {
    await using core = await startBeating();
    await core.queue("one", { delivery: deliveryOf("dlv_1") });
    await core.beat();
    const run = await core.scripted.next();
    await fail(core, run);
    const { steps } = (await core.store.getDelivery("dlv_1")) ?? {};
    expect(steps?.map(({ name, detail }) => [name, JSON.parse(detail ?? "{}")])).toEqual([
      ["event.returned", { turn_id: run.turn.turnId, attempts: 1, reason: "the backend is broken" }],
    ]);
  });

  it("are handled again within a minute if no beat is planned because the heartbeat is off", async () => {
    await using core = await startBeating({ agents: [{ name: "main", heartbeatMs: undefined }] });
    const event = await core.queue("now", { mode: "now" });
    for (let n = 0; n < 3; n++) {
      await core.clock.advance(60_000);
      await fail(core, await core.scripted.next());
    }
    expect(await core.read(event)).toMatchObject({ status: "dead", attempts: 3 });
    expect(core.nextAt()).toBeUndefined();
  });

  it("also return to the queue if their turn is cancelled", async () => {
    await using core = await startBeating();
    const event = await core.queue("one");
    await core.beat();
    const { turn } = await core.scripted.next();
    await core.turns.cancel(turn.turnId);
    expect(await core.read(event)).toMatchObject({ status: "queued", attempts: 1 });
    await core.beat();
    await core.end(await core.scripted.next());
    expect(await core.read(event)).toMatchObject({ status: "handled" });
  });

  it.each(["running", "waiting"])(
    "also return to the queue if their session is deleted while it is %s",
    async (how) => {
      await using core = await startBeating();
      if (how === "waiting") await core.start({ session: MAIN, text: "before" });
      const events = await core.queueMany(150);
      await core.beat();
      await core.store.deleteSession(MAIN, core.clock.now());
      await core.settle();
      expect(await core.read(events[0] as SystemEvent)).toMatchObject({ status: "queued", attempts: 1 });
      for (let n = 0; n < 2; n++) {
        await core.endAll();
        await core.beat();
      }
      await core.endAll();
      expect(new Set(await core.statusesOf(events))).toEqual(new Set(["handled"]));
    },
  );
});
