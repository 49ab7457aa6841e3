import { describe, expect, it } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import type { Outcome } from "#channels/channel.ts";
import { replayNotification } from "#core/outbox/operator-calls.ts";
import { eventsOf } from "#kit/notifications.ts";
import { NO_POLICY } from "#store/policy.ts";
import type { HealthPart, Store } from "#store/store.ts";
import { createPlayedEndpoint, DELIVERED, failing, GONE, type PlayedEndpoint } from "#test/channels/played.ts";
import { START } from "#test/harness/clock.ts";
import { SHARED } from "#test/stores/shared-alone.ts";
import { type CoreOptions, startCore } from "./start-core.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

function settingsOf(endpoints: Record<string, PlayedEndpoint>) {
  return {
    notify: new Map(Object.entries(endpoints).map(([name, { endpoint }]) => [name, endpoint])),
    policy: {
      ...NO_POLICY,
      notify: Object.keys(endpoints).map((name) => ({ name, events: eventsOf("turn.*"), agents: undefined })),
      notifications: 100,
    },
  };
}

/** The core with endpoints that a test controls. Turns are answered at once. */
async function startNotifying(endpoints: Record<string, PlayedEndpoint>, options: CoreOptions = {}) {
  const backend = options.backend ?? createEchoBackend();
  const core = await startCore({ ...options, backend, settings: { ...settingsOf(endpoints), ...options.settings } });
  return {
    ...core,
    /** Runs a turn, whose end is an event. Returns its id. */
    turn: async (hops = 0, text = "hello"): Promise<string> => {
      const { turnId } = await core.start({ session: `chat:${core.clock.now()}`, text, hops });
      await core.clock.settle();
      return turnId;
    },
    listed: async () => (await core.store.listNotifications({ limit: 100 })).items,
    healthOf: async (name: string) => {
      await core.clock.advance(1_000);
      return (await core.core.health.read()).parts.find((part) => part.name === `notify.${name}`);
    },
    /** Reloads with a configuration with these endpoints. */
    reconfigure: async (next: Record<string, PlayedEndpoint>) => {
      await core.core.reconfigure({ ...core.settingsWith([{ name: "main", backend }]), ...settingsOf(next) });
      await core.clock.settle();
    },
  };
}

function eventIdOf(turnId: string): string {
  return `ntf_${turnId.slice("turn_".length)}`;
}

