import { expect } from "vitest";
import { newId } from "#kit/ids.ts";
import type {
  BeatOrder,
  BeatStep,
  ClaimedTurn,
  EventOrder,
  GatewayEntry,
  GatewayNews,
  StoreLimits,
  SystemEvent,
  TurnEnd,
} from "#store/store.ts";
import { DAY, LEASE_MS, RECORDER, type World } from "./world.ts";

export const STREAM_KEEP = 10_000;

type EventOptions = Partial<
  Omit<EventOrder, "limits" | "idempotency"> & { key: string; hash: string; limits: Partial<EventOrder["limits"]> }
>;

/** An event's order, in which a test sets only the relevant fields. */
export function queueOrder(now: number, { key, hash = "hash", limits, ...rest }: EventOptions = {}): EventOrder {
  return {
    now,
    eventId: newId("evt", now),
    agent: "main",
    text: "it happened",
    metadata: undefined,
    caller: "shared",
    beatNow: false,
    idempotency: key === undefined ? undefined : { key, hash, expiresAt: now + DAY },
    delivery: undefined,
    recorder: RECORDER,
    streamKeep: STREAM_KEEP,
    ...rest,
    limits: { events: 1e6, storeBytes: 1e12, share: 1, ...limits },
  };
}

export function eventOrder(world: World, options: EventOptions = {}): EventOrder {
  return queueOrder(options.now ?? world.clock.now(), { eventId: world.newId("evt"), ...options });
}

export async function queueEvent(world: World, options: EventOptions = {}): Promise<SystemEvent> {
  return (await world.store.queueEvent(eventOrder(world, options))).event;
}

/** Claims a turn with these events, which must be the oldest waiting ones. The turn starts a new beat in a new session. */
export async function takeEvents(
  world: World,
  ids: readonly string[],
  options: { agent?: string; maxAttempts?: number; session?: string } = {},
): Promise<ClaimedTurn> {
  const { agent = "main", maxAttempts = 3, session: sessionId = world.newId("beat") } = options;
  await endBeat(world, agent);
  await planBeat(world, 0, false, agent);
  const order = beatOrder(world, { agent, node: "node_a", batch: { limit: ids.length, maxAttempts } });
  const session = { ...order.turn.session, sessionId };
  const claimed = claimedBy(await world.store.startBeat({ ...order, turn: { ...order.turn, session } }));
  expect(claimed.task).toMatchObject({ ids });
  return claimed;
}

/** Plans a beat of the agent. */
export function planBeat(world: World, delayMs: number | undefined, soonest = false, agent = "main"): Promise<void> {
  return world.store.planBeat(agent, { now: world.clock.now(), delayMs, soonest });
}

type BeatOptions = Partial<
  Omit<BeatOrder, "turn" | "batch"> & {
    agent: string;
    batch: Partial<BeatOrder["batch"]>;
    node: string;
    limits: Partial<StoreLimits>;
  }
>;

export function beatOrder(world: World, options: BeatOptions = {}): BeatOrder {
  const { agent = "main", node, limits, batch, ...rest } = options;
  const now = world.clock.now();
  const session = { sessionId: `agent:${agent}:main`, agent, channel: "heartbeat", userId: "heartbeat" };
  const claim = node === undefined ? undefined : { now, node, leaseMs: LEASE_MS, replyMessageId: world.newId("msg") };
  const { text: _, outside: __, context: ___, ...order } = world.order({ limits: limits ?? {} });
  return {
    turn: { ...order, session, surface: "heartbeat", caller: "heartbeat", claim },
    intervalMs: 60_000,
    returnedDelayMs: 7_000,
    waitingEvents: 0,
    streamKeep: STREAM_KEEP,
    ...rest,
    batch: { limit: 100, bytes: 65_536, maxAttempts: 3, ...batch },
  };
}

/** Starts the next turn of the agent's beat, or ends the beat. */
export function startBeat(world: World, options: BeatOptions = {}): Promise<BeatStep> {
  return world.store.startBeat(beatOrder(world, options));
}

/** The next turn of the agent's beat, claimed immediately. */
export async function claimBeat(world: World, options: BeatOptions = {}): Promise<ClaimedTurn> {
  return claimedBy(await startBeat(world, { node: "node_a", ...options }));
}

function claimedBy(step: BeatStep): ClaimedTurn {
  const claimed = step.outcome === "started" ? step.started.claimed : undefined;
  if (!claimed) throw new Error(`the beat is ${step.outcome}`);
  return claimed;
}

/** Fails `times` turns with the event, one after another. The event must be the oldest waiting one. The beat ends after the last turn. */
export async function failEvent(world: World, eventId: string, times = 1, how: Partial<TurnEnd> = {}): Promise<void> {
  for (let n = 0; n < times; n++) await world.end(await takeEvents(world, [eventId]), { status: "failed", ...how });
  await endBeat(world);
}

/** Ends the beat of an agent between two of its turns. */
function endBeat(world: World, agent = "main"): Promise<void> {
  return world.store.removeBeat(agent, { now: world.clock.now(), streamKeep: STREAM_KEEP });
}

/** Ids of waiting events, as a beat reads them. */
export async function waiting(
  world: World,
  query: { agent?: string; after?: number; through?: number; limit?: number; bytes?: number } = {},
): Promise<string[]> {
  const every = { agent: "main", after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1_000, bytes: 1e9 };
  return (await world.store.readQueuedEvents({ ...every, ...query })).map(({ eventId }) => eventId);
}

export async function news(world: World): Promise<GatewayNews[]> {
  const { entries } = await world.store.readGatewayEntries({ after: 0, limit: 10_000 });
  return entries.map(({ seq: _, at: __, ...rest }) => rest);
}

export function toldNews(world: World): GatewayEntry[] {
  return world.told.flatMap((what) => (what.kind === "gateway" ? what.entries : []));
}
