import { describe, expect, it } from "vitest";
import type { TimelineStep } from "#core/delivery-timeline.ts";
import { BackendError } from "#core/errors.ts";
import type { Delivery, Store } from "#store/store.ts";
import { deliveryOf } from "#test/stores/world.ts";
import { type BeatingCore, MAIN, startBeating } from "./beating-core.ts";
import { startCore, type TestCore } from "./start-core.ts";

const at = (core: TestCore, more: Partial<Delivery> = {}): Delivery => ({
  ...deliveryOf("dlv_1"),
  at: core.clock.now(),
  bytes: 2,
  ...more,
});

const timelineOf = async (core: TestCore, deliveryId = "dlv_1"): Promise<TimelineStep[]> =>
  (await core.core.deliveries.get(deliveryId)).timeline;

/** Each step with the time that had passed since the first, and what it says. */
const toldOf = async (core: TestCore, deliveryId?: string): Promise<unknown[]> => {
  const steps = await timelineOf(core, deliveryId);
  const began = steps[0]?.at ?? 0;
  return steps.map(({ at, name, detail }) => (detail ? [at - began, name, detail] : [at - began, name]));
};
const namesOf = async (core: TestCore, deliveryId?: string): Promise<string[]> =>
  (await timelineOf(core, deliveryId)).map(({ name }) => name);

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
      ...["request.received", "token.accepted", "message.rendered"],
      ...["turn.queued", "turn.started", "turn.completed", "announcement.delivered"],
    ]);
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

  it("of a turn behind thousands of entries is read in bounded pages, and told from the turn's record", async () => {
    let reads = 0;
    const counting = (store: Store): Store =>
      Object.assign(Object.create(store) as Store, {
        readEntries: (...of: Parameters<Store["readEntries"]>) => {
          reads++;
          return store.readEntries(...of);
        },
      });
    await using core = await startCore({ wrapStore: counting });
    const first = await core.start();
    for (let n = 0; n < 700; n++) await core.start();
    const last = await core.start({ delivery: at(core) });
    for (let n = 0; n < 702; n++) {
      const run = await core.scripted.next();
      await core.clock.advance(1);
      run.say("hi");
      run.end();
    }
    await core.ended(first);
    await core.ended(last);
    reads = 0;
    expect(await toldOf(core)).toEqual([
      RECEIVED,
      [0, "turn.queued"],
      [701, "turn.started", { attempt: 1, waited_ms: 701 }],
      [702, "turn.completed", { reply: "hi", usage: NO_USAGE, latency_ms: 1 }],
    ]);
    expect(reads).toBeLessThanOrEqual(40);
  });
});

describe("the timeline of a wake", () => {
  const queued = async (core: BeatingCore) =>
    await core.queue("the disk is full", { delivery: at(core, { operation: "hooks.wake" }) });

  it("tells when its event was queued, which heartbeat's turn took it, how that ran, and that it was handled", async () => {
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

  it("tells each time that it came back and why, its death, and that it was queued again", async () => {
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

  it("tells of one that came back and waits what is known of its last turn", async () => {
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

  it("is only the way in once the event is not kept any more", async () => {
    await using core = await startBeating();
    await queued(core);
    await core.beat();
    await core.endAll();
    const swept = { eventsBefore: core.clock.now() + 1, sessionsBefore: 0, webhookSessionsBefore: 0, usageBefore: 0 };
    const lost = { name: "turn-failed", detail: "lost" } as const;
    while (await core.store.sweep({ ...swept, now: core.clock.now(), maxAttempts: 3, lost, gatewayBefore: 0 }));
    expect(await namesOf(core)).toEqual(["request.received"]);
    expect((await core.core.deliveries.read("dlv_1")).outcome).toBe("gone");
  });
});
