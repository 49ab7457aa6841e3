import { expect } from "vitest";
import type { ClaimedTurn, Turn } from "#store/store.ts";
import { createRandom, type Random } from "#test/harness/random.ts";
import { STREAM_KEEP } from "./inbound.ts";
import { createModel, type ModelPlace, type ModelTurn } from "./model.ts";
import { RING_LIMITS } from "./model-inbound.ts";
import { createInboundRun } from "./run-inbound.ts";
import { type Engine, LEASE_MS, openWorld, refusal, used, usedMore, type World } from "./world.ts";

const SESSIONS = ["chat:a", "chat:b", "chat:c", "webhook:d"];
const AGENTS = ["one", "two"];
const KEYS = ["k1", "k2", "k3"];
const TEXTS = ["hello", "ü 漢 🙂", "\u0000\ufeff\r\n", "x".repeat(5_000)];
const MAX_ATTEMPTS = 3;
/** How long sessions are kept, from one sweep to the next. */
const KEPT_MS = [Number.MAX_SAFE_INTEGER, 60_000, 10_000, 0];
const LIMITS = { turnsPerSession: 5, messagesPerSession: 40 };

/** Does `steps` random things to a store and to the model, and compares what each of them answers and holds. */
export const runModel = async (engine: Engine, seed: number, steps: number): Promise<void> => {
  await using world = await openWorld(engine);
  const run = createRun(world, createRandom(seed));
  for (let step = 1; step <= steps; step++) {
    const name = await run.step();
    if (step % 20 === 0 || step === steps) await run.compare(`seed ${seed}, step ${step}, after ${name}`);
  }
};

