import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { EVENT_TYPES } from "#kit/notifications.ts";
import { createMemoryStore } from "#store/memory/memory.ts";
import { NO_POLICY } from "#store/policy.ts";
import type {
  Claim,
  ClaimedTurn,
  DeliveryAnswer,
  DeliveryResult,
  Notification,
  OutgoingClaim,
  Share,
  Store,
  StorePolicy,
  Turn,
} from "#store/store.ts";
import { createRandom, type Random } from "#test/harness/random.ts";
import { allAnswers } from "./all-answers.ts";
import { budgetRule, RESERVED, RESERVES } from "./budgets.ts";
import { startCompaction } from "./compactions.ts";
import { groupOf } from "./groups.ts";
import { eventOrder, STREAM_KEEP, startBeat } from "./inbound.ts";
import { orderOf, PLAN, startOf } from "./schedules.ts";
import { recountShares, sharesOf } from "./shares.ts";
import { deliveryOf, type Engine, LEASE_MS, LOST, openWorld, silent, used, usedMore, type World } from "./world.ts";

const AGENTS = ["one", "two"];
const SESSIONS = ["chat:a", "chat:b", "chat:c", "webhook:d", ...AGENTS.map((agent) => `agent:${agent}:main`)];
const CHANNELS = ["ops", "slow"] as const;
const NOTIFIED = ["notify:all", "notify:one.ü"];
/** One that counts everything, and some that are soon spent. */
const BUDGETS = [
  { name: "all", per: "month", tokens: 1e12, cost: 1e15 },
  // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
  { name: "ci", keys: ["ci"], tokens: 3_000, then: "pause" },
  { name: "two", agents: ["two"], surfaces: ["rest", "heartbeat"], tokens: 500 },
] as const;
const POLICY: StorePolicy = {
  ...NO_POLICY,
  budgets: BUDGETS.map(budgetRule),
  reserves: RESERVES,
  notify: [
    { name: "all", events: EVENT_TYPES, agents: undefined },
    { name: "one.ü", events: ["turn.failed", "event.dead", "health.changed"], agents: ["one"] },
  ],
  notifications: 10,
};
const KEYS = ["a", "b", "c"];
const TEXTS = ["hello", "ü 漢 🙂", "\u0000\ufeff\r\n", "x".repeat(5_000)];
const ANSWERS = ["repeated", "unmatched", "refused", "challenge"] as const satisfies readonly DeliveryAnswer[];
/** The retention of sessions, from one sweep to the next. */
const KEPT_MS = [Number.MAX_SAFE_INTEGER, 60_000, 10_000, 0];
/** Now and then, the share of a caller is used up. */
const LIMITS = { turnsPerSession: 5, messagesPerSession: 40, turns: 60, storeBytes: 1e6, share: 0.1 };
const RECORDER = { entries: 20, refused: 5, bytes: 1e9 };

/**
 * Runs the same `steps` random calls on a store and on one in memory: all engines have the same rules, so both must give the same answers and have
 * the same content. The totals of a store must match its records.
 */
export async function runRandomSteps(engine: Engine, seed: number, steps: number): Promise<void> {
  await using known = await openWorld({ name: "memory", open: async (clock) => createMemoryStore({ clock }) });
  await using world = await openWorld(engine);
  for (const { store } of [known, world]) await store.configure(POLICY);
  const random = createRandom(seed);
  const pick = createSteps([known, world], random);
  const expectNews = watchDeliveries(known.store);
  for (let step = 1; step <= steps; step++) {
    const [name, run] = pick();
    await run();
    await expectNews(`seed ${seed}, step ${step}, after ${name}`);
    if (step % 20 !== 0 && step !== steps) continue;
    const when = `seed ${seed}, step ${step}, after ${name}`;
    expect(comparable(await allAnswers(world.store)), when).toEqual(comparable(await allAnswers(known.store)));
    expect(await world.store.listBudgets(), when).toEqual(await known.store.listBudgets());
    expect(comparable(await world.store.readSchedules()), when).toEqual(comparable(await known.store.readSchedules()));
    const [found, expected] = [await notificationsOf(world.store), await notificationsOf(known.store)];
    expect(comparable(found), when).toEqual(comparable(expected));
    await expectWhole(world.store, when);
    await expectCounted(world.store, when);
  }
  // Without a running turn, nothing is reserved.
  await world.clock.advance(10 * LEASE_MS);
  await world.sweep({ maxAttempts: 1 });
  for (const { tokens, cost } of await world.store.listBudgets())
    expect([tokens?.reserved ?? 0, cost?.reserved ?? 0]).toEqual([0, 0]);
}

