import { describe, expect, it } from "vitest";
import { agentView } from "#core/agents/agents.ts";
import { GatewayError } from "#kit/errors.ts";
import type { HealthPart } from "#store/store.ts";
import { deliveryOf } from "#test/stores/world.ts";
import { type BeatingCore, startBeating } from "./beating-core.ts";
import { AMPLE } from "./start-core.ts";

const KEY = { key: "hooks\0shared\0wake\0k1", hash: "hash" };

async function nameOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return "no error";
  } catch (error) {
    return (error as Error).name;
  }
}
async function eventsPart({ core, clock }: BeatingCore): Promise<HealthPart | undefined> {
  await clock.advance(250);
  return (await core.health.read()).parts.find(({ name }) => name === "events");
}
function roomFor(events: number) {
  return { limits: { ...AMPLE, store: { ...AMPLE.store, events } } };
}
/** An agent whose one event has failed three turns. */
async function startWithDead(options: Parameters<typeof startBeating>[0] = {}) {
  const core = await startBeating(options);
  const event = await core.queue("poison", { delivery: deliveryOf("dlv_1") });
  for (let n = 0; n < 3; n++) {
    await core.beat();
    const run = await core.scripted.next();
    run.fail(new Error("broken"));
    await core.end(run);
  }
  return Object.assign(core, { event });
}

describe("queueing an event", () => {
  it("returns the event after it was stored", async () => {
    await using core = await startBeating();
    const options = { text: "one", metadata: '{"a":1}', caller: "ci", delivery: deliveryOf("dlv_1") };
    const { event, replayed } = await core.queueFully(options);
    expect(replayed).toBe(false);
    expect(event).toMatchObject({
      eventId: expect.stringMatching(/^evt_[0-9A-Z]{26}$/),
      agent: "main",
      text: "one",
      metadata: '{"a":1}',
      caller: "ci",
      status: "queued",
      attempts: 0,
      createdAt: core.clock.now(),
      deliveryId: "dlv_1",
    });
    expect(await core.read(event)).toEqual(event);
  });

  it("is for the named agent, or for the default agent", async () => {
    await using core = await startBeating({ agents: [{ name: "main" }, { name: "other" }] });
    expect(await core.queue("a")).toMatchObject({ agent: "main" });
    expect(await core.queue("b", { agent: "other" })).toMatchObject({ agent: "other" });
    expect(agentView(core, "other").waitingEvents).toBe(1);
  });

  it.each([
    ["an unknown agent", { agent: "nobody" }, "agent-not-found"],
    ["a plain event for an agent whose heartbeat is off", { agent: "off" }, "heartbeat-off"],
  ])("refuses %s, and stores nothing", async (_, options, refusal) => {
    await using core = await startBeating({ agents: [{ name: "main" }, { name: "off", heartbeatMs: undefined }] });
    const idempotency = KEY;
    expect(await nameOf(() => core.queueFully({ ...options, idempotency, delivery: deliveryOf("dlv_1") }))).toBe(
      refusal,
    );
    expect(core.store.stats()).toMatchObject({ eventsQueued: 0, deliveries: 0 });
    expect(await core.store.findEventReplay(KEY, core.clock.now())).toBeUndefined();
  });

  it("refuses events while the gateway drains, and does not count them as refused for a full queue", async () => {
    const admit = () => {
      throw new GatewayError("shutting-down");
    };
    await using core = await startBeating({ admit });
    expect(await nameOf(() => core.queueFully())).toBe("shutting-down");
    expect(core.core.systemEvents.refused()).toBe(0);
  });
});

describe("a full queue", () => {
  it("refuses with a hint, and accepts events again after a beat has made room", async () => {
    await using core = await startBeating({ settings: roomFor(2) });
    const kept = await core.queueMany(2);
    const refused = async () => core.queueFully({ text: "too much" });
    await expect(refused()).rejects.toMatchObject({ name: "gateway-busy", extra: { retryAfterMs: 1_000 } });
    await core.beat();
    await core.endAll();
    expect(core.handed()).toEqual([kept.map(({ text }) => text)]);
    expect(await core.queue("now there is room")).toMatchObject({ status: "queued" });
  });

  it("counts the events of running turns", async () => {
    await using core = await startBeating({ settings: roomFor(1) });
    await core.queue("one");
    await core.beat();
    await core.scripted.next();
    expect(await nameOf(() => core.queueFully())).toBe("gateway-busy");
  });

  it("is a part of health, with the number of refused events, which remains when there is room again", async () => {
    await using core = await startBeating({ settings: roomFor(2) });
    expect(await eventsPart(core)).toEqual({ name: "events", status: "ok", detail: null });
    await core.queueMany(2);
    for (let n = 0; n < 3; n++) await nameOf(() => core.queueFully());
    expect(await eventsPart(core)).toEqual({
      name: "events",
      status: "degraded",
      detail:
        "2 events wait, the maximum in limits.events: new events are refused. 3 events were refused since the gateway started, because the limit was reached.",
    });
    expect(await core.core.health.read()).toMatchObject({ status: "degraded" });
    await core.beat();
    await core.endAll();
    expect(await eventsPart(core)).toEqual({
      name: "events",
      status: "ok",
      detail: "3 events were refused since the gateway started, because the limit was reached.",
    });
    expect(await core.logged("event.refused")).toHaveLength(3);
  });

  it.each(["gateway-busy", "store-full"] as const)(
    "of a store that answers later (%s) is counted, too",
    async (name) => {
      const queueEvent = () => Promise.reject(new GatewayError(name));
      await using core = await startBeating({ wrapStore: () => ({ queueEvent }) });
      expect(await nameOf(() => core.queueFully())).toBe(name);
      expect(core.core.systemEvents.refused()).toBe(1);
    },
  );
});

