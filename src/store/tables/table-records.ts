import type {
  AnnouncementRecord,
  Bookmarks,
  CountChange,
  News,
  OpenTurnRecord,
  Records,
  Stream,
} from "#store/rules/records.ts";
import type { Entry, GatewayEntry } from "#store/store.ts";
import {
  announcementRecords,
  deliveryRecords,
  erasureRecords,
  eventRecords,
  keyRecords,
  lateAttemptRecords,
  type Shelves,
  storedIn,
  turnRecords,
  usageRecords,
} from "./kinds.ts";
import {
  AGENTS,
  type AgentCount,
  ANNOUNCEMENTS,
  API_KEYS,
  BEATS,
  COUNTS,
  DELIVERIES,
  ERASURES,
  EVENTS,
  KEYS,
  LATE_ATTEMPTS,
  OPEN_TURNS,
  SESSIONS,
  SUMMARIES,
  TURNS,
  USAGE,
} from "./layouts.ts";
import type { Changed, Layout, MemoryTable, RecordTable } from "./table.ts";

/** Numbers about the whole store: to count anew takes long. */
export type State = {
  numbers: { session: number; event: number; place: number; order: number };
  sessions: number;
  /** The weight of all but the recorder's. */
  bytes: number;
  shelves: Shelves;
  bookmarks: Bookmarks;
};

export function newState(): State {
  return {
    numbers: { session: 0, event: 0, place: 0, order: 0 },
    sessions: 0,
    bytes: 0,
    shelves: { refused: { size: 0, bytes: 0, ended: 0 }, others: { size: 0, bytes: 0, ended: 0 } },
    bookmarks: { isWaitedNext: true, sweptTo: 0, recorderBytes: Number.MAX_SAFE_INTEGER },
  };
}

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

const NO_NEWS: News[] = [];
const NOTHING_OPEN = { queued: 0, running: 0, compactions: 0, waitingEvents: 0, openEvents: 0, deadEvents: 0 };

/** The records of an engine in this process, in tables. */
export class TableRecords implements Records {
  readonly #state: State;
  readonly #openTurns: MemoryTable<OpenTurnRecord>;
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
    this.deliveries = deliveryRecords((changed) => parts.table(DELIVERIES, changed), this.#state.shelves);
    this.keys = keyRecords(table(KEYS));
    this.summaries = table(SUMMARIES);
    this.usage = usageRecords(table(USAGE));
    this.agents = this.#agentRecords(parts);
    this.beats = storedIn(live(BEATS));
    this.announcements = announcementRecords(this.#announcements);
    this.apiKeys = live(API_KEYS);
    this.erasures = erasureRecords(live(ERASURES));
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

  queue(ordinal: number): ReturnType<Records["queue"]> {
    return this.#openTurns.scan(OPEN_TURNS.orders.queue, { of: ordinal });
  }

  firstInQueue(ordinal: number): ReturnType<Records["firstInQueue"]> {
    return this.#openTurns.first(OPEN_TURNS.orders.queue, ordinal);
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
      ...storedIn(table),
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
      for (name in change) to[name] = (to[name] ?? 0) + (change[name] ?? 0);
    };
    const counts = parts.live(COUNTS, (before, after) => {
      if (!before && after) add(this.#totals, after.counts);
    });
    return {
      ...storedIn(table),
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
        const { queued, running, compactions = 0, waitingEvents } = counts.find(agent)?.counts ?? NOTHING_OPEN;
        return { queued, running, compactions, waitingEvents };
      },
      open: () =>
        counts
          .all()
          .flatMap(({ agent, counts: { queued, running, compactions = 0, waitingEvents } }) =>
            queued + running + compactions + waitingEvents > 0 ? agent : [],
          ),
    };
  }
}
