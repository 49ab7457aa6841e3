import { newId } from "#kit/ids.ts";
import type { ClaimedTurn, EventOrder, GatewayEntry, GatewayNews, SystemEvent, TurnEnd } from "#store/store.ts";
import { DAY, LEASE_MS, RECORDER, type World } from "./world.ts";

export const STREAM_KEEP = 10_000;

type EventOptions = Partial<
  Omit<EventOrder, "limits" | "idempotency"> & { key: string; hash: string; limits: Partial<EventOrder["limits"]> }
>;

/** An event's order that says of itself only what matters to a test. */
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
    limits: { events: 1e6, storeBytes: 1e12, ...limits },
  };
}

export function eventOrder(world: World, options: EventOptions = {}): EventOrder {
  return queueOrder(options.now ?? world.clock.now(), { eventId: world.newId("evt"), ...options });
}

export async function queueEvent(world: World, options: EventOptions = {}): Promise<SystemEvent> {
  return (await world.store.queueEvent(eventOrder(world, options))).event;
}

/** Starts a turn that takes these events, in a session of its own, and claims it. */
export async function takeEvents(
  world: World,
  ids: readonly string[],
  options: { agent?: string; maxAttempts?: number; session?: string } = {},
): Promise<ClaimedTurn> {
  const { agent = "main", maxAttempts = 3, session = world.newId("beat") } = options;
  const now = world.clock.now();
  const { claimed } = await world.store.startTurn(
    world.order({
      session,
      agent,
      surface: "heartbeat",
      events: { ids, maxAttempts, streamKeep: STREAM_KEEP },
      claim: { now, node: "node_a", leaseMs: LEASE_MS, replyMessageId: world.newId("msg") },
    }),
  );
  if (!claimed) throw new Error("the turn was not claimed at once");
  return claimed;
}

/** Has one turn after another take the event, until it has failed so often. */
export async function failEvent(world: World, eventId: string, times = 1, how: Partial<TurnEnd> = {}): Promise<void> {
  for (let n = 0; n < times; n++) await world.end(await takeEvents(world, [eventId]), { status: "failed", ...how });
}

/** Ids of events that wait, as a beat would read them. */
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
