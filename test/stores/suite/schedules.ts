import { describe, expect } from "vitest";
import { fired, orderOf, PLAN, plan, startOf } from "../schedules.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, times, type World, type WorldOptions } from "../world.ts";

async function stateOf(world: World, name = "brief") {
  return (await world.store.readSchedules()).find((state) => state.name === name);
}

async function newsOf(world: World) {
  return (await world.store.readGatewayEntries({ after: 0, limit: 1_000 })).entries;
}

/** Options for an order of the planned time that is stored. The next one is a minute later. */
async function next(world: World, name = "brief"): Promise<{ plannedAt: number; nextAt: number }> {
  const plannedAt = (await stateOf(world, name))?.nextAt ?? 0;
  return { plannedAt, nextAt: plannedAt + 60_000 };
}

export function schedulesTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("a schedule", () => {
    it("is planned once with the same plan, and again with another one", async ({ world }) => {
      const now = world.clock.now();
      const first = await plan(world, { nextAt: now + 1_000 });
      expect(first).toEqual({ name: "brief", plan: PLAN, nextAt: now + 1_000, anchorAt: now + 1_000 });
      expect(await plan(world, { nextAt: now + 5_000 })).toEqual(first);
      expect(await plan(world, { plan: "every 5000", nextAt: now + 5_000 })).toMatchObject({
        plan: "every 5000",
        nextAt: now + 5_000,
        anchorAt: now + 5_000,
      });
      expect(world.told.filter(({ kind }) => kind === "schedule")).toHaveLength(2);
    });

    it("is planned earlier in place of the given time only", async ({ world }) => {
      const now = world.clock.now();
      await plan(world, { nextAt: now + 1_000 });
      expect(await plan(world, { nextAt: now + 500, instead: now + 999 })).toMatchObject({ nextAt: now + 1_000 });
      expect(await plan(world, { nextAt: now + 500, instead: now + 1_000 })).toMatchObject({
        nextAt: now + 500,
        anchorAt: now + 1_000,
      });
    });

    it("is read with all others, by name", async ({ world }) => {
      for (const name of ["b", "a", "c"]) await plan(world, { name });
      expect((await world.store.readSchedules()).map(({ name }) => name)).toEqual(["a", "b", "c"]);
      await world.store.unplanSchedule("b");
      await world.store.unplanSchedule("unknown");
      expect((await world.store.readSchedules()).map(({ name }) => name)).toEqual(["a", "c"]);
    });

    it("starts a turn with its delivery at its planned time, and has the next one", async ({ world }) => {
      await plan(world);
      const order = orderOf(world);
      const { runs, started } = await world.store.runSchedule(order);
      const turnId = started?.turn.turnId;
      const { deliveryId } = order.start?.delivery ?? {};
      const run = { plannedAt: order.plannedAt, at: order.now, outcome: "started", turnId, deliveryId } as const;
      expect(runs).toEqual([run]);
      expect(started).toMatchObject({ replayed: false, turn: { status: "queued", surface: "schedule", deliveryId } });
      expect(await stateOf(world)).toMatchObject({ nextAt: order.nextAt, handledAt: order.plannedAt, last: run });
      expect(await world.store.getDelivery(deliveryId ?? "")).toMatchObject({
        turnId,
        outcome: "queued",
        agent: "main",
      });
      expect(await newsOf(world)).toMatchObject([
        {
          name: "schedule.ran",
          scheduleName: "brief",
          outcome: "started",
          plannedAt: order.plannedAt,
          turnId,
          reason: null,
        },
      ]);
    });

    it("can be claimed in the same transaction", async ({ world }) => {
      await plan(world);
      const claim = { now: world.clock.now(), node: "node_a", leaseMs: 1_000, replyMessageId: "msg_reply" };
      const { started } = await world.store.runSchedule(
        orderOf(world, { start: startOf(world, { order: { claim } }) }),
      );
      expect(started?.claimed?.turn).toMatchObject({ status: "running" });
    });

    it("runs once for concurrent orders of a planned time", async ({ world }) => {
      await plan(world);
      const steps = await Promise.all(times(10, () => world.store.runSchedule(orderOf(world))));
      expect(steps.filter(({ runs }) => runs.length > 0)).toHaveLength(1);
      expect((await world.store.listTurns({ limit: 100 })).items).toHaveLength(1);
      expect(await newsOf(world)).toHaveLength(1);
    });

    it("runs no planned time that was handled, unless the times are planned again", async ({ world }) => {
      const now = world.clock.now();
      await plan(world);
      await world.store.runSchedule(orderOf(world, { nextAt: now - 5_000 }));
      expect((await world.store.runSchedule(orderOf(world, { plannedAt: now - 5_000 }))).runs).toEqual([]);
      expect(await plan(world, { nextAt: now - 3_000, instead: now - 5_000 })).not.toHaveProperty("handledAt", now);
      const { runs } = await world.store.runSchedule(
        orderOf(world, { plannedAt: now - 3_000, start: startOf(world, { overlap: "queue" }) }),
      );
      expect(runs).toMatchObject([{ outcome: "started" }]);
    });

    it("does not run with another plan or another planned time", async ({ world }) => {
      await plan(world);
      const { now } = orderOf(world);
      for (const change of [{ plan: "other" }, { plannedAt: now - 1 }, { name: "other" }])
        expect(await world.store.runSchedule(orderOf(world, change))).toEqual({ runs: [], started: undefined });
      expect((await world.store.listTurns({ limit: 9 })).items).toEqual([]);
      expect(await world.store.readSchedules()).toHaveLength(1);
    });

    it("is skipped while the turn of its last run is open, unless runs may overlap", async ({ world }) => {
      await plan(world);
      const first = await world.store.runSchedule(orderOf(world, await next(world)));
      const turnId = first.started?.turn.turnId;
      const order = orderOf(world, await next(world));
      const { runs, started } = await world.store.runSchedule(order);
      const reason = `overlap: The turn ${turnId} of the last run has not ended.`;
      expect(started).toBeUndefined();
      expect(runs).toMatchObject([{ outcome: "skipped", reason, turnId: undefined }]);
      const delivery = await world.store.getDelivery(order.start?.delivery.deliveryId ?? "");
      expect(delivery).toMatchObject({ answer: "skipped", outcome: "skipped", agent: "main", turnId: undefined });
      expect(delivery?.steps).toMatchObject([{ name: "schedule.skipped" }]);
      expect(world.told).toContainEqual({ kind: "recorded", deliveryId: delivery?.deliveryId });
      const queued = await world.store.runSchedule(
        orderOf(world, { ...(await next(world)), start: startOf(world, { overlap: "queue" }) }),
      );
      expect(queued.runs).toMatchObject([{ outcome: "started" }]);
      await world.end(await world.claimNext());
      await world.end(await world.claimNext());
      expect((await world.store.runSchedule(orderOf(world, await next(world)))).runs).toMatchObject([
        { outcome: "started" },
      ]);
    });

    it("is skipped if the turn is refused, and keeps nothing of the turn", async ({ world }) => {
      await world.start({ session: "schedule:a" });
      await plan(world);
      await world.start({ surface: "schedule", caller: "busy" });
      const before = world.store.stats().turnsQueued;
      const refusals: [WorldOptions, RegExp][] = [
        [{ session: "schedule:a", agent: "other" }, /^session-conflict: /],
        [{ session: "schedule:a", limits: { turnsPerSession: 1 } }, /^session-busy: /],
        [{ limits: { turns: 1 } }, /^gateway-busy: /],
        [
          { limits: { turns: 10, share: 0.1 }, caller: "busy" },
          /^share-busy: limits.share is reached: 1 turns of the schedule busy/,
        ],
        [{ limits: { storeBytes: 1 } }, /^store-full: /],
      ];
      for (const [options, reason] of refusals) {
        const start = startOf(world, { order: options });
        const { runs } = await world.store.runSchedule(orderOf(world, { ...(await next(world)), start }));
        expect(runs).toMatchObject([{ outcome: "skipped", reason: expect.stringMatching(reason) }]);
      }
      const refusal = { name: "agent-not-found", detail: "No agent is named x." };
      const start = startOf(world, { turn: { refusal } });
      const { runs } = await world.store.runSchedule(orderOf(world, { ...(await next(world)), start }));
      expect(runs).toMatchObject([{ outcome: "skipped", reason: "agent-not-found: No agent is named x." }]);
      expect(world.store.stats().turnsQueued).toBe(before);
      expect((await world.store.listDeliveries({ outcome: "skipped", limit: 9 })).items).toHaveLength(6);
    });

    it("records missed times, with a run for them or without", async ({ world }) => {
      await plan(world);
      const missedRun = () => {
        const delivery = fired(world, "missed");
        const { deliveryId } = delivery;
        const at = world.clock.now();
        const run = { plannedAt: at, at, outcome: "missed" as const, reason: "late", deliveryId };
        return { run: { ...run, turnId: undefined, requestedBy: undefined }, agent: "main", delivery };
      };
      const only = await world.store.runSchedule(
        orderOf(world, { ...(await next(world)), missed: missedRun(), start: undefined }),
      );
      expect(only).toMatchObject({ runs: [{ outcome: "missed", reason: "late" }], started: undefined });
      expect(await stateOf(world)).toMatchObject({ last: { outcome: "missed" } });
      const both = await world.store.runSchedule(orderOf(world, { ...(await next(world)), missed: missedRun() }));
      expect(both.runs.map(({ outcome }) => outcome)).toEqual(["missed", "started"]);
      expect(await stateOf(world)).toMatchObject({ last: { outcome: "started" } });
      expect((await newsOf(world)).map((entry) => "outcome" in entry && entry.outcome)).toEqual([
        "missed",
        "missed",
        "started",
      ]);
    });

    it("does not run while it is paused, and continues with the time that is planned when it is resumed", async ({
      world,
    }) => {
      await plan(world);
      const now = world.clock.now();
      const pause = { paused: true, plan: PLAN, nextAt: undefined, now };
      expect(await world.store.setSchedulePaused("brief", pause)).toMatchObject({
        isChanged: true,
        state: { pausedAt: now },
      });
      expect((await stateOf(world))?.nextAt).toBeUndefined();
      expect(await world.store.setSchedulePaused("brief", { ...pause, now: now + 1 })).toMatchObject({
        isChanged: false,
        state: { pausedAt: now },
      });
      expect((await world.store.runSchedule(orderOf(world))).runs).toEqual([]);
      expect((await plan(world)).nextAt).toBeUndefined();
      expect((await plan(world, { plan: "other" })).nextAt).toBeUndefined();
      const resume = { paused: false, plan: PLAN, nextAt: now + 500, now };
      expect(await world.store.setSchedulePaused("brief", resume)).toMatchObject({
        isChanged: true,
        state: { nextAt: now + 500 },
      });
      expect((await newsOf(world)).map(({ name }) => name)).toEqual(["schedule.paused", "schedule.resumed"]);
    });

    it("is resumed with the plan of the gateway that resumes it", async ({ world }) => {
      const now = world.clock.now();
      await plan(world);
      await world.store.setSchedulePaused("brief", { paused: true, plan: PLAN, nextAt: undefined, now });
      await plan(world, { plan: "every 5000" });
      const resume = { paused: false, plan: PLAN, nextAt: now + 500, now };
      expect((await world.store.setSchedulePaused("brief", resume)).state).toMatchObject({
        plan: PLAN,
        nextAt: now + 500,
        anchorAt: now + 500,
      });
    });

    it("is planned again by other gateways after one forgot it", async ({ world }) => {
      await plan(world);
      const before = world.told.filter(({ kind }) => kind === "schedule").length;
      await world.store.unplanSchedule("brief");
      expect(world.told.filter(({ kind }) => kind === "schedule")).toHaveLength(before + 1);
    });

    it("stays paused when it is forgotten", async ({ world }) => {
      await plan(world);
      await world.store.setSchedulePaused("brief", { paused: true, plan: PLAN, nextAt: undefined, now: 5 });
      await world.store.unplanSchedule("brief");
      expect(await stateOf(world)).toMatchObject({ plan: "", pausedAt: 5 });
      expect((await stateOf(world))?.nextAt).toBeUndefined();
      const again = await plan(world);
      expect(again).toMatchObject({ plan: PLAN, pausedAt: 5 });
      expect(again.nextAt).toBeUndefined();
    });

    it("starts a requested turn, once for an idempotency key, and keeps its plan", async ({ world }) => {
      const before = await plan(world, { nextAt: world.clock.now() + 1_000 });
      const request = () => {
        const delivery = fired(world);
        const turn = world.order({ surface: "schedule", caller: "brief", key: "k", delivery });
        return world.store.requestRun("brief", { requestedBy: "ops", turn });
      };
      const [first, second] = [await request(), await request()];
      expect(second).toMatchObject({ replayed: true, turn: { turnId: first.turn.turnId } });
      const { last, ...state } = (await stateOf(world)) ?? {};
      expect(last).toMatchObject({ outcome: "started", requestedBy: "ops", turnId: first.turn.turnId });
      expect({ ...state, last: undefined }).toEqual(before);
      expect(await newsOf(world)).toHaveLength(1);
      expect((await world.store.runSchedule(orderOf(world, { plannedAt: before.nextAt ?? 0 }))).runs).toMatchObject([
        { outcome: "skipped", reason: expect.stringContaining("overlap") },
      ]);
    });

    if (engine.reopen)
      it("keeps its plan, its pause and its last run after the store was opened again", async ({ world }) => {
        await plan(world);
        await plan(world, { name: "paused" });
        await world.store.runSchedule(orderOf(world));
        await world.store.setSchedulePaused("paused", { paused: true, plan: PLAN, nextAt: undefined, now: 7 });
        const before = await world.store.readSchedules();
        await world.reopen();
        expect(await world.store.readSchedules()).toEqual(before);
        expect((await world.store.runSchedule(orderOf(world))).runs).toEqual([]);
      });
  });
}
