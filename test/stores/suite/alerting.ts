import { describe, expect } from "vitest";
import { EVENT_TYPES, eventsOf } from "#kit/notifications.ts";
import { NO_POLICY } from "#store/policy.ts";
import type { GatewayNews } from "#store/store.ts";
import { queueEvent, STREAM_KEEP, takeEvents } from "../inbound.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, LEASE_MS, type World } from "../world.ts";

/** An endpoint with all alerts, and one for the alerts of an agent. */
async function configure(world: World): Promise<void> {
  const notify = [
    { name: "ops", events: eventsOf("alert.*"), agents: undefined },
    { name: "billing", events: EVENT_TYPES, agents: ["billing"] },
  ];
  await world.store.configure({ ...NO_POLICY, notify });
}

async function listed(world: World) {
  const { items } = await world.store.listNotifications({ limit: 100 });
  return items.reverse().map(({ data, ...rest }) => ({ ...rest, data: JSON.parse(data) as Record<string, unknown> }));
}

async function endTurn(world: World, how: Parameters<World["end"]>[1], agent = "main"): Promise<string> {
  const { turnId } = await world.start({ session: world.newId("chat:x"), agent });
  await world.end(await world.claimNext(), how);
  return turnId;
}

function append(world: World, news: GatewayNews) {
  return world.store.appendGatewayEntry(news, { now: world.clock.now(), keep: STREAM_KEEP });
}

export function alertingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("notifying endpoints of alerts", () => {
    it("reports once that an agent fails, and once that it works again", async ({ world }) => {
      await configure(world);
      const [failed, , , recovered] = [
        await endTurn(world, { status: "failed" }),
        await endTurn(world, { status: "failed", error: { name: "turn-timeout", detail: undefined } }),
        await endTurn(world, { status: "cancelled" }),
        await endTurn(world, {}),
        await endTurn(world, {}),
      ];
      expect(await listed(world)).toMatchObject([
        { endpoint: "ops", type: "agent.failing", turnId: failed, data: { agent: "main", reason: "broken" } },
        { endpoint: "ops", type: "agent.recovered", turnId: recovered, data: { agent: "main", reason: null } },
      ]);
      await endTurn(world, { status: "failed" }, "billing");
      const types = (await listed(world)).slice(2).map(({ endpoint, type }) => `${endpoint} ${type}`);
      expect(types).toEqual(["ops agent.failing", "billing agent.failing", "billing turn.failed"]);
    });

    it("reports each death of a system event with another id, and its hops", async ({ world }) => {
      await configure(world);
      const metadata = JSON.stringify({ "x-gateway-hops": 2 });
      const { eventId } = await queueEvent(world, { metadata });
      await world.end(await takeEvents(world, [eventId], { maxAttempts: 1 }), { status: "failed" });
      await world.store.requeueEvent(eventId, { now: world.clock.now(), beatNow: false, streamKeep: STREAM_KEEP });
      const end = { now: world.clock.now(), streamKeep: STREAM_KEEP, limit: 10 };
      await world.store.failQueuedEvents("main", "its agent was removed", end);
      const dead = (await listed(world)).filter(({ type }) => type === "event.dead");
      expect(dead).toMatchObject([
        { agent: "main", hops: 2, data: { eventId, agentName: "main", attempts: 1, reason: "broken" } },
        { agent: "main", hops: 2, data: { eventId, reason: "its agent was removed" } },
      ]);
      expect(Object.keys(dead[0]?.data ?? {}).sort()).toEqual(["agentName", "attempts", "eventId", "reason"]);
      const [one, other] = dead.map((notification) => notification.eventId);
      expect(one).toMatch(new RegExp(`^ntf_${eventId.slice("evt_".length)}_[0-9]+$`));
      expect(other).not.toBe(one);
    });

    it("reports each failed announcement with another id, and none that is delivered or deleted", async ({ world }) => {
      await configure(world);
      const { store, clock } = world;
      const announce = { channel: "ops", hops: 1 };
      const { turnId } = await world.start({ session: "chat:a", announce });
      await world.end(await world.claimNext());
      const step = { at: 1, name: "announcement.failed", detail: undefined };
      const end = async (state: "failed" | "delivered") => {
        const free = { "channel:ops": 1 };
        const others = { free: 0, before: 0 };
        const { claimed } = await store.claimOutgoing({ node: "node_a", leaseMs: LEASE_MS, free, others });
        for (const { claim } of claimed) await store.endOutgoing(claim, { state, reason: "410 Gone", step });
      };
      for (const state of ["failed", "delivered", "failed"] as const) {
        await end(state);
        await store.announceAgain(turnId, { now: clock.now(), by: "ci", hops: 0 });
      }
      await store.deleteSession("chat:a", clock.now());
      const found = (await listed(world)).filter(({ type }) => type === "announcement.dead");
      const data = {
        turnId,
        sessionId: "chat:a",
        agent: "main",
        channel: "ops",
        attempts: 1,
        reason: "410 Gone",
        deliveryId: null,
      };
      expect(found).toMatchObject([
        { agent: "main", turnId, sessionId: "chat:a", hops: 1, data },
        { turnId, data },
      ]);
      expect(new Set(found.map(({ eventId }) => eventId)).size).toBe(2);
    });

    it("reports changes of budgets with the entry of the gateway's stream", async ({ world }) => {
      await configure(world);
      await append(world, { name: "agent.paused", agentName: "main" });
      const budget = { budgetName: "daily", unit: "tokens", used: 80, limit: 100, resetsAt: 86_400_000 } as const;
      await append(world, { name: "budget.warning", ...budget });
      await append(world, { name: "budget.exceeded", ...budget, used: 100 });
      const found = await listed(world);
      const resetsAt = "1970-01-02T00:00:00.000Z";
      expect(found.map(({ endpoint, type, data }) => ({ endpoint, type, data }))).toEqual([
        { endpoint: "ops", type: "budget.warning", data: { ...budget, resetsAt } },
        { endpoint: "ops", type: "budget.exceeded", data: { ...budget, used: 100, resetsAt } },
      ]);
      for (const { eventId } of found) expect(eventId).toMatch(/^ntf_[A-Za-z0-9_-]+$/);
      expect(new Set(found.map(({ eventId }) => eventId)).size).toBe(2);
    });
  });
}
