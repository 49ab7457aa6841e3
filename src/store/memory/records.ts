import type { Clock } from "#kit/clock.ts";
import { Agents } from "#store/live/agents.ts";
import { Announcements } from "#store/live/announcements.ts";
import { OpenTurns } from "#store/live/open-turns.ts";
import { Queues } from "#store/live/queues.ts";
import {
  apiKeyRecords,
  beatRecords,
  compactionRecords,
  keyRecords,
  lateAttemptRecords,
  summaryRecords,
} from "#store/live/small-tables.ts";
import { Scale, weighEntry } from "#store/live/weights.ts";
import type { Bookmarks, News, Records } from "#store/rules/records.ts";
import type { Entry, GatewayEntry } from "#store/store.ts";
import { Deliveries } from "./deliveries.ts";
import { Events } from "./events.ts";
import { Sessions } from "./sessions.ts";
import { ArrayStream } from "./stream.ts";
import { turnRecords } from "./turns.ts";
import { usageRecords } from "./usage.ts";

/** The records of one memory store: Maps, and arrays in order. */
export class MemoryRecords implements Records {
  readonly #clock: Clock;
  readonly #scale = new Scale();
  readonly #queues = new Queues();
  readonly #sessions = new Sessions(this.#scale);
  readonly #announcements = new Announcements(this.#scale);
  readonly #deliveries = new Deliveries();
  readonly #agents = new Agents();
  readonly #journals = new Map<number, ArrayStream<Entry>>();
  readonly #erasures = new Set<number>();
  readonly #numbers = { session: 0, event: 0, place: 0, order: 0 };
  #news: News[] = [];

  readonly bookmarks: Bookmarks = { isWaitedNext: true, sweptTo: 0, recorderBytes: Infinity };
  readonly sessions = this.#sessions.records;
  readonly turns = turnRecords(this.#scale, new OpenTurns(this.#queues));
  readonly events = new Events(this.#scale).records;
  readonly announcements = this.#announcements.records;
  readonly deliveries = this.#deliveries.records;
  readonly agents = this.#agents.records;
  readonly usage = usageRecords(this.#scale);
  readonly gateway = new ArrayStream<GatewayEntry>(() => {});
  readonly compactions = compactionRecords(this.#queues);
  readonly summaries = summaryRecords(this.#scale);
  readonly lateAttempts = lateAttemptRecords();
  readonly keys = keyRecords(this.#scale);
  readonly beats = beatRecords();
  readonly apiKeys = apiKeyRecords();
  readonly erasures: Records["erasures"] = {
    first: () => this.#erasures.values().next().value,
    add: (ordinal) => {
      this.#erasures.add(ordinal);
    },
    delete: (ordinal) => {
      this.#erasures.delete(ordinal);
      this.#journals.delete(ordinal);
    },
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get moment(): { now: number; time: number } {
    return { now: this.#clock.now(), time: this.#clock.monotonic() };
  }

  get totals(): Records["totals"] {
    const { queued, running, openEvents, deadEvents } = this.#agents.totals;
    return {
      sessions: this.#sessions.size,
      turnsQueued: queued,
      turnsRunning: running,
      eventsQueued: openEvents,
      eventsDead: deadEvents,
      announcements: this.#announcements.size,
      deliveries: this.#deliveries.size,
      bytes: this.#scale.bytes,
      deliveryBytes: this.#deliveries.bytes,
    };
  }

  setBookmarks(change: Partial<Bookmarks>): void {
    Object.assign(this.bookmarks, change);
  }

  next(series: Parameters<Records["next"]>[0]): number {
    return ++this.#numbers[series];
  }

  last(series: "event"): number {
    return this.#numbers[series];
  }

  notify(news: News): void {
    this.#news.push(news);
  }

  /** The news for watchers since the last call. */
  takeNews(): readonly News[] {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  journal(ordinal: number): ArrayStream<Entry> {
    let journal = this.#journals.get(ordinal);
    if (!journal) {
      journal = new ArrayStream<Entry>(this.#weighEntry);
      this.#journals.set(ordinal, journal);
    }
    return journal;
  }

  queue(ordinal: number): ReturnType<Records["queue"]> {
    return this.#queues.of(ordinal);
  }

  readonly #weighEntry = (before: Entry | undefined, after: Entry | undefined): void =>
    this.#scale.weigh(before ? weighEntry(before) : 0, after ? weighEntry(after) : 0);
}
