import { NO_POLICY } from "#store/policy.ts";
import { countsOf, hasOpenWork, NOTHING_OPEN } from "#store/rules/agents.ts";
import type { News } from "#store/rules/news.ts";
import { isReply } from "#store/rules/outgoing.ts";
import type { AgentCount, Bookmarks, Counts, OutgoingRecord, Records, Totals } from "#store/rules/records.ts";
import type { GatewayStream, Journal } from "#store/rules/streams.ts";
import type { AgentCounts, UsageCount } from "#store/store.ts";
import type { GatewayEnds } from "./journal-rows.ts";
import {
  agentRecords,
  apiKeyRecords,
  budgetRecords,
  countNotification,
  deliveryRecords,
  erasureRecords,
  eventRecords,
  keyRecords,
  lateAttemptRecords,
  type NotificationCounts,
  notificationRecords,
  outgoingRecords,
  type Shelves,
  scheduleRecords,
  sessionRecords,
  shareRecords,
  turnRecords,
  usageRecords,
} from "./kinds.ts";
import {
  AGENTS,
  API_KEYS,
  BEATS,
  BUDGETS,
  CONTENTS,
  COUNTS,
  ERASURES,
  EVENTS,
  KEYS,
  LATE_ATTEMPTS,
  NOTIFICATIONS,
  OPEN_TURNS,
  OUTGOING,
  SCHEDULES,
  SESSIONS,
  SHARES,
  SUMMARIES,
  TURNS,
  USAGE,
} from "./layouts.ts";
import type { Changed, Layout, RecordTable } from "./table.ts";

/** The numbers of the whole store, because counting the records again would be slow. */
export type State = {
  /** The number of writing transactions, in engines that need it. */
  version: number;
  numbers: { session: number; event: number; place: number; order: number };
  sessions: number;
  /** The bytes of all records except the recorder's. */
  bytes: number;
  shelves: Shelves;
  /** The counts of all agents together. */
  open: Counts;
  announcements: number;
  notifications: NotificationCounts;
  gateway: GatewayEnds;
};

export function newState(): State {
  return {
    version: 0,
    numbers: { session: 0, event: 0, place: 0, order: 0 },
    sessions: 0,
    bytes: 0,
    shelves: { refused: { size: 0, bytes: 0, ended: 0 }, others: { size: 0, bytes: 0, ended: 0 } },
    open: { ...NOTHING_OPEN },
    announcements: 0,
    notifications: { waiting: {}, ended: {} },
    gateway: { first: 1, last: 0 },
  };
}

export function totalsOf({ sessions, bytes, shelves, open, announcements, notifications }: State): Totals {
  const deliveryBytes = shelves.refused.bytes + shelves.others.bytes;
  return {
    sessions,
    turnsQueued: open.queued,
    turnsRunning: open.running,
    eventsQueued: open.openEvents,
    eventsDead: open.deadEvents,
    announcements,
    notifications: notifications.waiting,
    deliveries: shelves.refused.size + shelves.others.size,
    bytes: bytes + deliveryBytes,
    deliveryBytes,
  };
}

/** The bookmarks of a process that has just started. */
export function newBookmarks(): Bookmarks {
  return { isWaitedNext: true, sweptTo: undefined, recorderBytes: Number.MAX_SAFE_INTEGER, policy: NO_POLICY };
}

/** The parts of the records in which engines differ. */
export type Parts = {
  /** Rules change this object in place. */
  state: State;
  bookmarks: Bookmarks;
  /** The table of a layout. It calls `changed` with each change. Without `changed`, it can delete a record that is not loaded. */
  table<R extends object>(layout: Layout<R>, changed?: Changed<R>): RecordTable<R>;
  journal(ordinal: number): Journal;
  gateway: GatewayStream;
};

const NO_NEWS: News[] = [];

/** The records of an engine, in tables. Each table is created at its first use. */
export class TableRecords implements Records {
  readonly #parts: Parts;
  #sessions: Records["sessions"] | undefined;
  #turns: Records["turns"] | undefined;
  #lateAttempts: Records["lateAttempts"] | undefined;
  #events: Records["events"] | undefined;
  #beats: Records["beats"] | undefined;
  #budgets: Records["budgets"] | undefined;
  #schedules: Records["schedules"] | undefined;
  #outgoing: Records["outgoing"] | undefined;
  #notifications: Records["notifications"] | undefined;
  #deliveries: Records["deliveries"] | undefined;
  #contents: Records["contents"] | undefined;
  #keys: Records["keys"] | undefined;
  #summaries: Records["summaries"] | undefined;
  #agents: Records["agents"] | undefined;
  #shares: Records["shares"] | undefined;
  #usage: Records["usage"] | undefined;
  #apiKeys: Records["apiKeys"] | undefined;
  #erasures: Records["erasures"] | undefined;
  #countTable: RecordTable<AgentCount> | undefined;
  #news: News[] = NO_NEWS;

