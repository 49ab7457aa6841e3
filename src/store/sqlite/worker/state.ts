import type { Entry, SessionRef } from "#store/store.ts";
import { type KeptNews, lengthOfAll } from "../gateway-codec.ts";
import type { News } from "../messages.ts";
import { AgentCounters } from "./agent-counters.ts";
import { Announcements } from "./announcements.ts";
import { ApiKeys } from "./api-keys.ts";
import { Beats } from "./beats.ts";
import type { Database } from "./database.ts";
import { DeliveryRing } from "./delivery-ring.ts";
import { EndedTurns } from "./ended-turns.ts";
import { ErasingSessions } from "./erasing-sessions.ts";
import { EventTable } from "./event-table.ts";
import { GatewayLog } from "./gateway-log.ts";
import { IdempotencyKeys } from "./idempotency-keys.ts";
import { Journal } from "./journal.ts";
import { LateAttempts } from "./late-attempts.ts";
import { LEASE_MS } from "./lost-turns.ts";
import { OpenTurns } from "./open-turns.ts";
import type { Moment } from "./parts.ts";
import { ReadyTurns } from "./ready-turns.ts";
import type { CompactionRow, SessionRow } from "./rows.ts";
import { Sessions } from "./sessions.ts";
import { Summaries } from "./summaries.ts";
import { SweepPlaces } from "./sweep-places.ts";
import { TotalsRow } from "./totals.ts";
import { UsageCounters } from "./usage-counters.ts";

/**
 * Everything the worker holds beside the file: what has not ended, and what is written together at the end of a batch. It is loaded from
 * the file, and thrown away and loaded anew when a batch was rolled back.
 */
export const loadState = (db: Database, moment: Moment) => {
  const totals = new TotalsRow(db);
  const agents = new AgentCounters(db);
  const parts = { db, totals, agents, moment };
  const sessions = new Sessions(parts);
  const turns = new OpenTurns(parts, sessions);
  const events = new EventTable(parts, turns.list());
  const kept = {
    sessions,
    journal: new Journal(parts),
    turns,
    ended: new EndedTurns(parts),
    erasing: new ErasingSessions(parts),
    summaries: new Summaries(parts),
    usage: new UsageCounters(parts),
    idempotency: new IdempotencyKeys(parts),
    deliveries: new DeliveryRing(
      parts,
      new Set([...turns.list().map((turn) => turn.deliveryId), ...events.openDeliveries()]),
    ),
    events,
    gateway: new GatewayLog(parts),
    beats: new Beats(parts),
    agents,
    totals,
  };
  return {
    db,
    moment,
    sweeps: new SweepPlaces(),
    ...kept,
    announcements: new Announcements(parts),
    apiKeys: new ApiKeys(parts),
    ready: new ReadyTurns(turns.list()),
    /** Places of compactions in queues. They are the process's own: a new one begins without any. */
    compactions: new Map<string, CompactionRow>(),
    late: new LateAttempts(),
    /** What watchers are to be told when the batch is kept. */
    news: [] as News[],
    /** The place of the call that runs, among those that are answered together. */
    at: 0,
    /** Entries that are told of with the next `tell`. */
    untold: [] as Entry[],
    untoldGateway: [] as KeptNews[],
    /** In the order in which they are written at the end of a batch. */
    kept: Object.values(kept) as readonly { flush(): void }[],
  };
};

export type State = ReturnType<typeof loadState>;

/** What the file says, after a batch was rolled back. Leases go on; compactions lose their places, and will find that out. */
export const reloadState = (before: State, time: number): State => {
  const state = loadState(before.db, { time, offset: before.moment.offset });
  for (const row of state.turns.running.list()) {
    row.leaseEnds = before.turns.get(row.turnId)?.leaseEnds ?? time + LEASE_MS;
  }
  state.late = before.late;
  return state;
};

/** Writes all that waits for the end of the batch. */
export const flush = (state: State): void => {
  for (const part of state.kept) part.flush();
};

/** Appends to the session's journal; watchers learn of it at the next `tell`. The entries get their `seq`. `isNew`: with them begins a turn. */
export const append = (state: State, session: SessionRow, entries: readonly Entry[], isNew = false): void => {
  state.journal.append(session, entries, isNew);
  state.sessions.touch(session);
  for (const entry of entries) state.untold.push(entry);
};

/** Tells of the entries that were appended to this session since the last time. */
export const tell = (state: State, session: SessionRef): void => {
  const entries = state.untold;
  state.untold = [];
  state.news.push({ at: state.at, kind: "entries", session: refOf(session), entries });
};

/** The main side tells of the entries that were appended since the last time: it makes them of its own order. */
export const forgetTold = (state: State): void => {
  state.untold = [];
};

export const tellDeleted = (state: State, session: SessionRef, end: { seq: number; at: number }): void => {
  state.news.push({ at: state.at, kind: "deleted", session: refOf(session), end });
};

/** Tells of the entries that were appended to the gateway's stream since the last time. */
export const tellGateway = (state: State): void => {
  if (state.untoldGateway.length === 0) return;
  const news = state.untoldGateway;
  state.untoldGateway = [];
  state.news.push({ at: state.at, kind: "gateway", first: state.gateway.last - lengthOfAll(news) + 1, news });
};

/** Tells that something can be begun: once for a call is enough. */
export const tellOf = (state: State, kind: "work" | "beat" | "announcement"): void => {
  const last = state.news.at(-1);
  if (last?.kind !== kind || last.at !== state.at) state.news.push({ at: state.at, kind });
};

export const tellCancel = (state: State, turnId: string): void => {
  state.news.push({ at: state.at, kind: "cancel", turnId });
};

export const tellCompaction = (state: State, compactionId: string): void => {
  state.news.push({ at: state.at, kind: "compaction", compactionId });
};

const refOf = ({ sessionId, agent, ordinal, contextBytes }: SessionRef): SessionRef => {
  return { sessionId, agent, ordinal, contextBytes };
};