describe("an event of a sender that used up its share", () => {
  it.each(["share-busy", "share-full"] as const)("is counted as %s, and does not degrade the gateway", async (name) => {
    const queueEvent = () => Promise.reject(new GatewayError(name));
    await using core = await startBeating({ wrapStore: () => ({ queueEvent }) });
    expect(await nameOf(() => core.queueFully())).toBe(name);
    expect(await core.logged("event.refused")).toMatchObject([{ reason: name }]);
    expect(core.core.systemEvents.refused()).toBe(0);
  });
});

describe("a repeated event", () => {
  it.each([
    ["its agent was removed", (core: BeatingCore) => core.core.reconfigure(core.settingsWith([{ name: "other" }]))],
    [
      "its agent's heartbeat is off",
      (core: BeatingCore) => core.core.reconfigure(core.settingsWith([{ name: "main", heartbeatMs: undefined }])),
    ],
    ["the queue is full", (core: BeatingCore) => core.queue("the last")],
  ])("returns the first event also when %s", async (_, change) => {
    await using core = await startBeating({ settings: roomFor(2) });
    const { event } = await core.queueFully({ text: "one", idempotency: KEY });
    await change(core);
    const again = await core.queueFully({ text: "one", idempotency: KEY });
    expect(again).toMatchObject({ event: { eventId: event.eventId }, replayed: true });
  });

  it("returns the first event also while the gateway drains", async () => {
    let isDraining = false;
    const admit = () => {
      if (isDraining) throw new GatewayError("shutting-down");
    };
    await using core = await startBeating({ admit });
    await core.queueFully({ idempotency: KEY });
    isDraining = true;
    expect(await core.queueFully({ idempotency: KEY })).toMatchObject({ replayed: true });
  });
});

describe("a dead event", () => {
  it("is reported in health", async () => {
    await using core = await startWithDead();
    expect(await eventsPart(core)).toMatchObject({ status: "ok", detail: expect.stringContaining("Dead events: 1.") });
  });

  it("is queued again by a replay, behind all others and with no counted attempts", async () => {
    await using core = await startWithDead();
    await core.queue("newer");
    expect(await core.core.systemEvents.replay(core.event.eventId, "ada")).toMatchObject({
      eventId: core.event.eventId,
      status: "queued",
      attempts: 0,
      text: "poison",
      endedAt: undefined,
    });
    await core.beat();
    await core.endAll();
    expect(core.handed().at(-1)).toEqual(["newer", "poison"]);
    expect(await core.read(core.event)).toMatchObject({ status: "handled" });
    expect(core.store.stats()).toMatchObject({ eventsQueued: 0, eventsDead: 0 });
  });

  it("has the replay in the timeline of its delivery", async () => {
    await using core = await startWithDead();
    await core.core.systemEvents.replay(core.event.eventId, "ada");
    const { steps } = (await core.store.getDelivery("dlv_1")) ?? {};
    expect(steps?.map(({ name }) => name)).toEqual(["event.returned", "event.returned", "event.requeued"]);
    expect(steps?.at(-1)?.detail).toBe('{"by":"ada"}');
  });

  it("is queued again even if the timeline cannot be written", async () => {
    const addDeliveryStep = () => Promise.reject(new GatewayError("store-unavailable"));
    await using core = await startWithDead({ wrapStore: () => ({ addDeliveryStep }) });
    expect(await core.core.systemEvents.replay(core.event.eventId, "ada")).toMatchObject({ status: "queued" });
  });

  it("is handled at once when it is replayed for an agent whose heartbeat is off", async () => {
    await using core = await startWithDead();
    await core.core.reconfigure(core.settingsWith([{ name: "main", heartbeatMs: undefined }]));
    await core.core.systemEvents.replay(core.event.eventId, "ada");
    await core.settle();
    await core.endAll();
    expect(await core.read(core.event)).toMatchObject({ status: "handled" });
  });

  it("is the only one that can be replayed: other events are refused, and so is one of a removed agent", async () => {
    await using core = await startWithDead();
    const replay = ({ eventId }: { eventId: string }) => core.core.systemEvents.replay(eventId, "ada");
    const queued = await core.queue("queued");
    expect(await nameOf(() => replay(queued))).toBe("event-not-dead");
    await core.beat();
    await core.endAll();
    expect(await nameOf(() => replay(queued))).toBe("event-not-dead");
    expect(await nameOf(() => replay({ eventId: "evt_none" }))).toBe("event-not-found");
    await core.core.reconfigure(core.settingsWith([{ name: "other" }]));
    expect(await nameOf(() => replay(core.event))).toBe("agent-not-found");
    expect(await core.read(core.event)).toMatchObject({ status: "dead" });
  });
});