async function notificationsOf(store: Store): Promise<readonly Notification[]> {
  return (await store.listNotifications({ limit: 10_000 })).items;
}

/** The usage of a budget that applies to all turns is the sum of the counters. It has a reservation for each turn that runs. */
async function expectCounted(store: Store, when: string): Promise<void> {
  const [all] = await store.listBudgets();
  let [tokens, cost] = [0, 0];
  for (const count of await store.readUsage({ from: 0, to: Infinity })) {
    tokens += count.input + count.output;
    cost += count.cost;
  }
  const { tokens: ofTokens, cost: ofCost, estimatedTokens = 0 } = all ?? {};
  expect((ofTokens?.used ?? 0) - estimatedTokens, when).toBe(tokens);
  expect((ofCost?.used ?? 0) - estimatedTokens, when).toBe(cost);
  expect(ofTokens?.reserved, when).toBeGreaterThanOrEqual(store.stats().turnsRunning * RESERVED);
}

/** Increasing numbers may grow differently in another engine, which may take more ids than it needs. */
function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null, (name, inner) => (OWN.has(name) ? undefined : inner)));
}
const OWN = new Set(["fence", "ordinal", "through", "messageId", "replyMessageId"]);

/** Each recorded delivery and each other outcome is reported, except for work that is erased after its end. */
function watchDeliveries(store: Store): (when: string) => Promise<void> {
  const news = new Set<string>();
  store.watch({ ...silent, delivery: (deliveryId, change) => news.add(`${change} ${deliveryId}`) });
  let before = new Map<string, Pick<DeliveryResult, "outcome" | "announcement">>();
  return async (when) => {
    const { items } = await store.listDeliveries({ limit: 1_000 });
    for (const { deliveryId, outcome, announcement } of items) {
      const known = before.get(deliveryId);
      const isErased = outcome === "gone" && known?.outcome !== "queued" && known?.outcome !== "running";
      const isOther = known?.outcome !== outcome || known?.announcement?.state !== announcement?.state;
      if (known === undefined) expect(news, when).toContain(`recorded ${deliveryId}`);
      else if (isOther && !isErased) expect(news, when).toContain(`outcome ${deliveryId}`);
    }
    news.clear();
    before = new Map(items.map((item) => [item.deliveryId, item]));
  };
}

