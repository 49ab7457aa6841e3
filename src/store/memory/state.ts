import type { Clock } from "#core/clock.ts";
import { IdTable, Roster } from "#core/tables.ts";
import type { Entry, Session, StoreWatcher, Turn } from "#store/store.ts";
import { AgentCounters } from "./agent-counters.ts";
import { DeliveryRing } from "./delivery-ring.ts";
import type { QueuedTurn } from "./entry-codec.ts";
import { Fifo } from "./fifo.ts";
import { GatewayLog } from "./gateway-log.ts";
import { IdIndex } from "./id-index.ts";
import { LateAttempts } from "./late-attempts.ts";
import { LogArena, NONE } from "./log-arena.ts";
import { OrderedRows } from "./ordered-rows.ts";
import { ReadyTurns } from "./ready-turns.ts";
import type { CompactionRow, QueueRow, SessionRow, TurnRow } from "./rows.ts";
import { createSessionLogs } from "./session-log.ts";
import { Summaries } from "./summaries.ts";
import { UsageCounters } from "./usage-counters.ts";

export type IdempotencyRow = { key: string; hash: string; turnId: string; expiresAt: number };

/** Everything the memory engine holds. */
export const createState = (clock: Clock) => {
  const arena = new LogArena();
  return {
    clock,
    watchers: new Set<StoreWatcher>(),
    sessions: new Map<string, SessionRow>(),
    order: new OrderedRows<SessionRow>(),
    orderOfAgent: new Map<string, OrderedRows<SessionRow>>(),
    ordinals: 0,
    /** Where the last slice of a sweep ended: an ordinal. */
    sweptTo: 0,
    arena,
    logs: createSessionLogs(arena),
    /** Entries that watchers have not been told of, all of one session. */
    untold: [] as Entry[],
    /** Unfinished turns by id; `index` has all. */
    active: new IdTable<TurnRow>(),
    index: new IdIndex(),
    running: new Roster<TurnRow>(),
    ready: new ReadyTurns(),
    queued: 0,
    idempotency: new Map<string, IdempotencyRow>(),
    idempotencyByAge: new Fifo<IdempotencyRow>(),
    deliveries: new DeliveryRing(),
    usage: new UsageCounters(),
    late: new LateAttempts(),
    agents: new AgentCounters(),
    compactions: new Map<string, CompactionRow>(),
    summaries: new Summaries(),
    gateway: new GatewayLog(),
  };
};

export type State = ReturnType<typeof createState>;

// What a session costs beside its log, and a turn beside its entries, as `npm run bench` measures it (P10).
const SESSION_BYTES = 450;
const ACTIVE_TURN_BYTES = 600;

/** What the store holds, as limits.storeBytes counts it. */
export const bytesOf = (state: State): number =>
  state.arena.liveBytes +
  state.sessions.size * SESSION_BYTES +
  state.active.size * ACTIVE_TURN_BYTES +
  state.summaries.bytes +
  state.usage.bytes;

/** Appends to the session's journal; watchers learn of it at the next `tell`. */
export const append = (
  state: State,
  session: SessionRow,
  entry: Entry,
  queued?: QueuedTurn,
  replyBefore = false,
): Entry => {
  const placed = state.logs.append(session, entry, queued, replyBefore);
  state.untold.push(placed);
  return placed;
};

export const tell = (state: State, session: SessionRow): void => {
  const entries = state.untold;
  state.untold = [];
  for (const watcher of state.watchers) watcher.entries(session, entries);
};

export const tellWork = (state: State): void => {
  for (const watcher of state.watchers) watcher.work();
};

const NOBODY: readonly QueueRow[] = [];

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
    input: 0,
    output: 0,
    ordinal: ++state.ordinals,
    contextBytes: 0,
    compactedCount: 0,
    gone: false,
    chunk: NONE,
    queue: NOBODY,
  };
  state.sessions.set(sessionId, session);
  state.order.push(session);
  const ofAgent = state.orderOfAgent.get(agent) ?? new OrderedRows();
  state.orderOfAgent.set(agent, ofAgent);
  ofAgent.push(session);
  return session;
};

export const joinQueue = (row: QueueRow): void => {
  row.session.queue = row.session.queue.length === 0 ? [row] : [...row.session.queue, row];
};

/** Answers who is first now, when it was not before. */
export const leaveQueue = (row: QueueRow): QueueRow | undefined => {
  const { session } = row;
  const wasFirst = session.queue[0] === row;
  session.queue = session.queue.length === 1 ? NOBODY : session.queue.filter((other) => other !== row);
  return wasFirst ? session.queue[0] : undefined;
};

const PAGE = 16;

/** A turn that has ended, as its session's log tells it. */
export const readEndedTurn = (state: State, turnId: string): Turn | undefined => {
  const place = state.index.find(turnId, ({ ordinal, seq }) => {
    const session = state.order.find(ordinal);
    return session !== undefined && state.logs.read(session, seq - 1, 1)[0]?.entry.turnId === turnId;
  });
  const session = place && state.order.find(place.ordinal);
  if (!session) return undefined;
  let turn: Turn | undefined;
  for (let after = place.seq - 1; ; ) {
    const page = state.logs.read(session, after, PAGE);
    for (const { entry, queued } of page) {
      after = entry.seq;
      if (entry.turnId !== turnId) continue;
      if (queued) turn = beginTurn(session, entry, queued);
      else if (turn) turn = applyEntry(turn, entry);
      if (turn?.endedAt !== undefined) return turn;
    }
    if (page.length < PAGE) return turn;
  }
};

const beginTurn = (session: SessionRow, { turnId, at, seq }: Entry, queued: QueuedTurn): Turn => ({
  turnId,
  sessionId: session.sessionId,
  agent: session.agent,
  ...queued,
  status: "queued",
  attempt: 0,
  createdAt: at,
  startedAt: undefined,
  endedAt: undefined,
  seq,
  reply: undefined,
  error: undefined,
  usage: undefined,
});

const applyEntry = (turn: Turn, entry: Entry): Turn => {
  switch (entry.name) {
    case "turn.started":
      return { ...turn, status: "running", startedAt: entry.at, attempt: entry.attempt };
    case "message.completed":
      return { ...turn, reply: entry.text };
    case "turn.completed":
      return { ...turn, status: "completed", endedAt: entry.at, usage: entry.usage, reply: entry.reply };
    case "turn.cancelled":
      return { ...turn, status: "cancelled", endedAt: entry.at, usage: entry.usage };
    case "turn.failed":
      return { ...turn, status: "failed", endedAt: entry.at, usage: entry.usage, error: entry.error };
    default:
      return turn;
  }
};
