import {
  type AnnouncementRecord,
  type Bookmarks,
  type CompactionRecord,
  type CountChange,
  type DeliveryRecord,
  type EventRecord,
  isOfStranger,
  isOpen,
  type KeyRecord,
  type LateAttempt,
  type Lease,
  type News,
  type OpenTurnRecord,
  type Records,
  type Stream,
  type TurnRecord,
} from "#store/rules/records.ts";
import type { Entry, GatewayEntry, UsageCount } from "#store/store.ts";
import { HOUR, NO_COUNTS } from "#store/usage-counts.ts";
import {
  AGENTS,
  type AgentCount,
  ANNOUNCEMENTS,
  API_KEYS,
  BEATS,
  COMPACTIONS,
  COUNTS,
  counterOf,
  DELIVERIES,
  ERASURES,
  EVENTS,
  KEYS,
  LATE_ATTEMPTS,
  lateAttemptKey,
  OPEN_TURNS,
  SESSIONS,
  SUMMARIES,
  TURNS,
  USAGE,
  weighDelivery,
} from "./layouts.ts";
import { type Changed, type Layout, MemoryTable, type Order, type RecordTable } from "./tables.ts";

/** The recorder's deliveries of refused strangers, or all others. `ended`: the number that may be let go. */
type Shelf = { size: number; bytes: number; ended: number };

/** Numbers about the whole store: to count anew takes long. */
export type State = {
  numbers: { session: number; event: number; place: number; order: number };
  sessions: number;
  /** The weight of all but the recorder's. */
  bytes: number;
  shelves: { refused: Shelf; others: Shelf };
  bookmarks: Bookmarks;
};

export const newState = (): State => ({
  numbers: { session: 0, event: 0, place: 0, order: 0 },
  sessions: 0,
  bytes: 0,
  shelves: { refused: { size: 0, bytes: 0, ended: 0 }, others: { size: 0, bytes: 0, ended: 0 } },
  bookmarks: { isWaitedNext: true, sweptTo: 0, recorderBytes: Number.MAX_SAFE_INTEGER },
});

/** The parts of the records in which engines differ. */
type Parts = {
  state: State;
  /** Makes a table that may become large. */
  table<R extends object>(layout: Layout<R>, changed: Changed<R>): RecordTable<R>;
  /** Makes a table that is held in memory whole. Each record that is already in its file counts as a change. */
  live<R extends object>(layout: Layout<R>, changed?: Changed<R>): MemoryTable<R>;
  journal(ordinal: number): Stream<Entry>;
  gateway: Stream<GatewayEntry>;
};

/** The number of deliveries that are looked up together when the oldest are let go. */
const ENDED_TOGETHER = 64;
const COUNTERS_TOGETHER = 1_000;
const NO_NEWS: News[] = [];
const NOTHING_OPEN = { queued: 0, running: 0, waitingEvents: 0, openEvents: 0, deadEvents: 0 };

/** The records of an engine in this process, in tables. */
export class LocalRecords implements Records {
  readonly #state: State;
  readonly #openTurns: MemoryTable<OpenTurnRecord>;
  readonly #compactions = new MemoryTable<CompactionRecord>(COMPACTIONS);
  readonly #announcements: MemoryTable<AnnouncementRecord>;
  /** The counts of all agents together. */
  readonly #totals = { ...NOTHING_OPEN };
  #news: News[] = NO_NEWS;

  moment = { now: 0, time: 0 };
  readonly journal: Records["journal"];
  readonly gateway: Records["gateway"];
  readonly sessions: Records["sessions"];
  readonly turns: Records["turns"];
  readonly events: Records["events"];
  readonly deliveries: Records["deliveries"];
  readonly keys: Records["keys"];
  readonly summaries: Records["summaries"];
  readonly usage: Records["usage"];
  readonly agents: Records["agents"];
  readonly beats: Records["beats"];
  readonly announcements: Records["announcements"];
  readonly apiKeys: Records["apiKeys"];
  readonly erasures: Records["erasures"];
  readonly compactions: Records["compactions"];
  readonly lateAttempts: Records["lateAttempts"];