/** The counts match the records, journals have no gaps, a session runs one turn at a time, and an agent's beat has at most one unfinished turn. */
async function expectWhole(store: Store, when: string): Promise<void> {
  const page = { limit: 1_000 };
  const { items: sessions } = await store.listSessions(page);
  const { items: turns } = await store.listTurns(page);
  const { items: events } = await store.listEvents(page);
  const count = <T>(of: readonly T[], is: (one: T) => boolean) => of.filter(is).length;
  expect(store.stats(), when).toMatchObject({
    sessions: sessions.length,
    turnsQueued: count(turns, ({ status }) => status === "queued"),
    turnsRunning: count(turns, ({ status }) => status === "running"),
    eventsQueued: count(events, ({ status }) => status === "queued"),
    eventsDead: count(events, ({ status }) => status === "dead"),
    deliveries: (await store.listDeliveries(page)).items.length,
  });
  // The messages of open groups are in no journal yet.
  const grouped = new Set(turns.flatMap(({ seq, surface, caller }) => (seq === 0 ? `${surface} ${caller}` : [])));
  const countable = (share: Share) =>
    grouped.has(`${share.surface} ${share.caller}`) ? { ...share, bytes: 0 } : share;
  expect((await sharesOf(store)).map(countable), when).toEqual((await recountShares(store)).map(countable));
  const notifications = await notificationsOf(store);
  const byEndpoint: Record<string, number> = {};
  const endedByEndpoint: Record<string, number> = {};
  for (const { endpoint, endedAt } of notifications) {
    const counts = endedAt === undefined ? byEndpoint : endedByEndpoint;
    counts[endpoint] = (counts[endpoint] ?? 0) + 1;
  }
  for (const ended of Object.values(endedByEndpoint)) expect(ended, when).toBeLessThanOrEqual(POLICY.notifications);
  expect(store.stats().notifications, when).toEqual(byEndpoint);
  for (const agent of AGENTS) {
    const isOfBeat = (turn: Turn) => turn.caller === "heartbeat" && turn.agent === agent && turn.endedAt === undefined;
    const running = (await store.readBeat(agent)).running ? 1 : 0;
    expect(count(turns, isOfBeat), when).toBeLessThanOrEqual(running);
  }
  for (const { sessionId, firstSeq, lastSeq, turnsQueued } of sessions) {
    const seqs = (await store.readEntries(sessionId, { after: 0, limit: 10_000 })).map(({ seq }) => seq);
    expect(seqs, when).toEqual(Array.from({ length: lastSeq - firstSeq + 1 }, (_, n) => firstSeq + n));
    const own = turns.filter((turn) => turn.sessionId === sessionId);
    expect(
      count(own, ({ status }) => status === "queued"),
      when,
    ).toBe(turnsQueued);
    expect(
      count(own, ({ status }) => status === "running"),
      when,
    ).toBeLessThanOrEqual(1);
  }
}

type Both<T> = [known: T, found: T];
type Step = () => Promise<unknown>;

