import { describe, expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { startCore } from "./start-core.ts";
import { at, namesOf, timelineOf, toldOf } from "./timelines.ts";

const RECEIVED = [0, "request.received", { address: "127.0.0.1", bytes: 2 }];
const NO_USAGE = { input: 0, output: 0, total: 0 };

describe("the timeline of a delivery", () => {
  it("shows how its turn waited, ran and ended, with its reply, its tokens and the duration of each step", async () => {
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

  it("shows each retried attempt with its time and reason, and the final failure", async () => {
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

  it("shows that an attempt was requeued because its gateway was lost, even if the reason is unknown", async () => {
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

  it("shows no usage and no duration for a turn that was cancelled before its start", async () => {
    await using core = await startCore();
    await core.start();
    const turn = await core.start({ delivery: at(core) });
    await core.clock.advance(50);
    await core.turns.cancel(turn.turnId);
    expect(await toldOf(core)).toEqual([RECEIVED, [0, "turn.queued"], [50, "turn.cancelled", { usage: NO_USAGE }]]);
  });

  it("shows the progress of a running turn, and what a turn had written when it was cancelled", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core) });
    const run = await core.scripted.next();
    run.say("half a rep");
    await core.clock.settle();
    expect(await namesOf(core)).toEqual(["request.received", "turn.queued", "turn.started"]);
    await core.turns.cancel(turn.turnId);
    expect((await timelineOf(core)).at(-1)).toMatchObject({ name: "turn.cancelled", detail: { reply: "half a rep" } });
  });

  it("starts with the request, also if a step was recorded earlier", async () => {
    await using core = await startCore();
    const now = core.clock.now();
    const steps = [{ at: now - 40, name: "token.accepted", detail: '{"name":"shared"}' }];
    core.core.deliveries.record(at(core, { answer: "unmatched", steps }));
    expect(await toldOf(core)).toEqual([RECEIVED, [0, "token.accepted", { name: "shared" }]]);
  });

  it("starts, for a replay, with the replayed delivery and the caller of the replay", async () => {
    await using core = await startCore();
    core.core.deliveries.record(at(core, { answer: "unmatched", replayOf: "dlv_0", caller: "console" }));
    const detail = { replay_of: "dlv_0", by: "console", address: "127.0.0.1" };
    expect(await toldOf(core)).toEqual([[0, "request.replayed", detail]]);
  });

  it("orders steps of the same millisecond: the request, the turn, the announcement", async () => {
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

  it("follows the order of the journal if the clock was set back meanwhile", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core) });
    const run = await core.scripted.next();
    core.clock.jump(-3_600_000);
    run.end();
    await core.ended(turn);
    expect(await namesOf(core)).toEqual(["request.received", "turn.queued", "turn.started", "turn.completed"]);
    expect((await timelineOf(core)).at(-1)).toMatchObject({ at: core.clock.now(), detail: { latency_ms: 0 } });
  });

  it("starts no turn before it was queued, whatever the clock shows", async () => {
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

  it("fills in the message of a mapping from the turn's message", async () => {
    await using core = await startCore();
    const detail = '{"mapping":"push","characters":9}';
    const steps = [{ at: core.clock.now(), name: "message.rendered", detail }];
    await core.start({ text: "ada pushed", delivery: at(core, { steps }) });
    const rendered = (await timelineOf(core)).find(({ name }) => name === "message.rendered");
    expect(rendered?.detail).toEqual({ mapping: "push", characters: 9, message: "ada pushed" });
  });

  it("of a repeat has only its own steps, because the work belongs to the first request", async () => {
    await using core = await startCore();
    const turn = await core.start({ delivery: at(core, { deliveryId: "dlv_first" }) });
    const repeat = at(core, { answer: "repeated" });
    core.core.deliveries.record(repeat, { turnId: turn.turnId, sessionId: turn.sessionId });
    expect(await namesOf(core)).toEqual(["request.received"]);
    expect(await namesOf(core, "dlv_first")).toEqual(["request.received", "turn.queued", "turn.started"]);
  });

  it("of a deleted session has the recorded steps, and no body", async () => {
    await using core = await startCore();
    const steps = [{ at: core.clock.now(), name: "message.rendered", detail: '{"characters":9}' }];
    await core.start({ delivery: at(core, { steps }) });
    await core.store.deleteSession("chat:a", core.clock.now());
    const { delivery, timeline } = await core.core.deliveries.get("dlv_1");
    expect(timeline.map(({ name }) => name)).toEqual(["request.received", "message.rendered"]);
    expect([delivery.outcome, delivery.body]).toEqual(["gone", undefined]);
  });

  it("of a turn behind thousands of entries is complete", async () => {
    await using core = await startCore();
    for (let n = 0; n < 300; n++) await core.start();
    const last = await core.start({ delivery: at(core) });
    for (let n = 0; n < 301; n++) (await core.scripted.next()).end();
    await core.ended(last);
    expect(await namesOf(core)).toEqual(["request.received", "turn.queued", "turn.started", "turn.completed"]);
  });
});