  constructor(parts: Parts) {
    this.#state = parts.state;
    const table = <R extends object>(layout: Layout<R>) => parts.table(layout, this.#weighing(layout));
    const live = <R extends object>(layout: Layout<R>) => parts.live(layout, this.#weighing(layout));
    this.#openTurns = live(OPEN_TURNS);
    this.#announcements = live(ANNOUNCEMENTS);
    this.journal = parts.journal;
    this.gateway = parts.gateway;
    this.sessions = this.#sessionRecords(parts);
    this.turns = turnRecords(this.#openTurns, table(TURNS));
    this.events = eventRecords(table(EVENTS));
    this.deliveries = deliveryRecords(parts, this.#state.shelves);
    this.keys = keyRecords(table(KEYS));
    this.summaries = table(SUMMARIES);
    this.usage = usageRecords(table(USAGE));
    this.agents = this.#agentRecords(parts);
    this.beats = leased(live(BEATS));
    this.announcements = announcementRecords(this.#announcements);
    this.apiKeys = live(API_KEYS);
    this.erasures = erasureRecords(live(ERASURES));
    this.compactions = leased(this.#compactions);
    this.lateAttempts = lateAttemptRecords(live(LATE_ATTEMPTS));
  }

  get totals(): Records["totals"] {
    const { sessions, bytes, shelves } = this.#state;
    const deliveryBytes = shelves.refused.bytes + shelves.others.bytes;
    const { queued, running, openEvents, deadEvents } = this.#totals;
    return {
      sessions,
      turnsQueued: queued,
      turnsRunning: running,
      eventsQueued: openEvents,
      eventsDead: deadEvents,
      announcements: this.#announcements.size,
      deliveries: shelves.refused.size + shelves.others.size,
      bytes: bytes + deliveryBytes,
      deliveryBytes,
    };
  }

  get bookmarks(): Bookmarks {
    return this.#state.bookmarks;
  }

  setBookmarks(change: Partial<Bookmarks>): void {
    Object.assign(this.#state.bookmarks, change);
  }

  next(series: Parameters<Records["next"]>[0]): number {
    return ++this.#state.numbers[series];
  }

  last(series: "event"): number {
    return this.#state.numbers[series];
  }

  notify(news: News): void {
    // Most have one: an array that a push begins has room for seventeen.
    if (this.#news === NO_NEWS) this.#news = [news];
    else this.#news.push(news);
  }

  /** The news for watchers since the last call. */
  takeNews(): readonly News[] {
    const news = this.#news;
    this.#news = NO_NEWS;
    return news;
  }

  queue(ordinal: number): ReturnType<Records["queue"]> {
    const turns = this.#openTurns.scan(OPEN_TURNS.orders.queue, { of: ordinal });
    if (this.#compactions.size === 0) return turns;
    const compactions = this.#compactions.scan(COMPACTIONS.orders.queue, { of: ordinal });
    return [...turns, ...compactions].sort((a, b) => a.place - b.place);
  }

  firstInQueue(ordinal: number): ReturnType<Records["firstInQueue"]> {
    const turn = this.#openTurns.first(OPEN_TURNS.orders.queue, ordinal);
    if (this.#compactions.size === 0) return turn;
    const compaction = this.#compactions.first(COMPACTIONS.orders.queue, ordinal);
    return turn && compaction && turn.place > compaction.place ? compaction : (turn ?? compaction);
  }

  /** The channels of all announcements. */
  channels(): string[] {
    return [...new Set(this.#announcements.all().map(({ announcement }) => announcement.channel))];
  }

  #weighing<R>({ weigh = () => 0 }: Layout<R>): Changed<R> {
    const state = this.#state;
    return (before, after) => {
      state.bytes += (after ? weigh(after) : 0) - (before ? weigh(before) : 0);
    };
  }

  #sessionRecords(parts: Parts): Records["sessions"] {
    const weigh = this.#weighing(SESSIONS);
    const table = parts.table(SESSIONS, (before, after) => {
      this.#state.sessions += (after ? 1 : 0) - (before ? 1 : 0);
      weigh(before, after);
    });
    const { all, ofAgent } = SESSIONS.orders;
    return {
      ...kept(table),
      at: (ordinal, sessionId) => {
        const found = table.find(sessionId);
        return found?.session.ordinal === ordinal ? found : undefined;
      },
      before: (below, limit, of) =>
        table.scan(of === undefined ? all : ofAgent, { of, below, limit, newestFirst: true }),
      after: (above, limit) => table.scan(all, { above, limit }),
    };
  }

  #agentRecords(parts: Parts): Records["agents"] {
    const table = parts.live(AGENTS);
    const add = (to: AgentCount["counts"], change: CountChange): void => {
      let name: keyof CountChange;
      for (name in change) to[name] += change[name] ?? 0;
    };
    const counts = parts.live(COUNTS, (before, after) => {
      if (!before && after) add(this.#totals, after.counts);
    });
    return {
      ...kept(table),
      // Counts are changed in their place: nobody has them but the table.
      count: (agent, change) => {
        const known = counts.find(agent);
        if (known) {
          add(known.counts, change);
          add(this.#totals, change);
        }
        counts.put(known ?? { agent, counts: { ...NOTHING_OPEN, ...change } });
      },
      counts: (agent) => {
        const { queued, running, waitingEvents } = counts.find(agent)?.counts ?? NOTHING_OPEN;
        return { queued, running, waitingEvents };
      },
      open: () =>
        counts
          .all()
          .flatMap(({ agent, counts: { queued, running, waitingEvents } }) =>
            queued + running + waitingEvents > 0 ? agent : [],
          ),
    };
  }
}

const turnRecords = (open: MemoryTable<OpenTurnRecord>, ended: RecordTable<TurnRecord>): Records["turns"] => {
  const { waited, unwaited, due } = OPEN_TURNS.orders;
  return {
    find: (turnId) => open.find(turnId) ?? ended.find(turnId),
    put: (record) => {
      if (isOpen(record)) {
        open.put(record);
        return;
      }
      open.delete(record.turn.turnId);
      ended.put(record);
    },
    delete: ({ turn: { turnId } }) => {
      open.delete(turnId);
      ended.delete(turnId);
    },
    open: (agent) => open.filter(({ turn }) => agent === undefined || turn.agent === agent),
    before: (below, limit) => {
      const unfinished: TurnRecord[] = open.filter(({ turn }) => below === undefined || turn.turnId < below);
      const found = unfinished.concat(ended.scan(TURNS.orders.all, { below, limit, newestFirst: true }));
      return found.sort((a, b) => (a.turn.turnId < b.turn.turnId ? 1 : -1)).slice(0, limit);
    },
    readyAgents: () => [...new Set([...open.groups(waited), ...open.groups(unwaited)])] as string[],
    firstReady: (of, isWaited) => open.first(isWaited ? waited : unwaited, of),
    dueBy: (time) => open.scan(due, { upTo: time }),
    nextDueAt: () => open.first(due)?.open.dueAt,
    leaseEnded: (time) => open.filter(({ open: { lease } }) => lease !== undefined && lease.endsAt <= time),
  };
};

const eventRecords = (table: RecordTable<EventRecord>): Records["events"] => {
  const { all, free, ended } = EVENTS.orders;
  return {
    ...kept(table),
    free: (of, above, limit) => table.scan(free, { of, above, limit }),
    before: newestFirst(table, all),
    endedBefore: (below, limit) => table.scan(ended, { below, limit }),
  };
};

const isEnded = (record: DeliveryRecord | undefined): 0 | 1 => (record?.endedOrder === undefined ? 0 : 1);

const deliveryRecords = (parts: Parts, shelves: State["shelves"]): Records["deliveries"] => {
  const shelfOf = (ofStrangers: boolean) => (ofStrangers ? shelves.refused : shelves.others);
  const table = parts.table(DELIVERIES, (before, after) => {
    const record = after ?? before;
    const shelf = shelfOf(record !== undefined && isOfStranger(record));
    shelf.size += (after ? 1 : 0) - (before ? 1 : 0);
    shelf.ended += isEnded(after) - isEnded(before);
    if (before?.delivery === after?.delivery) return;
    shelf.bytes += (after ? weighDelivery(after) : 0) - (before ? weighDelivery(before) : 0);
  });
  const { all, ended } = DELIVERIES.orders;
  /** The ids of the oldest deliveries that may go, of refused strangers and others: a delivery that ends later goes later. */
  const oldest: [refused: string[], others: string[]] = [[], []];
  return {
    ...kept(table),
    shelf: shelfOf,
    firstEnded: (of) => {
      if (shelfOf(of).ended === 0) return undefined;
      const ids = oldest[of ? 0 : 1];
      for (; ids[0] !== undefined; ids.shift()) {
        const first = table.find(ids[0]);
        if (first) return first;
      }
      const found = table.scan(ended, { of, limit: ENDED_TOGETHER });
      ids.push(...found.map(({ delivery }) => delivery.deliveryId));
      return found[0];
    },
    before: newestFirst(table, all),
  };
};

const keyRecords = (table: RecordTable<KeyRecord>): Records["keys"] => ({
  ...kept(table),
  endedBy: (upTo, limit) => table.scan(KEYS.orders.byEnd, { upTo, limit }),
});

const usageRecords = (table: RecordTable<UsageCount>): Records["usage"] => {
  const { byHour } = USAGE.orders;
  return {
    // A counter is changed in its place: nobody has it but the table.
    add: (of, change) => {
      const count = table.find(counterOf(of)) ?? { ...of, ...NO_COUNTS };
      let name: keyof typeof change;
      for (name in change) count[name] += change[name] ?? 0;
      table.put(count);
    },
    nextHour: (from) => table.scan(byHour, { above: from - 1, limit: 1 })[0]?.hour,
    between: (from, below, agent) =>
      table
        .scan(byHour, { above: from - 1, below })
        .filter((count) => agent === undefined || count.agent === agent)
        .map((count) => ({ ...count })),
    deleteEndedBy: (time) => {
      for (const count of table.scan(byHour, { upTo: time - HOUR, limit: COUNTERS_TOGETHER })) {
        table.delete(counterOf(count));
      }
    },
  };
};

const announcementRecords = (table: MemoryTable<AnnouncementRecord>): Records["announcements"] => {
  const { ofSession, ready, due } = ANNOUNCEMENTS.orders;
  return {
    ...leased(table),
    ofSession: (of) => table.scan(ofSession, { of }),
    readyChannels: () => table.groups(ready) as string[],
    firstReady: (of) => table.first(ready, of),
    dueBy: (time) => table.scan(due, { upTo: time }),
    nextDueAt: () => table.first(due)?.dueAt,
  };
};

const lateAttemptRecords = (table: MemoryTable<LateAttempt>): Records["lateAttempts"] => ({
  ...kept(table),
  find: (turnId, fence) => table.find(lateAttemptKey(turnId, fence)),
  endedBy: (time) => table.filter(({ endsAt }) => endsAt <= time),
});

const erasureRecords = (table: MemoryTable<{ ordinal: number }>): Records["erasures"] => ({
  first: () => table.all()[0]?.ordinal,
  add: (ordinal) => table.put({ ordinal }),
  delete: (ordinal) => table.delete(ordinal),
});

/** The questions that all records share. */
const kept = <R extends object>(table: RecordTable<R>) => ({
  find: (key: string) => table.find(key),
  put: (record: R) => table.put(record),
  delete: (record: R) => table.delete(table.keyOf(record)),
});

const newestFirst =
  <R extends object>(table: RecordTable<R>, order: Order) =>
  (below: number, limit: number): R[] =>
    table.scan(order, { below, limit, newestFirst: true });

/** The questions that all records with a lease share. */
const leased = <R extends { readonly lease: Lease | undefined }>(table: MemoryTable<R>) => ({
  ...kept(table),
  leaseEnded: (time: number) => table.filter(({ lease }) => lease !== undefined && lease.endsAt <= time),
});
