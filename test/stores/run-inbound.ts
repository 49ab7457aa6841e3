import { expect } from "vitest";
import type { AnnouncementClaim, BeatClaim, DeliveryAnswer, DeliveryStep, EventStatus } from "#store/store.ts";
import type { Random } from "#test/harness/random.ts";
import { eventOrder, news, STREAM_KEEP, waiting } from "./inbound.ts";
import { type InboundModel, type ModelDelivery, RING_LIMITS } from "./model-inbound.ts";
import { deliveryOf, LEASE_MS, refusal, type World } from "./world.ts";

const AGENTS = ["one", "two"];
const CHANNELS = ["ops", "slow"];
const KEYS = ["e1", "e2", "e3"];
const TEXTS = ["hello", "ü 漢 🙂", "\u0000\r\n", "x".repeat(5_000)];
const ANSWERS = ["repeated", "unmatched", "refused", "challenge"] as const satisfies readonly DeliveryAnswer[];
const OPEN = 40;

/** Random steps with what comes in, for a store and its model; `run-model.ts` takes them among its own. */
export const createInboundRun = (world: World, random: Random, model: InboundModel) => {
  const { store, clock } = world;
  /** Every claim ever handed out; most do not hold any more. */
  const beatClaims: BeatClaim[] = [];
  const announcementClaims: AnnouncementClaim[] = [];
  const some = <T>(made: readonly T[]): T => random.pick(random.chance(0.8) ? made.slice(-3) : made);
  const delivery = (answer: DeliveryAnswer = "accepted") => ({
    ...deliveryOf(world.newId("dlv"), random.pick(TEXTS)),
    answer,
    mapping: random.pick([undefined, "one"]),
    steps: random.pick([[], [{ at: 1, name: "token.accepted", detail: "{}" }]]),
  });

  const queueEvent = async () => {
    const order = eventOrder(world, {
      agent: random.pick(AGENTS),
      text: random.pick(TEXTS),
      metadata: random.pick([undefined, "{}"]),
      beatNow: random.chance(0.1),
      delivery: random.chance(0.5) ? delivery() : undefined,
      recorder: RING_LIMITS,
      limits: { events: OPEN },
    });
    const hash = random.chance(0.8) ? "same" : "other";
    if (random.chance(0.1)) {
      order.idempotency = { key: random.pick(KEYS), hash, expiresAt: Number.MAX_SAFE_INTEGER };
    }
    const expected = model.check(order);
    const call = store.queueEvent(order);
    expect(await refusal(call)).toBe(typeof expected === "string" ? expected : "not refused");
    if (typeof expected === "string") return;
    const { event, replayed } = await call;
    expect(replayed).toBe(expected !== undefined);
    expect(event).toEqual(expected ?? model.queue(order, event.ordinal, clock.monotonic()));
  };

  const requeueEvent = async () => {
    if (model.events.size === 0) return;
    const { eventId, status, agent } = random.pick([...model.events.values()]).event;
    const beatNow = random.chance(0.2);
    const answer = await store.requeueEvent(eventId, { now: clock.now(), beatNow, streamKeep: STREAM_KEEP });
    model.requeue(eventId, answer?.ordinal ?? 0);
    if (status === "dead" && beatNow) model.ask(agent, clock.monotonic());
    expect(answer).toEqual(model.events.get(eventId)?.event);
  };

  const failQueuedEvents = async () => {
    const agent = random.pick(AGENTS);
    const end = { now: clock.now(), streamKeep: STREAM_KEEP, limit: random.below(4) };
    const count = await store.failQueuedEvents(agent, "gone", end);
    expect(count).toBe(model.giveUp(agent, "gone", end.now, end.limit));
  };

  const planBeat = async () => {
    const agent = random.pick(AGENTS);
    const plan = { delayMs: random.pick([undefined, 0, 50, 7_000]), soonest: random.chance(0.5) };
    await store.planBeat(agent, { now: clock.now(), ...plan });
    const beat = model.beatOf(agent);
    const due = plan.delayMs === undefined ? undefined : clock.monotonic() + plan.delayMs;
    if (beat.isAsked) return;
    if (!plan.soonest || (due !== undefined && due < (beat.due ?? Infinity))) beat.due = due;
  };

  const claimBeats = async () => {
    const time = clock.monotonic();
    const agents = random.chance(0.5) ? AGENTS : [random.pick(AGENTS)];
    const { beats, nextDueInMs } = await store.claimBeats({
      now: clock.now(),
      node: "node_a",
      leaseMs: LEASE_MS,
      agents,
    });
    const free = agents
      .map((agent) => ({ agent, beat: model.beatOf(agent) }))
      .filter(({ agent, beat }) => beat.fence === undefined && !model.paused.has(agent));
    const isDue = ({ beat }: (typeof free)[0]) => (beat.due ?? Infinity) <= time;
    expect(beats.map(({ agent }) => agent).sort()).toEqual(
      free
        .filter(isDue)
        .map(({ agent }) => agent)
        .sort(),
    );
    const later = free.filter((of) => !isDue(of)).flatMap(({ beat }) => beat.due ?? []);
    expect(nextDueInMs).toBe(later.length > 0 ? Math.min(...later) - time : undefined);
    const newest = Math.max(0, ...model.inOrder().map(({ event }) => event.ordinal));
    for (const claim of beats) {
      expect(claim.through).toBeGreaterThanOrEqual(newest);
      Object.assign(model.beatOf(claim.agent), { ...model.claimed(time, claim.fence), due: undefined, isAsked: false });
      beatClaims.push(claim);
    }
  };

  const setPaused = async () => {
    const [agent, paused] = [random.pick(AGENTS), random.chance(0.3)];
    const isChanged = model.setPaused(agent, paused, clock.now());
    const answer = await store.setPaused(agent, { paused, now: clock.now(), streamKeep: STREAM_KEEP });
    expect(answer).toEqual({ pausedAt: model.paused.get(agent), isChanged });
  };

  const endBeat = async () => {
    if (beatClaims.length === 0) return;
    const claim = some(beatClaims);
    const beat = model.beatOf(claim.agent);
    const holds = beat.fence === claim.fence;
    if (random.chance(0.3)) {
      expect(await store.extendBeat(claim, LEASE_MS)).toBe(holds);
      if (holds) beat.leaseEnds = clock.monotonic() + LEASE_MS;
      return;
    }
    const ran = random.pick([undefined, { events: 1, turnIds: ["turn_x"] }]);
    const end = { now: clock.now(), delayMs: random.pick([undefined, 50, 7_000]), ran, streamKeep: STREAM_KEEP };
    const answer = await store.endBeat(claim, end);
    if (!holds) return expect(answer).toBe(false);
    const delayMs = beat.isAsked ? 0 : end.delayMs;
    const nextAt = delayMs === undefined ? undefined : clock.now() + delayMs;
    expect(answer).toEqual({ agent: claim.agent, nextAt, running: false });
    Object.assign(beat, { fence: undefined, due: delayMs === undefined ? undefined : clock.monotonic() + delayMs });
    if (ran) model.ran(claim.agent, ran, nextAt);
  };

  const claimAnnouncements = async () => {
    const time = clock.monotonic();
    const places = new Map(CHANNELS.map((channel) => [channel, random.below(3)]));
    const limit = random.below(4);
    const freeOf = (channel: string) => places.get(channel) ?? 0;
    const answer = await store.claimAnnouncements({ node: "node_a", leaseMs: LEASE_MS, limit, freeOf });
    const left = new Map(places);
    const expected = model.claimable(time).filter(({ of }) => {
      left.set(of.channel, (left.get(of.channel) ?? 0) - 1);
      return (left.get(of.channel) ?? 0) >= 0;
    });
    expect(answer.announcements.map(({ announcement }) => announcement)).toEqual(
      expected.slice(0, limit).map(({ of }) => of),
    );
    const later = [...model.announcements.values()].filter(({ fence, due }) => fence === undefined && due > time);
    const next = Math.min(...later.map(({ due }) => due));
    expect(answer.nextDueInMs).toBe(later.length > 0 ? next - time : undefined);
    for (const { claim } of answer.announcements) {
      Object.assign(model.announcements.get(claim.turnId) ?? {}, model.claimed(time, claim.fence));
      announcementClaims.push(claim);
    }
  };

  const endAnnouncement = async () => {
    if (announcementClaims.length === 0) return;
    const claim = some(announcementClaims);
    const of = model.announcements.get(claim.turnId);
    const retryInMs = random.pick([undefined, 0, 50, 7_000]);
    const step: DeliveryStep = { at: clock.now(), name: "announcement.retried", detail: undefined };
    const holds = of !== undefined && of.fence === claim.fence;
    expect(await store.endAnnouncement(claim, { retryInMs, step })).toBe(holds);
    if (!holds) return;
    addStep(model.deliveries.get(of.of.deliveryId ?? ""), step);
    if (retryInMs === undefined) {
      model.announcements.delete(claim.turnId);
    } else {
      of.of.attempts++;
      Object.assign(of, { fence: undefined, due: clock.monotonic() + retryInMs });
    }
  };

  const recordDelivery = async () => {
    const recorded = delivery(random.pick(ANSWERS));
    const [turnId] = random.chance(0.2) ? [world.newId("turn")] : [];
    await store.recordDelivery(recorded, RING_LIMITS, { turnId });
    // A turn that nobody knows is as one that was erased.
    model.keep(recorded, { turnId }, true);
    const of = model.deliveries.get(recorded.deliveryId);
    if (of && turnId !== undefined) of.isErased = true;
  };

  const addStep = (of: ModelDelivery | undefined, step: DeliveryStep): void => {
    if (of) of.delivery = { ...of.delivery, steps: [...of.delivery.steps, step] };
  };
  const addDeliveryStep = async () => {
    const id = random.chance(0.9) ? random.pick(["", ...model.deliveries.keys()]) : "dlv_unknown";
    const step: DeliveryStep = { at: clock.now(), name: "turn.returned", detail: random.pick([undefined, "{}"]) };
    await store.addDeliveryStep(id, step);
    addStep(model.deliveries.get(id), step);
  };

  const compareEvents = async (when: string) => {
    const newest = model.inOrder().reverse();
    for (const { event } of newest) expect(await store.getEvent(event.eventId), when).toEqual(event);
    for (const agent of AGENTS) {
      const expected = model.waiting(agent).map(({ event }) => event.eventId);
      expect(await waiting(world, { agent }), when).toEqual(expected);
      expect(store.agentCounts(agent).waitingEvents, when).toBe(expected.length);
      expect(store.agentCounts(agent).pausedAt, when).toBe(model.paused.get(agent));
      const beat = model.beatOf(agent);
      const nextAt = beat.due === undefined ? undefined : clock.now() + beat.due - clock.monotonic();
      expect(await store.readBeat(agent), when).toEqual({ agent, nextAt, running: beat.fence !== undefined });
    }
    const status = random.pick<EventStatus>(["queued", "handled", "dead"]);
    const { items } = await store.listEvents({ limit: 1_000, status });
    const listed = newest.filter(({ event }) => event.status === status).map(({ event }) => event);
    expect(items, when).toEqual(listed);
    const told = (await news(world)).map((one) => JSON.stringify(one)).filter((one) => !one.includes("reloaded"));
    expect(told.sort(), when).toEqual([...model.news].sort());
  };

  const compareDeliveries = async (when: string) => {
    const { items } = await store.listDeliveries({ limit: 1_000 });
    const expected = [...model.deliveries.values()].reverse();
    expect(
      items.map(({ deliveryId, outcome }) => `${deliveryId} ${outcome}`),
      when,
    ).toEqual(expected.map((of) => `${of.delivery.deliveryId} ${model.outcomeOf(of)}`));
    for (const { delivery, work, isErased } of expected) {
      const { turnId, eventId } = work;
      const names = delivery.steps.map(({ name }) => name);
      const kept = await store.getDelivery(delivery.deliveryId);
      expect(kept, when).toMatchObject({ turnId, eventId, answer: delivery.answer, mapping: delivery.mapping });
      expect(
        kept?.steps.map(({ name }) => name),
        when,
      ).toEqual(names);
      expect(kept?.body, when).toBe(isErased ? undefined : delivery.body);
    }
    const { items: found } = await store.listDeliveries({ limit: 1_000, mapping: "one", outcome: "refused" });
    const refused = expected.filter(({ delivery }) => delivery.mapping === "one" && delivery.answer === "refused");
    expect(
      found.map(({ deliveryId }) => deliveryId),
      when,
    ).toEqual(refused.map(({ delivery }) => delivery.deliveryId));
  };

  return {
    often: { queueEvent },
    seldom: {
      requeueEvent,
      failQueuedEvents,
      planBeat,
      claimBeats,
      endBeat,
      setPaused,
      claimAnnouncements,
      endAnnouncement,
      recordDelivery,
      addDeliveryStep,
    },
    delivery,
    /** Some events that wait, for a turn of their agent to take. */
    pickEvents: (agent: string): string[] => {
      const ids = model.waiting(agent).map(({ event }) => event.eventId);
      return ids.filter(() => random.chance(0.5)).slice(0, 5);
    },
    pickChannel: (): string => random.pick(CHANNELS),
    async compare(when: string): Promise<void> {
      const dead = [...model.events.values()].filter(({ event }) => event.status === "dead").length;
      const counts = { eventsQueued: model.open(), eventsDead: dead, announcements: model.announcements.size };
      expect(store.stats(), when).toMatchObject({ ...counts, deliveries: model.deliveries.size });
      await compareEvents(when);
      await compareDeliveries(when);
    },
  };
};
