import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { startCore } from "./start-core.ts";
import { at, namesOf, timelineOf, toldOf } from "./timelines.ts";

const RECEIVED = [0, "request.received", { address: "127.0.0.1", bytes: 2 }];
const NO_USAGE = { input: 0, output: 0, total: 0 };

describe("the timeline of a delivery", () => {
  it("tells how its turn waited, ran and ended, with its reply, its tokens and how long each took", async () => {
    await using core = await startCore();
    const before = await core.start();
    await core.start({ delivery: at(core) });
    const first = await core.scripted.next();
    await core.clock.advance(2_000);
    first.end();
    await core.ended(before);
    const second = await core.scripted.next();
    await core.clock.advance(300);
    second.say("hello");
    second.use(3, 5);
    second.end();
    await core.ended(second.turn);
    expect(await toldOf(core)).toEqual([
      RECEIVED,
      [0, "turn.queued"],
      [2_000, "turn.started", { attempt: 1, waited_ms: 2_000 }],
      [2_300, "turn.completed", { reply: "hello", usage: { input: 3, output: 5, total: 8 }, latency_ms: 300 }],
    ]);
  });

  it("tells each attempt that was given back, when and why, and how it failed in the end", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core) });
    for (const words of ["first", "second", "third"]) {
      (await core.scripted.next()).fail(new BackendError(words, { retryable: true, retryAfterMs: 2_000 }));
      await core.clock.advance(2_000);
    }
    await core.ended(turn);
    expect(await toldOf(core)).toEqual([
      RECEIVED,
      [0, "turn.queued"],
      [0, "turn.started", { attempt: 1, waited_ms: 0 }],
      [0, "turn.returned", { attempt: 1, reason: "first", delay_ms: 2_000 }],
      [2_000, "turn.started", { attempt: 2, waited_ms: 2_000 }],
      [2_000, "turn.returned", { attempt: 2, reason: "second", delay_ms: 2_000 }],
      [4_000, "turn.started", { attempt: 3, waited_ms: 2_000 }],
      [4_000, "turn.failed", { error: "turn-failed", detail: "third", usage: NO_USAGE, latency_ms: 0 }],
    ]);
  });

  it("tells of an attempt that was lost with its runner that it was given back, if not why", async () => {
    await using core = await startCore();
    await core.runner.drain(0);
    await core.start({ delivery: at(core) });
    const claim = { now: core.clock.now(), node: "another", leaseMs: 1_000, free: 1, freeOf: () => 1 };
    await core.store.claimTurns({ ...claim, newMessageId: () => "msg_1" });
    await core.clock.advance(5_000);
    const steps = (await toldOf(core)) as unknown[][];
    expect(steps.map(([, ...step]) => step).slice(1)).toEqual([
      ["turn.queued"],
      ["turn.started", { attempt: 1, waited_ms: 0 }],
      ["turn.returned", { attempt: 1 }],
    ]);
  });

  it("tells of a turn that was cancelled before it began that it used nothing and took no time", async () => {
    await using core = await startCore();
    await core.start();
    const turn = await core.start({ delivery: at(core) });
    await core.clock.advance(50);
    await core.turns.cancel(turn.turnId);
    expect(await toldOf(core)).toEqual([RECEIVED, [0, "turn.queued"], [50, "turn.cancelled", { usage: NO_USAGE }]]);
  });

  it("tells of a turn that runs how far it is, and of one that was cancelled then what it had said", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core) });
    const run = await core.scripted.next();
    run.say("half a rep");
    await core.clock.settle();
    expect(await namesOf(core)).toEqual(["request.received", "turn.queued", "turn.started"]);
    await core.turns.cancel(turn.turnId);
    expect((await timelineOf(core)).at(-1)).toMatchObject({ name: "turn.cancelled", detail: { reply: "half a rep" } });
  });

  it("begins with the request, also where something was noted before it was recorded", async () => {
    await using core = await startCore();
    const now = core.clock.now();
    const steps = [{ at: now - 40, name: "token.accepted", detail: '{"name":"shared"}' }];
    core.core.deliveries.record(at(core, { answer: "unmatched", steps }));
    expect(await toldOf(core)).toEqual([RECEIVED, [0, "token.accepted", { name: "shared" }]]);
  });

  it("begins, for one that was sent again, with what it repeats and who asked for it", async () => {
    await using core = await startCore();
    core.core.deliveries.record(at(core, { answer: "unmatched", replayOf: "dlv_0", caller: "console" }));
    const detail = { replay_of: "dlv_0", by: "console", address: "127.0.0.1" };
    expect(await toldOf(core)).toEqual([[0, "request.replayed", detail]]);
  });

  it("orders what happened in one millisecond: the way in, the turn, the announcement", async () => {
    await using core = await startCore();
    const step = (name: string) => ({ at: core.clock.now(), name, detail: undefined });
    const steps = [step("token.accepted"), step("message.rendered")];
    const turn = await core.start({ delivery: at(core, { steps }) });
    (await core.scripted.next()).end();
    await core.ended(turn);
    await core.store.addDeliveryStep("dlv_1", step("announcement.delivered"));
    expect(await namesOf(core)).toEqual([
      "request.received",
      "token.accepted",
      "message.rendered",
      "turn.queued",
      "turn.started",
      "turn.completed",
      "announcement.delivered",
    ]);
  });

  it("keeps to the order of the journal when the clock was put back meanwhile", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core) });
    const run = await core.scripted.next();
    core.clock.jump(-3_600_000);
    run.end();
    await core.ended(turn);
    expect(await namesOf(core)).toEqual(["request.received", "turn.queued", "turn.started", "turn.completed"]);
    expect((await timelineOf(core)).at(-1)).toMatchObject({ at: core.clock.now(), detail: { latency_ms: 0 } });
  });

  it("begins no turn before it was queued, however the clock ticks", async () => {
    const ticking = createManualClock();
    const { now } = ticking;
    let ticks = 0;
    await using core = await startCore({ clock: Object.assign(ticking, { now: () => now() + ticks++ }) });
    await core.start({ delivery: at(core) });
    const started = (await timelineOf(core)).at(-1);
    const queued = (await timelineOf(core)).at(-2);
    expect([queued?.name, started?.name]).toEqual(["turn.queued", "turn.started"]);
    expect(started?.at).toBeGreaterThanOrEqual(queued?.at ?? Infinity);
  });

  it("fills in the message that a mapping rendered from the turn's own", async () => {
    await using core = await startCore();
    const detail = '{"mapping":"push","characters":9}';
    const steps = [{ at: core.clock.now(), name: "message.rendered", detail }];
    await core.start({ text: "ada pushed", delivery: at(core, { steps }) });
    const rendered = (await timelineOf(core)).find(({ name }) => name === "message.rendered");
    expect(rendered?.detail).toEqual({ mapping: "push", characters: 9, message: "ada pushed" });
  });

  it("of a repeat has its own steps alone, as the work is on the first one's", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core, { deliveryId: "dlv_first" }) });
    const repeat = at(core, { answer: "repeated" });
    core.core.deliveries.record(repeat, { turnId: turn.turnId, sessionId: turn.sessionId });
    expect(await namesOf(core)).toEqual(["request.received"]);
    expect(await namesOf(core, "dlv_first")).toEqual(["request.received", "turn.queued", "turn.started"]);
  });

  it("of a deleted session keeps what was noted, and no body", async () => {
    await using core = await startCore();
    const steps = [{ at: core.clock.now(), name: "message.rendered", detail: '{"characters":9}' }];
    await core.start({ delivery: at(core, { steps }) });
    await core.store.deleteSession("chat:a", core.clock.now());
    const { delivery, timeline } = await core.core.deliveries.get("dlv_1");
    expect(timeline.map(({ name }) => name)).toEqual(["request.received", "message.rendered"]);
    expect([delivery.outcome, delivery.body]).toEqual(["gone", undefined]);
  });

  it("of a turn behind thousands of entries is whole", async () => {
    await using core = await startCore();
    for (let n = 0; n < 300; n++) await core.start();
    const last = await core.start({ delivery: at(core) });
    for (let n = 0; n < 301; n++) (await core.scripted.next()).end();
    await core.ended(last);
    expect(await namesOf(core)).toEqual(["request.received", "turn.queued", "turn.started", "turn.completed"]);
  });
});
