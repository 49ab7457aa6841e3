import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { sweepOrder } from "#test/stores/world.ts";
import { type BeatingCore, MAIN, startBeating } from "./beating-core.ts";
import { at, namesOf, timelineOf, toldOf } from "./timelines.ts";

describe("the timeline of a wake", () => {
  const queued = async (core: BeatingCore) =>
    await core.queue("the disk is full", { delivery: at(core, { operation: "hooks.wake" }) });

  it("shows when its event was queued, which turn of a heartbeat handled it, and how the turn ran", async () => {
    await using core = await startBeating();
    await queued(core);
    expect(await namesOf(core)).toEqual(["request.received", "event.queued"]);
    await core.beat();
    const run = await core.scripted.next();
    expect(await namesOf(core)).toEqual(["request.received", "event.queued", "event.taken", "turn.started"]);
    await core.clock.advance(70);
    run.say("noted");
    run.use(4, 1);
    await core.end(run);
    const { turnId: turn_id } = run.turn;
    const steps = (await toldOf(core)) as unknown[][];
    expect(steps.map(([, ...step]) => step).slice(1)).toEqual([
      ["event.queued"],
      ["event.taken", { turn_id, session_id: MAIN }],
      ["turn.started", { attempt: 1, waited_ms: 0 }],
      ["turn.completed", { reply: "noted", usage: { input: 4, output: 1, total: 5 }, latency_ms: expect.any(Number) }],
      ["event.handled", { turn_id }],
    ]);
  });

  it("shows each return of the event with the reason, its death, and its replay", async () => {
    await using core = await startBeating();
    const event = await queued(core);
    const turnIds: string[] = [];
    for (const words of ["one", "two", "three"]) {
      await core.beat();
      const run = await core.scripted.next();
      turnIds.push(run.turn.turnId);
      run.fail(new BackendError(words));
      await core.ended(run.turn);
      await core.clock.settle();
    }
    const told = async () =>
      (await timelineOf(core)).map(({ name, detail }) => [name, detail?.turn_id, detail?.reason]);
    const died = [
      ["request.received", undefined, undefined],
      ["event.queued", undefined, undefined],
      ["event.returned", turnIds[0], "one"],
      ["event.returned", turnIds[1], "two"],
      ["event.taken", turnIds[2], undefined],
      ["turn.started", undefined, undefined],
      ["turn.failed", undefined, undefined],
    ];
    expect(await told()).toEqual([...died, ["event.dead", undefined, "three"]]);
    expect((await timelineOf(core)).at(-1)?.detail).toMatchObject({ attempts: 3 });
    await core.clock.advance(10);
    await core.core.systemEvents.replay(event.eventId, "console");
    expect(await told()).toEqual([...died, ["event.requeued", undefined, undefined]]);
    expect((await timelineOf(core)).at(-1)?.detail).toEqual({ by: "console" });
  });

  it("shows the known facts of the last turn for a returned event that waits", async () => {
    await using core = await startBeating();
    await queued(core);
    await core.beat();
    const run = await core.scripted.next();
    run.fail(new BackendError("broken"));
    await core.ended(run.turn);
    await core.clock.settle();
    const returned = (await timelineOf(core)).filter(({ name }) => name === "event.returned");
    const { turnId: turn_id } = run.turn;
    expect(returned.map(({ detail }) => detail)).toEqual([{ turn_id, attempts: 1, reason: "broken" }]);
  });

  it("has only the request once the event is no longer stored", async () => {
    await using core = await startBeating();
    await queued(core);
    await core.beat();
    await core.endAll();
    const now = core.clock.now();
    while (await core.store.sweep(sweepOrder(now, { eventsBefore: now + 1 })));
    expect(await namesOf(core)).toEqual(["request.received"]);
    expect((await core.core.deliveries.read("dlv_1")).outcome).toBe("gone");
  });
});
