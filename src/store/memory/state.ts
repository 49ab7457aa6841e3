import type { Clock } from "#core/clock.ts";
import type { Entry, Session, StoreWatcher } from "#store/store.ts";
import { DeliveryRing } from "./delivery-ring.ts";
import { Fifo } from "./fifo.ts";
import { OrderedRows } from "./ordered-rows.ts";
import { ReadyTurns } from "./ready-turns.ts";
import { SESSION_BYTES, type SessionRow, type TurnRow } from "./rows.ts";
import { UsageCounters } from "./usage-counters.ts";

export type IdempotencyRow = { key: string; hash: string; turnId: string; expiresAt: number };

/** Everything the memory engine holds. */
export const createState = (clock: Clock) => ({
  clock,
  watchers: new Set<StoreWatcher>(),
  sessions: new Map<string, SessionRow>(),
  order: new OrderedRows<SessionRow>(),
  orderOfAgent: new Map<string, OrderedRows<SessionRow>>(),
  ordinals: 0,
  /** Where the last slice of a sweep ended: an ordinal. */
  sweptTo: 0,
  turns: new Map<string, TurnRow>(),
  running: new Set<TurnRow>(),
  ready: new ReadyTurns(),
  queued: 0,
  idempotency: new Map<string, IdempotencyRow>(),
  idempotencyByAge: new Fifo<IdempotencyRow>(),
  deliveries: new DeliveryRing(),
  usage: new UsageCounters(),
  bytes: 0,
});

export type State = ReturnType<typeof createState>;

/** An entry before it has its place: everything but `seq`. */
export type NewEntry = Entry extends infer E ? (E extends Entry ? Omit<E, "seq"> : never) : never;

/** Appends to the session's journal; answers the entry with its `seq`. */
export const append = (session: SessionRow, entry: NewEntry): Entry => {
  const placed = { seq: ++session.lastSeq, ...entry } as Entry;
  session.entries.push(placed);
  session.updatedAt = entry.at;
  return placed;
};

export const tell = (state: State, session: SessionRow, from: number): void => {
  if (state.watchers.size === 0) return;
  const entries = session.entries.slice(from - 1);
  for (const watcher of state.watchers) watcher.entries(session.sessionId, entries);
};

export const tellWork = (state: State): void => {
  for (const watcher of state.watchers) watcher.work();
};

export const openSession = (
  state: State,
  { sessionId, agent, channel, userId }: Pick<Session, "sessionId" | "agent" | "channel" | "userId">,
  now: number,
): SessionRow => {
  const session: SessionRow = {
    sessionId,
    agent,
    channel,
    userId,
    createdAt: now,
    updatedAt: now,
    lastSeq: 0,
    messageCount: 0,
    turnsQueued: 0,
    usage: { input: 0, output: 0 },
    ordinal: ++state.ordinals,
    gone: false,
    entries: [],
    queue: [],
  };
  state.sessions.set(sessionId, session);
  state.order.push(session);
  const ofAgent = state.orderOfAgent.get(agent) ?? new OrderedRows();
  state.orderOfAgent.set(agent, ofAgent);
  ofAgent.push(session);
  state.bytes += SESSION_BYTES + sessionId.length;
  return session;
};
