import type { Clock } from "#kit/clock.ts";
import { IdTable, Roster } from "#kit/tables.ts";
import type { Entry, GatewayEntry, Session, StoreWatcher, Turn } from "#store/store.ts";
import { turnOf } from "#store/views.ts";
import type { JournalHead } from "./ageing.ts";
import { AgentCounters } from "./agent-counters.ts";
import { Announcements } from "./announcements.ts";
import type { Beats } from "./beats.ts";
import { DeliveryRing } from "./delivery-ring.ts";
import type { Logged, QueuedTurn } from "./entry-codec.ts";
import type { ErasedLog } from "./erasing.ts";
import { EventLog } from "./event-log.ts";
import { Fifo } from "./fifo.ts";
import { GatewayLog } from "./gateway-log.ts";
import { IdIndex, type IdPlace } from "./id-index.ts";
import { IdempotencyKeys } from "./idempotency-keys.ts";
import { LateAttempts } from "./late-attempts.ts";
import { LogArena } from "./log-arena.ts";
import { OrderedSlots } from "./ordered-slots.ts";
import { ReadyTurns } from "./ready-turns.ts";
import type { CompactionRow, QueueRow, TurnRow } from "./rows.ts";
import { createSessionLogs } from "./session-log.ts";
import type { SessionRow } from "./session-row.ts";
import { SessionTable } from "./session-table.ts";
import { Summaries } from "./summaries.ts";
import { TurnLog } from "./turn-log.ts";
import { UsageCounters } from "./usage-counters.ts";

/** Everything the memory engine holds. */
export const createState = (clock: Clock) => {
  const arena = new LogArena();
  return {
    clock,
    watchers: new Set<StoreWatcher>(),
    sessions: new SessionTable(),
    order: new OrderedSlots(),
    orderOfAgent: new Map<string, OrderedSlots>(),
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
    turnLog: new TurnLog(),
    running: new Roster<TurnRow>(),
    ready: new ReadyTurns(),
    queued: 0,
    idempotency: new IdempotencyKeys(),
    /** What the last slice of a sweep left of a journal's head. */
    ageing: undefined as JournalHead | undefined,
    /** Logs of sessions that are gone. */
    erasing: new Fifo<ErasedLog>(),
    deliveries: new DeliveryRing(),
    usage: new UsageCounters(),
    late: new LateAttempts(),
    agents: new AgentCounters(),
    compactions: new Map<string, CompactionRow>(),
    summaries: new Summaries(),
    gateway: new GatewayLog(),
    /** Entries of the gateway's stream that watchers have not been told of. */
    untoldGateway: [] as GatewayEntry[],
    events: new EventLog(),
    beats: new Map() as Beats,
    announcements: new Announcements(),
  };
};

export type State = ReturnType<typeof createState>;

// What a session costs beside its log, and a turn beside its entries, as `npm run bench` measures it (P10).
const SESSION_BYTES = 250;
const ACTIVE_TURN_BYTES = 600;
const ANNOUNCEMENT_BYTES = 500;

/** What the store holds, as limits.storeBytes counts it. */
export const bytesOf = (state: State): number =>
  state.arena.liveBytes +
  state.sessions.size * SESSION_BYTES +
  state.sessions.bytes +
  state.active.size * ACTIVE_TURN_BYTES +
  state.summaries.bytes +
  state.usage.bytes +
  state.events.bytes +
  state.idempotency.bytes +
  state.announcements.size * ANNOUNCEMENT_BYTES +
  state.deliveries.excessBytes;

/** Appends to the session's journal; watchers learn of it at the next `tell`. */
export const append = (
  state: State,
  session: SessionRow,
  entry: Entry,
  queued?: QueuedTurn,
  replyBefore = false,
  textBytes?: number,
): Entry => {
  const placed = state.logs.append(session, entry, queued, replyBefore, textBytes);
  state.untold.push(placed);
  return placed;
};

export const tell = (state: State, session: SessionRow): void => {
  const entries = state.untold;
  state.untold = [];
  for (const watcher of state.watchers) watcher.entries(session, entries);
};