const createRun = (world: World, random: Random) => {
  const { store, clock } = world;
  const model = createModel(MAX_ATTEMPTS);
  const inbound = createInboundRun(world, random, model.inbound);
  /** Every claim ever handed out; most do not hold any more. */
  const claims: ClaimedTurn[] = [];
  /** The same of compactions. */
  const places: ModelPlace[] = [];

  const pickClaim = (): { claimed: ClaimedTurn; held: ModelTurn | undefined } | undefined => {
    if (claims.length === 0) return undefined;
    const recent = random.chance(0.8) ? claims.slice(-4) : claims;
    const claimed = random.pick(recent);
    const { turnId, fence } = claimed.claim;
    const of = model.turns.get(turnId);
    return { claimed, held: of?.turn.status === "running" && of.fence === fence ? of : undefined };
  };
  const someUsage = () => {
    if (random.chance(0.5)) return undefined;
    return random.chance(0.7)
      ? used(random.below(9), random.below(9))
      : usedMore(random.below(9), random.below(9), random.below(1e12) + 1);
  };

  const start = async () => {
    const session = random.pick(SESSIONS);
    const order = world.order({
      session,
      agent: random.chance(0.9) ? (AGENTS[SESSIONS.indexOf(session) % 2] as string) : random.pick(AGENTS),
      text: random.pick(TEXTS),
      model: random.pick([undefined, "fast", "ü"]),
      skillIds: random.pick([[], ["a"], ["a", "b"]]),
      surface: random.pick(["rest", "rpc", "hooks", "heartbeat"] as const),
      caller: random.pick(["ci", "ops ü"]),
      waited: random.chance(0.5),
      limits: LIMITS,
      delivery: random.chance(0.3) ? inbound.delivery() : undefined,
      recorder: RING_LIMITS,
      context: random.pick([undefined, "{}"]),
      announce: random.chance(0.3)
        ? { channel: random.pick([undefined, inbound.pickChannel()]), hops: random.below(3) }
        : undefined,
    });
    const ids = random.chance(0.3) ? inbound.pickEvents(order.session.agent) : [];
    if (ids.length > 0) order.events = { ids, maxAttempts: 2, streamKeep: STREAM_KEEP };
    const hash = random.chance(0.8) ? "same" : "other";
    const key = { key: random.pick(KEYS), hash, expiresAt: Number.MAX_SAFE_INTEGER };
    if (random.chance(0.2)) order.idempotency = key;
    const expected = model.check(order);
    const call = store.startTurn(order);
    expect(await refusal(call)).toBe(typeof expected === "string" ? expected : "not refused");
    if (typeof expected === "string") return;
    const { turn, replayed } = await call;
    expect(replayed).toBe(expected !== undefined);
    expect(turn).toEqual(expected ? expected.turn : model.start(order));
  };

  const claim = async () => {
    const free = 1 + random.below(4);
    const places = new Map(AGENTS.map((agent) => [agent, random.below(3)]));
    const time = clock.monotonic();
    const possible = new Set(model.claimable(time));
    const { turns, nextDueInMs } = await world.claim({ free, freeOf: (agent) => places.get(agent) ?? 0 });
    for (const claimed of turns) {
      const of = model.turns.get(claimed.turn.turnId);
      if (!of || !possible.delete(of)) throw new Error(`${claimed.turn.turnId} could not be claimed`);
      model.claim(of, clock.now(), time, claimed.claim.fence);
      expect(claimed.turn).toEqual(of.turn);
      expect(claimed.replySeq).toBe(of.session.entries.length);
      places.set(of.turn.agent, (places.get(of.turn.agent) ?? 0) - 1);
      claims.push(claimed);
    }
    expect(turns.length).toBeLessThanOrEqual(free);
    expect(Math.min(...places.values())).toBeGreaterThanOrEqual(0);
    const missed = [...possible].filter(({ turn }) => (places.get(turn.agent) ?? 0) > 0);
    if (turns.length < free) expect(missed).toEqual([]);
    const dues = model.withStatus("queued").flatMap(({ due }) => (due > time ? [due - time] : []));
    if (dues.length > 0) expect(nextDueInMs).toBeLessThanOrEqual(Math.min(...dues));
  };

  const end = async () => {
    const picked = pickClaim();
    if (!picked) return;
    const status = random.pick(["completed", "failed", "cancelled"] as const);
    const detail = random.pick([undefined, "why ü"]);
    const error = status === "failed" ? ({ name: "turn-timeout", detail } as const) : undefined;
    const usage = someUsage();
    const answered = usage && random.pick([undefined, "slow", "ö"]);
    const how = { now: clock.now(), status, reply: random.pick(["", ...TEXTS]), error, usage, model: answered };
    expect(await world.end(picked.claimed, how)).toBe(picked.held !== undefined);
    if (picked.held) model.end(picked.held, how);
  };

  const release = async () => {
    const picked = pickClaim();
    if (!picked) return;
    const delayMs = random.pick([0, 50, 5_000]);
    const usage = someUsage();
    expect(await world.release(picked.claimed, delayMs, usage)).toBe(picked.held !== undefined);
    if (picked.held) model.giveBack(picked.held, clock.now(), clock.monotonic() + delayMs, { usage });
  };

  const cancel = async () => {
    if (model.turns.size === 0) return;
    const of = random.pick([...model.turns.values()]);
    const { turnId, status } = of.turn;
    const isOpen = status === "queued" || status === "running";
    expect(await refusal(store.cancelTurn(turnId, clock.now()))).toBe(isOpen ? "not refused" : "turn-ended");
    if (isOpen) model.cancel(of, clock.now());
  };

  const remove = async () => {
    const id = random.pick(SESSIONS);
    expect((await store.deleteSession(id, clock.now())) !== undefined).toBe(model.remove(id, clock.now()));
  };

  const pass = async () => {
    await clock.advance(random.pick([10, 100, 6_000, LEASE_MS]));
    const eventsBefore = clock.now() - random.pick([0, 50_000]);
    const [sessionsBefore, webhookSessionsBefore] = [random.pick(KEPT_MS), random.pick(KEPT_MS)].map(
      (ms) => clock.now() - ms,
    ) as [number, number];
    await world.sweep({ maxAttempts: MAX_ATTEMPTS, eventsBefore, sessionsBefore, webhookSessionsBefore });
    model.sweep(clock.now(), clock.monotonic());
    model.age(clock.now(), (id) => (id.startsWith("webhook:") ? webhookSessionsBefore : sessionsBefore));
    model.inbound.sweep(clock.monotonic(), eventsBefore);
  };

  const failQueued = async () => {
    const agent = random.pick(AGENTS);
    const error = { name: "agent-removed", detail: undefined } as const;
    const count = await store.failQueuedTurns(agent, error, clock.now());
    expect(count).toBe(model.failQueued(agent, clock.now(), error));
  };

  const queueCompaction = async () => {
    const sessionId = random.pick(SESSIONS);
    const session = model.sessions.get(sessionId);
    const isBusy = session !== undefined && model.waitingOf(session).length >= LIMITS.turnsPerSession;
    const of = { now: clock.now(), compactionId: world.newId("cmp"), sessionId, node: "node_a", leaseMs: LEASE_MS };
    const call = store.queueCompaction({ ...of, limits: world.order({ limits: LIMITS }).limits });
    const refused = isBusy ? "session-busy" : "not refused";
    expect(await refusal(call)).toBe(session ? refused : "session-not-found");
    if (!session || isBusy) return;
    const { claim, ...place } = await call;
    const isFirst = session.queue.length === 0;
    expect(place).toEqual({ agent: session.agent, seq: session.entries.length, isFirst });
    const made = { session, turn: undefined, claim, isFirst, leaseEnds: clock.monotonic() + LEASE_MS };
    session.queue.push(made);
    places.push(made);
  };

  const endCompaction = async () => {
    if (places.length === 0) return;
    const place = random.pick(random.chance(0.8) ? places.slice(-2) : places);
    const { session, claim } = place;
    const summary = random.pick([undefined, "in short", "ü".repeat(100)]);
    const compacted =
      summary === undefined
        ? undefined
        : {
            summary,
            outside: false,
            through: session.entries.length,
            except: [],
            before: { messages: model.readOf(session).length, tokens: 0 },
            after: { messages: 0, tokens: 0 },
            freedBytes: model.bytesOf(session) - Buffer.byteLength(summary),
          };
    const isKept = await store.endCompaction(claim, { now: clock.now(), compacted });
    expect(isKept).toBe(model.compact(place, summary, clock.now()));
  };

  const often = { start, claim, end, ...inbound.often };
  const seldom = { release, cancel, pass, remove, failQueued, queueCompaction, endCompaction, ...inbound.seldom };
  const actions = [...Object.entries(often), ...Object.entries(often), ...Object.entries(seldom)];

  return {
    async step(): Promise<string> {
      const [name, act] = random.pick(actions);
      await act();
      return name;
    },
    async compare(when: string): Promise<void> {
      expect(store.stats(), when).toMatchObject({
        sessions: model.sessions.size,
        turnsQueued: model.withStatus("queued").length,
        turnsRunning: model.withStatus("running").length,
      });
      for (const session of model.sessions.values()) {
        const { id, agent, entries, firstSeq, messages, erased, usage } = session;
        const kept = await world.entries(id);
        const words = kept.map(({ seq, name, turnId }) => `${seq} ${name} ${turnId}`);
        expect(words, when).toEqual(entries.map((entry, n) => `${n + 1} ${entry}`).slice(firstSeq - 1));
        for (const includeCompacted of [false, true]) {
          const read = await store.readMessages(id, { limit: 1_000, includeCompacted });
          expect(
            read.map(({ role, text }) => `${role}: ${text}`),
            when,
          ).toEqual(includeCompacted ? messages.slice(0, messages.length - erased) : model.readOf(session));
        }
        expect((await store.readSummary(id))?.text, when).toBe(session.summary);
        const counts = { messageCount: messages.length, turnsQueued: model.queuedOf(session).length };
        const expected = {
          agent,
          firstSeq,
          lastSeq: entries.length,
          usage,
          ...counts,
          contextBytes: model.bytesOf(session),
        };
        expect(await store.getSession(id), when).toMatchObject(expected);
      }
      for (const place of places) {
        if (model.sessions.get(place.session.id) !== place.session || place.session.queue[0] !== place) continue;
        const told = world.told.some((what) => what.kind === "compaction" && what.compactionId === place.claim.turnId);
        expect(told, when).toBe(!place.isFirst);
      }
      for (const agent of AGENTS) {
        const count = (status: Turn["status"]) => model.withStatus(status).filter(({ turn }) => turn.agent === agent);
        const counts = { queued: count("queued").length, running: count("running").length };
        expect(store.agentCounts(agent), when).toMatchObject(counts);
      }
      await inbound.compare(when);
      for (const { turn } of model.turns.values()) expect(await store.getTurn(turn.turnId), when).toEqual(turn);
      const listed = await store.listSessions({ limit: 100 });
      expect(listed.items.map(({ sessionId }) => sessionId).sort(), when).toEqual([...model.sessions.keys()].sort());
    },
  };
};
