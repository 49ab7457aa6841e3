import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { A_BEAT, startBeating } from "./beating-core.ts";

/** A memory store that claims to be durable. */
const durable = { wrapStore: () => ({ durable: true }) };

describe("heartbeats of a gateway that stops", () => {
  it("start no further turn, while the running one continues", async () => {
    await using core = await startBeating(durable);
    const events = await core.queueMany(150);
    await core.beat();
    const run = await core.scripted.next();
    core.core.heartbeat.stop();
    const drained = core.runner.drain(30_000);
    await core.clock.advance(5_000);
    await core.end(run);
    expect(await drained).toBe(0);
    const statuses = await Promise.all(events.map(async (event) => (await core.read(event)).status));
    expect(statuses.filter((status) => status === "handled")).toHaveLength(100);
    expect(core.scripted.runs).toHaveLength(1);
  });

  it("start no further beat", async () => {
    await using core = await startBeating(durable);
    await core.queue("one");
    core.core.heartbeat.stop();
    await core.queue("two", { mode: "now" });
    await core.clock.advance(2 * A_BEAT);
    expect(core.scripted.runs).toHaveLength(0);
  });

  it("leave the rest at once to the next gateway that opens the store", async () => {
    await using first = await startBeating(durable);
    await first.queueMany(150);
    await first.beat();
    const run = await first.scripted.next();
    first.core.heartbeat.stop();
    await first.end(run);
    await first.core.close();
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    await second.settle();
    expect(second.handed().map(({ length }) => length)).toEqual([50]);
  });

  it("leave a beat with an unfinished turn to another gateway, where the turn continues with its events", async () => {
    await using first = await startBeating(durable);
    const events = await first.queueMany(150);
    await first.beat();
    await first.scripted.next();
    first.core.heartbeat.stop();
    const drained = first.runner.drain(1_000);
    await first.clock.advance(1_000);
    expect(await drained).toBe(1);
    await first.core.close();
    await using second = await startBeating({ clock: first.clock, wrapStore: () => first.store });
    await second.settle();
    for (let n = 0; n < 2; n++) await second.endAll();
    expect(second.handed().map(({ length }) => length)).toEqual([100, 50]);
    expect(second.scripted.runs[0]?.turn.attempt).toBe(2);
    for (const event of events) expect(await second.read(event)).toMatchObject({ status: "handled", attempts: 0 });
  });

  it("stop their attempts to start a turn that cannot be started", async () => {
    const busy = () => Promise.reject(new GatewayError("gateway-busy"));
    await using core = await startBeating({ wrapStore: () => ({ durable: true, startBeat: busy }) });
    await core.queue("one");
    await core.beat();
    core.core.heartbeat.stop();
    await core.settle();
    expect(await core.store.readBeat("main")).toMatchObject({ running: false });
  });

  it("end if new work is refused", async () => {
    const admit = () => {
      throw new GatewayError("shutting-down");
    };
    let isOver = false;
    await using core = await startBeating({ admit: () => isOver && admit() });
    await core.queue("one");
    isOver = true;
    await core.beat();
    expect(core.scripted.runs).toHaveLength(0);
    for (const event of ["beat.delayed", "unexpected.error"]) expect(await core.logged(event)).toEqual([]);
  });

  it("fail the events of a store that is not durable, and report it", async () => {
    await using core = await startBeating();
    const event = await core.queue("one");
    core.core.heartbeat.stop();
    await core.core.failQueued();
    expect(await core.read(event)).toMatchObject({ status: "dead" });
    expect(await core.logged("events.given-up")).toMatchObject([{ agent: "main", count: 1 }]);
  });

  it("fail no event of a durable store", async () => {
    await using core = await startBeating(durable);
    const event = await core.queue("one");
    await core.core.failQueued();
    expect(await core.read(event)).toMatchObject({ status: "queued" });
  });

  it("leave no timer and no wait after the core is closed", async () => {
    const core = await startBeating();
    await core.queue("one");
    await core.beat();
    await core.scripted.next();
    void core.runner.drain(0);
    await core.clock.advance(0);
    await core.core.close();
    await core.clock.advance(10_000);
    expect(core.clock.timers()).toBe(0);
    await core[Symbol.asyncDispose]();
  });

  it("do not delay the close if a store hangs", async () => {
    let isHanging = false;
    const core = await startBeating({
      wrapStore: (store) => ({
        startBeat: (...of) => (isHanging ? new Promise(() => {}) : store.startBeat(...of)),
      }),
    });
    await core.queue("one");
    isHanging = true;
    await core.beat();
    const closed = core.core.close();
    await core.clock.advance(1_000);
    await closed;
  });
});