function createSteps(worlds: Both<World>, random: Random) {
  const [{ clock, store }] = worlds;
  const now = () => clock.now();
  /** All claims that both stores returned; most are not valid any more. */
  const turns: Both<ClaimedTurn>[] = [];
  const announcements: Both<OutgoingClaim>[] = [];
  let replies = 0;

  /** The same call to both, which give the same answer or the same refusal. */
  const call = async <T>(make: (world: World, n: 0 | 1) => Promise<T>): Promise<Both<T> | undefined> => {
    const answers = await Promise.all(worlds.map((world, n) => outcomeOf(make(world, n as 0 | 1))));
    const [known, found] = answers as Both<Awaited<ReturnType<typeof outcomeOf<T>>>>;
    expect(comparable(found)).toEqual(comparable(known));
    return "value" in known && "value" in found ? [known.value, found.value] : undefined;
  };
  /** Picks one, mostly a recent one. */
  const some = <T>(made: readonly T[]): T => random.pick(random.chance(0.8) ? made.slice(-4) : made);
  const someUsage = () =>
    random.pick([
      undefined,
      used(random.below(9), random.below(9)),
      usedMore(random.below(9), 1, random.below(1e12) + 1),
    ]);
  const someDelivery = (answer: DeliveryAnswer = "accepted") => {
    const rest = {
      answer,
      caller: random.pick(["ci", ""]),
      mapping: random.pick([undefined, "one"]),
      steps: random.pick([[], [{ at: 1, name: "token.accepted", detail: "{}" }]]),
    };
    const body = random.pick(TEXTS);
    return ({ newId }: World) => ({ ...deliveryOf(newId("dlv"), body), ...rest });
  };
  const someKey = () => ({ key: random.pick(KEYS), hash: random.chance(0.8) ? "same" : "other" });

  const someGroup = () =>
    groupOf({
      key: `group:${random.pick(KEYS)}`,
      windowMs: random.pick([50, 5_000]),
      maxWaitMs: random.pick([60, 20_000]),
      take: random.pick(["last", "all"] as const),
      longestText: random.pick([1_000, 12_000]),
    });

  const start: Step = async () => {
    const session = random.pick(SESSIONS);
    const agent = random.chance(0.9) ? (AGENTS[SESSIONS.indexOf(session) % 2] as string) : random.pick(AGENTS);
    const delivery = random.chance(0.3) ? someDelivery() : undefined;
    const options = {
      session,
      agent,
      limits: LIMITS,
      recorder: RECORDER,
      text: random.pick(TEXTS),
      model: random.pick([undefined, "fast", "ü"]),
      skillIds: random.pick([[], ["a", "b"]]),
      surface: random.pick(["rest", "rpc", "hooks", "heartbeat"] as const),
      caller: random.pick(["ci", "ops ü"]),
      waited: random.chance(0.5),
      context: random.pick([undefined, "{}"]),
      announce: random.pick([undefined, { channel: random.pick([undefined, ...CHANNELS]), hops: random.below(3) }]),
      ...(random.chance(0.2) && someKey()),
      ...(random.chance(0.3) && (await store.getSession(session)) && { group: someGroup() }),
    };
    await call((world) => world.store.startTurn(world.order({ ...options, delivery: delivery?.(world) })));
  };
  const claim: Step = async () => {
    const places = new Map(AGENTS.map((agent) => [agent, random.below(3)]));
    const request = { free: 1 + random.below(4), freeOf: (agent: string) => places.get(agent) ?? 0 };
    const of = { node: "node_a", leaseMs: LEASE_MS, newMessageId: () => `msg_reply_${replies++}`, ...request };
    const [known, found] = (await call((world) => world.store.claimTurns({ ...of, now: now() }))) ?? [];
    for (const [n, turn] of known?.turns.entries() ?? []) turns.push([turn, found?.turns[n] as ClaimedTurn]);
  };
  const end: Step = async () => {
    if (turns.length === 0) return;
    const [claimed, usage] = [some(turns), someUsage()];
    const status = random.pick(["completed", "failed", "cancelled"] as const);
    const error =
      status === "failed" ? ({ name: "turn-timeout", detail: random.pick([undefined, "ü"]) } as const) : undefined;
    const how = {
      status,
      error,
      usage,
      reply: random.pick(["", ...TEXTS]),
      model: usage && random.pick([undefined, "ö"]),
      compaction:
        claimed[0].task?.kind === "compact" && status === "completed" ? await someCompaction(claimed[0]) : undefined,
    };
    await call((world, n) => world.end(claimed[n], how));
  };
  const release: Step = async () => {
    if (turns.length === 0) return;
    const [claimed, delayMs, usage] = [some(turns), random.pick([0, 50, 5_000]), someUsage()];
    await call((world, n) => world.release(claimed[n], delayMs, usage));
  };
  const cancel: Step = async () => {
    const { items } = await store.listTurns({ limit: 100 });
    const { turnId } = random.pick([...items, { turnId: "turn_unknown" }]);
    await call((world) => world.store.cancelTurn(turnId, now()));
  };
  const remove: Step = async () => {
    const sessionId = random.pick(SESSIONS);
    await call((world) => world.store.deleteSession(sessionId, now()));
  };
  const findGroup: Step = async () => {
    const key = `group:${random.pick(KEYS)}`;
    await call((world) => world.store.findGroup(key, now()));
  };
  const failQueued: Step = async () => {
    const agent = random.pick(AGENTS);
    await call((world) => world.store.failQueuedTurns(agent, LOST, now()));
  };
  const pass: Step = async () => {
    const ms = random.pick([10, 100, 6_000, LEASE_MS]);
    for (const world of worlds) await world.clock.advance(ms);
    const before = (kept: readonly number[]) => now() - random.pick(kept);
    const bounds = {
      sessionsBefore: before(KEPT_MS),
      webhookSessionsBefore: before(KEPT_MS),
      eventsBefore: before([0, 50_000]),
    };
    for (const world of worlds) await world.sweep({ ...bounds, maxAttempts: 3 });
  };
  const compact: Step = async () => {
    const options = { session: random.pick(SESSIONS), limits: LIMITS };
    await call((world) => startCompaction(world, options));
  };
  const someCompaction = async ({ turn: { sessionId } }: ClaimedTurn) => {
    const { lastSeq = 0, contextBytes = 0 } = (await store.getSession(sessionId)) ?? {};
    const [before, after] = [
      { messages: 2, tokens: 0 },
      { messages: 0, tokens: 0 },
    ];
    const summary = random.pick([undefined, "in short", "ü".repeat(100)]);
    const of = { outside: false, through: random.below(lastSeq + 1), except: [], before, after };
    const compacted = summary === undefined ? undefined : { summary, ...of, freedBytes: Math.floor(contextBytes / 2) };
    return { before, after, compacted, reason: undefined };
  };

  const grant: Step = async () => {
    const { name } = random.pick([...BUDGETS, { name: "unknown" }]);
    const order = { tokens: 1 + random.below(500), until: now() + random.pick([1, 50_000]) };
    await call((world) => world.store.grantBudget(name, { now: now(), by: "ops", ...order }));
  };
  const extendBudget: Step = async () => {
    if (turns.length === 0) return;
    const [claimed, tokens] = [some(turns), RESERVED + random.below(400)];
    const order = { used: { tokens, cost: tokens }, next: { tokens: RESERVED, cost: RESERVED } };
    await call((world, n) => world.store.extendBudget(claimed[n].claim, order));
  };
  const passHour: Step = async () => {
    for (const world of worlds) await world.clock.advance(3_600_000);
    for (const world of worlds) await world.sweep({ maxAttempts: 3 });
  };

  const queueEvent: Step = async () => {
    const delivery = random.chance(0.5) ? someDelivery() : undefined;
    const options = {
      agent: random.pick(AGENTS),
      text: random.pick(TEXTS),
      recorder: RECORDER,
      limits: { events: 40, storeBytes: 1e6, share: 0.2 },
      caller: random.pick(["shared", "ops ü"]),
      metadata: random.pick([undefined, "{}"]),
      beatNow: random.chance(0.1),
      ...(random.chance(0.1) && someKey()),
    };
    await call((world) => world.store.queueEvent(eventOrder(world, { ...options, delivery: delivery?.(world) })));
  };
  const requeueEvent: Step = async () => {
    const { items } = await store.listEvents({ limit: 100 });
    const { eventId } = random.pick([...items, { eventId: "evt_unknown" }]);
    const requeue = { now: now(), beatNow: random.chance(0.2), streamKeep: STREAM_KEEP };
    await call((world) => world.store.requeueEvent(eventId, requeue));
  };
  const failQueuedEvents: Step = async () => {
    const [agent, limit] = [random.pick(AGENTS), random.below(4)];
    await call((world) => world.store.failQueuedEvents(agent, "gone", { now: now(), streamKeep: STREAM_KEEP, limit }));
  };
  const planBeat: Step = async () => {
    const agent = random.pick(AGENTS);
    const plan = { delayMs: random.pick([undefined, 0, 50, 7_000]), soonest: random.chance(0.5) };
    await call((world) => world.store.planBeat(agent, { now: now(), ...plan }));
  };
  const startNextBeat: Step = async () => {
    const options = {
      agent: random.pick(AGENTS),
      node: random.pick([undefined, "node_a"]),
      batch: { limit: 1 + random.below(4), maxAttempts: 2 },
      intervalMs: random.pick([undefined, 50, 7_000]),
      waitingEvents: random.below(6),
      limits: LIMITS,
    };
    await call((world) => world.store.dueBeats(AGENTS));
    const [known, found] = (await call((world) => startBeat(world, options))) ?? [];
    if (known?.outcome !== "started" || found?.outcome !== "started") return;
    const both = [known.started.claimed, found.started.claimed];
    if (both[0] && both[1]) turns.push(both as Both<ClaimedTurn>);
  };
  const removeBeat: Step = async () => {
    const agent = random.pick(AGENTS);
    await call((world) => world.store.removeBeat(agent, { now: now(), streamKeep: STREAM_KEEP }));
  };
  const planSchedule: Step = async () => {
    const [name, plan, nextAt] = [random.pick(KEYS), random.pick([PLAN, PLAN, "every 5000"]), now() + random.below(50)];
    const instead = random.pick([undefined, now()]);
    await call((world) => world.store.planSchedule(name, { plan, nextAt, instead }));
  };
  const runSchedule: Step = async () => {
    const unknown = { name: "a", nextAt: now() };
    const { name, nextAt: plannedAt = now() } = random.pick([...(await store.readSchedules()), unknown]);
    const options = { session: random.pick([...SESSIONS, "schedule:a"]), agent: random.pick(AGENTS), limits: LIMITS };
    const [overlap, nextAt] = [random.pick(["skip", "queue"] as const), plannedAt + random.pick([0, 1, 60_000])];
    const isRefused = random.chance(0.1);
    await call((world) => {
      const { turn: order, ...start } = startOf(world, { overlap, order: { ...options, recorder: RECORDER } });
      const turn = isRefused ? { refusal: { name: "skill-not-found", detail: "gone" } } : order;
      const planned = { name, plannedAt, nextAt, recorder: RECORDER };
      return world.store.runSchedule(orderOf(world, { ...planned, start: { ...start, turn } }));
    });
  };
  const requestRun: Step = async () => {
    const [name, session] = [random.pick(KEYS), `schedule:${random.pick(KEYS)}`];
    const options = { session, agent: random.pick(AGENTS), limits: LIMITS, recorder: RECORDER };
    const key = random.chance(0.3) ? someKey() : {};
    await call((world) => {
      const { delivery } = startOf(world);
      const turn = world.order({ surface: "schedule", caller: name, delivery, ...options, ...key });
      return world.store.requestRun(name, { requestedBy: "ops", turn });
    });
  };
  const pauseSchedule: Step = async () => {
    const [name, paused, isRemoved] = [random.pick(KEYS), random.chance(0.3), random.chance(0.2)];
    const [plan, nextAt] = [random.pick([PLAN, "every 5000"]), paused ? undefined : now()];
    if (isRemoved) await call((world) => world.store.unplanSchedule(name));
    else await call((world) => world.store.setSchedulePaused(name, { paused, plan, nextAt, now: now() }));
  };
  const setPaused: Step = async () => {
    const [agent, paused] = [random.pick(AGENTS), random.chance(0.3)];
    await call((world) => world.store.setPaused(agent, { paused, now: now(), streamKeep: STREAM_KEEP }));
  };
  const claimOutgoing: Step = async () => {
    const endpoints = [...CHANNELS.map((channel) => `channel:${channel}`), ...NOTIFIED];
    const free = Object.fromEntries(endpoints.map((endpoint) => [endpoint, random.below(3)]));
    const before = random.chance(0.1) ? { [random.pick(NOTIFIED)]: now() - 1_000 } : {};
    const request = { node: "node_a", leaseMs: LEASE_MS, free, others: { free: 0, before: 1e15 }, before };
    const [known, found] = (await call((world) => world.store.claimOutgoing(request))) ?? [];
    for (const [n, { claim }] of known?.claimed.entries() ?? [])
      announcements.push([claim, found?.claimed[n]?.claim as OutgoingClaim]);
  };
  const endOutgoing: Step = async () => {
    if (announcements.length === 0) return;
    const [claim, state] = [some(announcements), random.pick(["delivered", "failed"] as const)];
    const step = { at: now(), name: `announcement.${state}`, detail: undefined };
    const reason = state === "delivered" ? undefined : "HTTP 503";
    await call((world, n) => world.store.endOutgoing(claim[n], { state, reason, code: 200, step }));
  };
  const releaseOutgoing: Step = async () => {
    if (announcements.length === 0) return;
    const [claim, delayMs] = [some(announcements), random.pick([0, 50, 7_000])];
    const step = { at: now(), name: "announcement.retried", detail: undefined };
    const state = random.pick(["retrying", undefined] as const);
    await call((world, n) => world.store.releaseOutgoing(claim[n], { delayMs, state, reason: "HTTP 503", step }));
  };
  const extend: Step = async () => {
    const claims: Both<Claim | OutgoingClaim>[] = [
      ...turns.slice(-4).map(([known, found]): Both<Claim> => [known.claim, found.claim]),
      ...announcements.slice(-4),
    ];
    await call(async (world, n) => {
      const own = claims.map((both) => both[n]);
      const lost = await world.store.extendClaims(own, LEASE_MS);
      return lost.map((claim) => own.findIndex((one) => isDeepStrictEqual(one, claim)));
    });
  };
  const announceAgain: Step = async () => {
    const { items } = await store.listTurns({ limit: 100 });
    const announced = items.filter(({ announcement }) => announcement !== undefined);
    const { turnId } = random.pick([...announced, ...announced, ...items, { turnId: "turn_unknown" }]);
    const hops = random.below(3);
    await call((world) => world.store.announceAgain(turnId, { now: now(), by: "ops", hops }));
  };
  const replayNotification: Step = async () => {
    const unknown = { notificationId: "ntf_unknown.all" };
    const { notificationId } = random.pick([...(await notificationsOf(store)).slice(0, 20), unknown]);
    await call((world) => world.store.replayNotification(notificationId, { now: now() }));
  };
  const notifyEvent: Step = async () => {
    const [agent, data] = [random.pick(["one", "two"]), random.pick(["{}", '{"a":"ü"}'])];
    const of = { eventId: `ntf_${random.below(20)}`, type: "health.changed", agent, data };
    await call((world) => world.store.notifyEvent({ now: now(), ...of }));
  };
  const recordDelivery: Step = async () => {
    const [delivery, isOfTurn] = [someDelivery(random.pick(ANSWERS)), random.chance(0.2)];
    await call((world) => {
      const work = { turnId: isOfTurn ? world.newId("turn") : undefined };
      return world.store.recordDelivery(delivery(world), RECORDER, work);
    });
  };
  const addDeliveryStep: Step = async () => {
    const { items } = await store.listDeliveries({ limit: 100 });
    const { deliveryId } = random.pick([...items, { deliveryId: "dlv_unknown" }]);
    const step = { at: now(), name: "turn.returned", detail: random.pick([undefined, "{}"]) };
    await call((world) => world.store.addDeliveryStep(deliveryId, step));
  };

  const often = { start, claim, end, queueEvent };
  const seldom = {
    grant,
    extendBudget,
    passHour,
    release,
    cancel,
    remove,
    findGroup,
    failQueued,
    pass,
    compact,
    requeueEvent,
    failQueuedEvents,
    planBeat,
    startNextBeat,
    startAnotherBeat: startNextBeat,
    removeBeat,
    planSchedule,
    runSchedule,
    runAnotherSchedule: runSchedule,
    requestRun,
    pauseSchedule,
    setPaused,
    claimOutgoing,
    announceAgain,
    endOutgoing,
    releaseOutgoing,
    replayNotification,
    notifyEvent,
    extend,
    recordDelivery,
    addDeliveryStep,
  };
  const steps = [...Object.entries(often), ...Object.entries(often), ...Object.entries(seldom)];
  return () => random.pick(steps);
}

async function outcomeOf<T>(call: Promise<T>): Promise<{ value: T } | { refused: string }> {
  try {
    return { value: await call };
  } catch (error) {
    if (error instanceof GatewayError) return { refused: error.name };
    throw error;
  }
}