  moment = { now: 0, time: 0 };
  readonly journal: Records["journal"];
  readonly gateway: Records["gateway"];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.journal = parts.journal;
    this.gateway = parts.gateway;
  }

  get sessions(): Records["sessions"] {
    this.#sessions ??= sessionRecords(
      this.#table(SESSIONS, (before, after) => {
        this.#parts.state.sessions += (after ? 1 : 0) - (before ? 1 : 0);
      }),
    );
    return this.#sessions;
  }

  get turns(): Records["turns"] {
    this.#turns ??= turnRecords(this.#table(OPEN_TURNS), this.#table(TURNS));
    return this.#turns;
  }

  get lateAttempts(): Records["lateAttempts"] {
    this.#lateAttempts ??= lateAttemptRecords(this.#table(LATE_ATTEMPTS));
    return this.#lateAttempts;
  }

  get events(): Records["events"] {
    this.#events ??= eventRecords(this.#table(EVENTS));
    return this.#events;
  }

  get beats(): Records["beats"] {
    this.#beats ??= this.#table(BEATS);
    return this.#beats;
  }

  get budgets(): Records["budgets"] {
    this.#budgets ??= budgetRecords(this.#table(BUDGETS));
    return this.#budgets;
  }

  get schedules(): Records["schedules"] {
    this.#schedules ??= scheduleRecords(this.#table(SCHEDULES));
    return this.#schedules;
  }

  get outgoing(): Records["outgoing"] {
    const count = (record: OutgoingRecord | undefined) => (record && isReply(record.message) ? 1 : 0);
    this.#outgoing ??= outgoingRecords(
      this.#table(OUTGOING, (before, after) => {
        this.#parts.state.announcements += count(after) - count(before);
      }),
    );
    return this.#outgoing;
  }

  get notifications(): Records["notifications"] {
    const counts = this.#parts.state.notifications;
    this.#notifications ??= notificationRecords(
      this.#table(NOTIFICATIONS, (before, after) => countNotification(counts, before, after)),
      counts,
    );
    return this.#notifications;
  }

  get deliveries(): Records["deliveries"] {
    this.#deliveries ??= deliveryRecords(this.#parts, this.#parts.state.shelves);
    return this.#deliveries;
  }

  get contents(): Records["contents"] {
    this.#contents ??= this.#table(CONTENTS);
    return this.#contents;
  }

  get keys(): Records["keys"] {
    this.#keys ??= keyRecords(this.#table(KEYS));
    return this.#keys;
  }

  get summaries(): Records["summaries"] {
    this.#summaries ??= this.#table(SUMMARIES);
    return this.#summaries;
  }

  get agents(): Records["agents"] {
    this.#agents ??= agentRecords(this.#table(AGENTS), this.#counts, this.#parts.state.open);
    return this.#agents;
  }

  get shares(): Records["shares"] {
    this.#shares ??= shareRecords(this.#table(SHARES));
    return this.#shares;
  }

  get usage(): Records["usage"] {
    this.#usage ??= usageRecords(this.#table<UsageCount>(USAGE));
    return this.#usage;
  }

  get apiKeys(): Records["apiKeys"] {
    this.#apiKeys ??= apiKeyRecords(this.#table(API_KEYS));
    return this.#apiKeys;
  }

  get erasures(): Records["erasures"] {
    this.#erasures ??= erasureRecords(this.#table(ERASURES));
    return this.#erasures;
  }

  get totals(): Records["totals"] {
    return this.#parts.state;
  }

  stats(): Totals {
    return totalsOf(this.#parts.state);
  }

  get bookmarks(): Bookmarks {
    return this.#parts.bookmarks;
  }

  setBookmarks(change: Partial<Bookmarks>): void {
    Object.assign(this.#parts.bookmarks, change);
  }

  next(series: Parameters<Records["next"]>[0]): number {
    return ++this.#parts.state.numbers[series];
  }

  notify(news: News): void {
    // Most calls have one entry: `push` to an empty array allocates room for seventeen.
    if (this.#news === NO_NEWS) this.#news = [news];
    else this.#news.push(news);
  }

  /** The news for watchers since the last call. */
  takeNews(): readonly News[] {
    const news = this.#news;
    this.#news = NO_NEWS;
    return news;
  }

  agentCounts(agent: string): AgentCounts {
    return countsOf(this.#counts.find(agent), this.agents.find(agent), this.beats.find(agent));
  }

  /** Agents with turns or events that have not ended. */
  openAgents(): string[] {
    return this.#counts.scan(COUNTS.orders.all, {}).flatMap((counts) => (hasOpenWork(counts) ? counts.agent : []));
  }

  get #counts(): RecordTable<AgentCount> {
    this.#countTable ??= this.#table(COUNTS);
    return this.#countTable;
  }

  /** A table whose records count for the bytes of the store. */
  #table<R extends object>(layout: Layout<R>, changed?: Changed<R>): RecordTable<R> {
    const { state, table } = this.#parts;
    const { weigh } = layout;
    if (!weigh && !changed) return table(layout);
    return table(layout, (before, after) => {
      if (weigh) state.bytes += (after ? weigh(after) : 0) - (before ? weigh(before) : 0);
      changed?.(before, after);
    });
  }
}