describe("a notification", () => {
  it("is sent once to each endpoint that has the event", async () => {
    const [ops, other] = [createPlayedEndpoint([DELIVERED]), createPlayedEndpoint([DELIVERED])];
    await using core = await startNotifying({ ops, other });
    const turnId = await core.turn();
    expect(ops.calls.map(({ sent }) => sent)).toEqual([
      {
        eventId: eventIdOf(turnId),
        type: "turn.completed",
        at: START,
        hops: 0,
        data: expect.stringContaining(`"turnId":"${turnId}"`),
      },
    ]);
    expect(other.calls.map(({ sent }) => sent)).toEqual(ops.calls.map(({ sent }) => sent));
    expect(await core.listed()).toMatchObject([
      { endpoint: "other", state: "delivered", attempts: 1, code: 200, endedAt: START },
      { endpoint: "ops", state: "delivered" },
    ]);
    await core.clock.block(DAY);
    expect(ops.calls).toHaveLength(1);
    expect(await core.logged("notification.delivered")).toMatchObject([
      { endpoint: "ops", notificationId: `${eventIdOf(turnId)}.ops`, attempt: 1 },
      { endpoint: "other" },
    ]);
    expect(core.figures()).toContain('gateway_notifications_total{endpoint="ops",outcome="delivered"} 1');
  });

  it("has the reply only for an endpoint that wants it, and null once the turn is deleted", async () => {
    const full = createPlayedEndpoint([failing(), DELIVERED], true);
    const bare = createPlayedEndpoint([DELIVERED]);
    await using core = await startNotifying({ full, bare });
    await core.turn(0, "A secret plan.");
    await core.store.deleteSession(`chat:${START}`, core.clock.now());
    await core.clock.advance(5_000);
    const repliesOf = ({ calls }: PlayedEndpoint) => calls.map(({ sent }) => JSON.parse(sent.data).reply);
    expect(repliesOf(full)).toEqual(["A secret plan.", null]);
    expect(bare.calls[0]?.sent.data).not.toContain("secret plan");
  });

  it("is retried with the same id at growing intervals, and then delivered", async () => {
    const ops = createPlayedEndpoint([...Array.from({ length: 5 }, () => failing()), DELIVERED]);
    await using core = await startNotifying({ ops });
    await core.turn();
    const waits: number[] = [];
    while (ops.calls.length < 6) {
      const [{ state, nextAt = 0 } = {}] = await core.listed();
      expect(state).toBe("retrying");
      waits.push(nextAt - core.clock.now());
      await core.clock.block(waits.at(-1) as number);
    }
    expect(new Set(ops.calls.map(({ sent }) => JSON.stringify(sent))).size).toBe(1);
    for (const [n, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual((5_000 * 2 ** n) / 2);
      expect(wait).toBeLessThanOrEqual(5_000 * 2 ** n);
    }
    expect(await core.listed()).toMatchObject([{ state: "delivered", attempts: 6, code: 200 }]);
  });

  it("fails after a day without an accepted attempt", async () => {
    const ops = createPlayedEndpoint(Array.from({ length: 200 }, () => failing(HOUR)));
    await using core = await startNotifying({ ops });
    await core.turn();
    for (let hours = 0; hours < 24; hours++) await core.clock.block(HOUR);
    expect(await core.listed()).toMatchObject([
      { state: "failed", code: 503, reason: "HTTP 503; retried for one day" },
    ]);
    expect(core.store.stats().notifications).toEqual({});
  });

  it("is sent before one that failed, so that one that always fails delays no other", async () => {
    const ops = createPlayedEndpoint([failing(), DELIVERED, failing(), DELIVERED]);
    await using core = await startNotifying({ ops });
    const turnIds: string[] = [];
    for (let n = 0; n < 3; n++) {
      turnIds.push(await core.turn());
      await core.clock.advance(1);
    }
    await core.clock.advance(5_000);
    const [first, second, third] = turnIds.map(eventIdOf);
    const sent = ops.calls.map(({ sent }) => sent.eventId);
    expect(sent.slice(0, 3)).toEqual([first, second, third]);
  });

  it("MUST cost a dead endpoint few attempts, one line of the log, and a day at most", async () => {
    const dead = createPlayedEndpoint(Array.from({ length: 500 }, () => failing()));
    await using core = await startNotifying({ dead });
    for (let n = 0; n < 80; n++) {
      await core.turn();
      await core.clock.advance(1);
    }
    for (let minutes = 0; minutes < 60; minutes++) await core.clock.advance(60_000);
    expect(dead.calls.length).toBeLessThan(20);
    expect(await core.logged("notify.failing")).toMatchObject([
      { endpoint: "dead", reason: "HTTP 503", level: "warn" },
    ]);
    expect(new Set((await core.logged("notification.retried")).map(({ level }) => level))).toEqual(new Set(["debug"]));
    for (let hours = 0; hours < 26; hours++) await core.clock.advance(HOUR);
    const [{ attempts, reason } = {}, ...others] = (await core.listed()).filter(({ attempts }) => attempts === 0);
    expect({ attempts, reason }).toEqual({ attempts: 0, reason: "waited for one day" });
    expect(others.length).toBeGreaterThan(5);
    expect(core.store.stats().notifications).toEqual({});
  });

  it("MUST not change the state of an endpoint by the late answer of its earlier address", async () => {
    const before = createPlayedEndpoint();
    const after = createPlayedEndpoint([DELIVERED, DELIVERED]);
    await using core = await startNotifying({ ops: before });
    await core.turn();
    await core.reconfigure({ ops: after });
    before.calls[0]?.answer(GONE);
    await core.clock.settle();
    expect(core.core.outbox.stopped()).toEqual([]);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
    expect(after.calls).toHaveLength(1);
    expect(await core.listed()).toMatchObject([{ state: "delivered", attempts: 2 }]);
  });

  it("of a change of an agent is also sent when a loop found it", async () => {
    const ops = createPlayedEndpoint([DELIVERED]);
    const policy = { ...NO_POLICY, notify: [{ name: "ops", events: eventsOf("agent.*"), agents: undefined }] };
    // biome-ignore lint/correctness/useYield: it fails before its first chunk.
    const run = async function* () {
      throw new Error("broken");
    };
    const broken: Backend = { ...createEchoBackend(), run };
    await using core = await startNotifying({ ops }, { backend: broken, settings: { policy } });
    await core.turn(3);
    expect(ops.calls.map(({ sent }) => [sent.type, sent.hops])).toEqual([["agent.failing", 2]]);
  });

  it("is not delayed by endpoints that hang", async () => {
    const hanging = Object.fromEntries(Array.from({ length: 5 }, (_, n) => [`h${n}`, createPlayedEndpoint()]));
    const live = createPlayedEndpoint(Array.from({ length: 10 }, () => DELIVERED));
    await using core = await startNotifying({ ...hanging, live });
    for (let n = 0; n < 10; n++) {
      await core.turn();
      await core.clock.advance(1);
    }
    expect(live.calls).toHaveLength(10);
    expect(new Set(Object.values(hanging).map(({ waiting }) => waiting.size))).toEqual(new Set([4]));
  });

  it("MUST not be sent after 3 hops, so that a receiver that calls the gateway again makes no endless loop", async () => {
    const ops = createPlayedEndpoint([DELIVERED]);
    await using core = await startNotifying({ ops });
    await core.turn(2);
    expect(ops.calls.map(({ sent }) => sent.hops)).toEqual([2]);
    await core.clock.advance(1);
    await core.turn(3);
    expect(ops.calls).toHaveLength(1);
    const reason = "it passed through 3 or more announcements or agents, as in a loop";
    expect((await core.listed())[0]).toMatchObject({ state: "failed", reason });
  });

  it("fails, with the reason, if its endpoint was removed from the configuration", async () => {
    const ops = createPlayedEndpoint([failing()]);
    await using core = await startNotifying({ ops });
    await core.turn();
    await core.reconfigure({});
    await core.clock.advance(5_000);
    expect(await core.listed()).toMatchObject([
      { state: "failed", attempts: 1, code: 503, reason: "the endpoint was removed from the configuration" },
    ]);
  });

  it("waits on a shared store for another gateway that may have its endpoint", async () => {
    const ops = createPlayedEndpoint([failing()]);
    await using core = await startNotifying({ ops }, { wrapStore: () => ({ shared: SHARED }) });
    await core.turn();
    await core.clock.advance(HOUR);
    await core.reconfigure({});
    expect(await core.listed()).toMatchObject([{ state: "retrying" }]);
  });

  it("is due at once after a replay", async () => {
    const ops = createPlayedEndpoint([failing(HOUR), DELIVERED, DELIVERED]);
    await using core = await startNotifying({ ops });
    const id = `${eventIdOf(await core.turn())}.ops`;
    await core.reconfigure({ ops });
    expect(ops.calls).toHaveLength(1);
    for (const sent of [2, 3]) {
      await core.store.replayNotification(id, { now: core.clock.now() });
      await core.clock.settle();
      expect(ops.calls).toHaveLength(sent);
    }
    expect(new Set(ops.calls.map(({ sent }) => sent.eventId)).size).toBe(1);
  });

  it("is sent at once after an operator's replay, also while its endpoint is paused", async () => {
    const ops = createPlayedEndpoint([failing(HOUR), DELIVERED]);
    await using core = await startNotifying({ ops });
    const id = `${eventIdOf(await core.turn())}.ops`;
    await replayNotification(core.core, id);
    await core.clock.settle();
    expect(ops.calls).toHaveLength(2);
    expect(await core.listed()).toMatchObject([{ state: "delivered" }]);
  });

  it("is reported when the gateway stops before it was delivered", async () => {
    await using core = await startNotifying({ ops: createPlayedEndpoint([failing()]) });
    await core.turn();
    await core.core.outbox.drain(1_000);
    expect(await core.logged("notifications.left")).toMatchObject([{ left: 1, stored: false, level: "warn" }]);
  });
});

describe("an endpoint that answers 410", () => {
  it("is stopped until the configuration is applied again, and its notifications wait", async () => {
    const ops = createPlayedEndpoint([GONE, DELIVERED, DELIVERED]);
    const other = createPlayedEndpoint([DELIVERED, DELIVERED]);
    await using core = await startNotifying({ ops, other });
    expect(await core.healthOf("ops")).toEqual({ name: "notify.ops", status: "ok", detail: null });
    await core.turn();
    await core.clock.advance(HOUR);
    await core.turn();
    expect([ops.calls.length, other.calls.length]).toEqual([1, 2]);
    expect((await core.listed()).filter(({ endpoint }) => endpoint === "ops")).toMatchObject([
      { state: "waiting", attempts: 0 },
      { state: "waiting", attempts: 1, code: 410, reason: "410 Gone" },
    ]);
    expect(await core.logged("notify.stopped")).toMatchObject([{ endpoint: "ops", reason: "410 Gone", level: "warn" }]);
    expect(core.core.outbox.stopped()).toEqual(["ops"]);
    expect(await core.healthOf("ops")).toEqual({
      name: "notify.ops",
      status: "degraded",
      detail: "Stopped: the receiver answered 410 Gone. 2 notifications are waiting.",
    });
    await core.reconfigure({ ops, other });
    expect(ops.calls).toHaveLength(3);
    expect(new Set((await core.listed()).map(({ state }) => state))).toEqual(new Set(["delivered"]));
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
  });

  it("fails notifications that have waited for a day", async () => {
    const ops = createPlayedEndpoint([GONE]);
    await using core = await startNotifying({ ops });
    await core.turn();
    await core.clock.block(DAY - HOUR);
    await core.turn();
    await core.clock.block(HOUR + 600_000);
    await core.clock.block(600_000);
    expect(ops.calls).toHaveLength(1);
    expect(await core.listed()).toMatchObject([
      { state: "waiting" },
      { state: "failed", reason: "410 Gone; waited for one day", attempts: 1, code: 410 },
    ]);
  });

  it("is degraded while it is stopped, whatever another attempt returns", async () => {
    const ops = createPlayedEndpoint();
    await using core = await startNotifying({ ops });
    await core.turn();
    await core.clock.advance(1);
    await core.turn();
    ops.calls[0]?.answer(GONE);
    await core.clock.settle();
    ops.calls[1]?.answer(DELIVERED);
    expect(await core.healthOf("ops")).toMatchObject({
      status: "degraded",
      detail: "Stopped: the receiver answered 410 Gone. 1 notification is waiting.",
    });
  });
});

describe("an endpoint whose last delivery failed", () => {
  it("is degraded in health", async () => {
    await using core = await startNotifying({ ops: createPlayedEndpoint([failing(), DELIVERED]) });
    await core.turn();
    expect(await core.healthOf("ops")).toEqual({
      name: "notify.ops",
      status: "degraded",
      detail: "Last delivery failed: HTTP 503. 1 notification is waiting.",
    });
    await core.clock.advance(5_000);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
  });
});

describe("an endpoint for which as many notifications wait as may", () => {
  it("is degraded in health, and its oldest notifications fail", async () => {
    const ops = createPlayedEndpoint([failing(HOUR)]);
    const policy = { ...settingsOf({ ops }).policy, notifications: 2 };
    await using core = await startNotifying({ ops }, { settings: { policy } });
    for (let n = 0; n < 4; n++) {
      await core.turn();
      await core.clock.advance(1);
    }
    expect((await core.listed()).map(({ state }) => state)).toEqual(["waiting", "failed", "failed", "retrying"]);
    const last = "This is the maximum in limits.notifications: with each further one, the oldest fails.";
    expect(await core.healthOf("ops")).toMatchObject({
      status: "degraded",
      detail: `Last delivery failed: HTTP 503. 2 notifications are waiting. ${last}`,
    });
  });
});

describe("a test event", () => {
  it.each<[Outcome, object]>([
    [DELIVERED, { delivered: true, status: 200, reason: null, ms: 0 }],
    [failing(), { delivered: false, status: 503, reason: "HTTP 503", ms: 0 }],
    [
      { kind: "failed", code: undefined, reason: "no answer", retryAfterMs: undefined },
      { delivered: false, status: null, reason: "no answer", ms: 0 },
    ],
  ])("is sent once, and its outcome is returned: %j", async (outcome, result) => {
    const ops = createPlayedEndpoint([outcome]);
    await using core = await startNotifying({ ops });
    expect(await core.core.outbox.testEndpoint("ops")).toEqual(result);
    await core.clock.advance(DAY);
    expect(ops.calls.map(({ sent }) => sent)).toEqual([
      {
        eventId: expect.stringMatching(/^ntf_[0-9A-Z]{26}_test$/),
        type: "notify.test",
        at: START,
        data: '{"endpoint":"ops"}',
        hops: 0,
      },
    ]);
    expect(await core.listed()).toEqual([]);
  });

  it("reaches a stopped endpoint, and does not start it", async () => {
    const ops = createPlayedEndpoint([GONE, DELIVERED]);
    await using core = await startNotifying({ ops });
    await core.turn();
    expect(await core.core.outbox.testEndpoint("ops")).toMatchObject({ delivered: true });
    expect(core.core.outbox.stopped()).toEqual(["ops"]);
    expect(await core.core.outbox.testEndpoint("other")).toBeUndefined();
    expect([core.core.outbox.hasEndpoint("ops"), core.core.outbox.hasEndpoint("other")]).toEqual([true, false]);
  });
});

describe("a change of the health", () => {
  it("is reported to endpoints that have the event, except for the health of endpoints", async () => {
    const ops = createPlayedEndpoint([failing(), ...Array.from({ length: 10 }, () => DELIVERED)]);
    let part: HealthPart = { name: "memory", status: "ok", detail: null };
    const policy = { ...NO_POLICY, notify: [{ name: "ops", events: eventsOf("*"), agents: undefined }] };
    await using core = await startNotifying({ ops }, { settings: { policy }, processHealth: () => [part] });
    await core.turn();
    expect(await core.healthOf("ops")).toMatchObject({ status: "degraded" });
    await core.clock.advance(5_000);
    expect(await core.healthOf("ops")).toMatchObject({ status: "ok" });
    const changes = async () => (await core.listed()).filter(({ type }) => type === "health.changed").reverse();
    expect(await changes()).toEqual([]);
    part = { name: "memory", status: "degraded", detail: "short" };
    await core.healthOf("ops");
    part = { name: "memory", status: "ok", detail: null };
    await core.healthOf("ops");
    const { node: nodeId } = core.core;
    const id = nodeId.slice("node_".length);
    const degraded = [{ name: "memory", status: "degraded", detail: "short" }];
    const found = (await changes()).map(({ eventId, data }) => ({ eventId, ...JSON.parse(data) }));
    expect(found).toEqual([
      { eventId: `ntf_${id}_1`, nodeId, status: "degraded", parts: degraded },
      { eventId: `ntf_${id}_2`, nodeId, status: "ok", parts: [] },
    ]);
  });

  it("MUST be stored once each, in order, although the store is slow or fails", async () => {
    const ops = createPlayedEndpoint(Array.from({ length: 10 }, () => DELIVERED));
    let part: HealthPart = { name: "memory", status: "ok", detail: null };
    const answers: (() => void)[] = [];
    const noted: string[] = [];
    const wrapStore = (store: Store): Partial<Store> => ({
      notifyEvent: async (event) => {
        noted.push(event.eventId);
        if (noted.length === 1) throw new Error("The store failed.");
        if (noted.length === 2) await new Promise<void>((resolve) => answers.push(resolve));
        await store.notifyEvent(event);
      },
    });
    const policy = { ...NO_POLICY, notify: [{ name: "ops", events: eventsOf("*"), agents: undefined }] };
    await using core = await startNotifying({ ops }, { settings: { policy }, processHealth: () => [part], wrapStore });
    for (const status of ["degraded", "degraded", "ok"] as const) {
      part = { name: "memory", status, detail: null };
      await core.healthOf("ops");
    }
    answers[0]?.();
    await core.clock.settle();
    const id = core.core.node.slice("node_".length);
    expect(noted).toEqual([1, 1, 2].map((n) => `ntf_${id}_${n}`));
    const found = (await core.listed()).filter(({ type }) => type === "health.changed");
    expect(found.map(({ data }) => JSON.parse(data).status)).toEqual(["ok", "degraded"]);
  });

  it("costs nothing without an endpoint that has the event", async () => {
    let part: HealthPart = { name: "memory", status: "ok", detail: null };
    let calls = 0;
    const wrapStore = () => ({ notifyEvent: async () => void calls++ });
    await using core = await startNotifying({}, { processHealth: () => [part], wrapStore });
    part = { name: "memory", status: "degraded", detail: "short" };
    await core.healthOf("ops");
    expect(calls).toBe(0);
  });
});