/** Appends to the gateway's stream; watchers learn of it at the next `tellGateway`. */
export const appendGateway = (state: State, entry: GatewayEntry, keep: number): GatewayEntry => {
  state.untoldGateway.push(state.gateway.append(entry, keep));
  return entry;
};

export const tellGateway = (state: State): void => {
  if (state.untoldGateway.length === 0) return;
  const entries = state.untoldGateway;
  state.untoldGateway = [];
  for (const watcher of state.watchers) watcher.gatewayEntries(entries);
};

export const tellWork = (state: State): void => {
  for (const watcher of state.watchers) watcher.work();
};

export const openSession = (
  state: State,
  { sessionId, agent, channel, userId }: Pick<Session, "sessionId" | "agent" | "channel" | "userId">,
  now: number,
): SessionRow => {
  const ordinal = ++state.ordinals;
  const session = state.sessions.add({ sessionId, agent, channel, userId, ordinal, createdAt: now });
  state.order.push(ordinal, session.slot);
  const ofAgent = state.orderOfAgent.get(agent) ?? new OrderedSlots();
  state.orderOfAgent.set(agent, ofAgent);
  ofAgent.push(ordinal, session.slot);
  return session;
};

export const joinQueue = (session: SessionRow, row: QueueRow): void => {
  const { queue } = session;
  session.queue = queue.length === 0 ? [row] : [...queue, row];
};

/** Answers who is first now, when it was not before. */
export const leaveQueue = (session: SessionRow, row: QueueRow): QueueRow | undefined => {
  const wasFirst = session.queue[0] === row;
  session.queue = session.queue.filter((other) => other !== row);
  return wasFirst ? session.queue[0] : undefined;
};

const sessionAt = (state: State, ordinal: number): SessionRow | undefined => {
  const slot = state.order.find(ordinal);
  return slot === undefined ? undefined : state.sessions.at(slot);
};

const PAGE = 16;

const placeOfTurn = (state: State, turnId: string): IdPlace | undefined =>
  state.index.find(turnId, ({ ordinal, seq }) => {
    const session = sessionAt(state, ordinal);
    if (session === undefined || seq < session.firstSeq) return false;
    return state.logs.read(session, seq - 1, 1)[0]?.entry.turnId === turnId;
  });

export const hasTurn = (state: State, turnId: string): boolean => placeOfTurn(state, turnId) !== undefined;

/** A turn that has ended, as its session's log tells it. */
export const readEndedTurn = (state: State, turnId: string): Turn | undefined => {
  const place = placeOfTurn(state, turnId);
  const session = place && sessionAt(state, place.ordinal);
  return session && readLogged(state, session, turnId, state.logs.read(session, place.seq - 1, PAGE));
};

/** The session of the turn at this place; undefined when the turn was erased. */
export const sessionOfTurn = (state: State, { ordinal, seq }: IdPlace): SessionRow | undefined => {
  const session = sessionAt(state, ordinal);
  return session && seq > session.firstSeq ? session : undefined;
};

/** The turn whose first `turn.queued` entry is there, ended or not. */
export const readTurnAt = (state: State, session: SessionRow, seq: number): Turn | undefined => {
  const page = state.logs.read(session, seq - 1, PAGE);
  const turnId = page[0]?.entry.turnId;
  if (turnId === undefined) return undefined;
  const row = state.active.get(turnId);
  return row ? turnOf(row) : readLogged(state, session, turnId, page);
};

/** `first`: the entries from its own first one on. */
const readLogged = (state: State, session: SessionRow, turnId: string, first: Logged[]): Turn | undefined => {
  let turn: Turn | undefined;
  let after = 0;
  for (let page = first; ; page = state.logs.read(session, after, PAGE)) {
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
      return { ...endedTurn(turn, entry), status: "completed", reply: entry.reply };
    case "turn.cancelled":
      return { ...endedTurn(turn, entry), status: "cancelled" };
    case "turn.failed":
      return { ...endedTurn(turn, entry), status: "failed", error: entry.error };
    default:
      return turn;
  }
};

const endedTurn = (turn: Turn, { at, usage, model }: Extract<Entry, { usage: unknown }>): Turn => ({
  ...turn,
  endedAt: at,
  usage,
  model: model ?? turn.model,
});
