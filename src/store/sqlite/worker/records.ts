import { Agents } from "#store/live/agents.ts";
import { Announcements } from "#store/live/announcements.ts";
import { OpenTurns } from "#store/live/open-turns.ts";
import { Queues } from "#store/live/queues.ts";
import { apiKeyRecords, beatRecords, compactionRecords, lateAttemptRecords } from "#store/live/small-tables.ts";
import { Scale } from "#store/live/weights.ts";
import { countsOf } from "#store/rules/agents.ts";
import type {
  AgentRecord,
  AnnouncementRecord,
  BeatRecord,
  Bookmarks,
  CountChange,
  News,
  Records,
  Stream,
} from "#store/rules/records.ts";
import type { AgentCounts, ApiKey, Entry } from "#store/store.ts";
import type { Database } from "./database.ts";
import { deliveryTable } from "./deliveries.ts";
import { eventTable } from "./events.ts";
import { gatewayStream } from "./gateway-stream.ts";
import { Journals } from "./journal.ts";
import { keptLive, LiveRows } from "./live-rows.ts";
import { sessionTable } from "./sessions.ts";
import { keyTable, summaryTable, usageTable } from "./small-tables.ts";
import { StateRow } from "./state-row.ts";
import { turnTable } from "./turns.ts";

/**
 * The records of a SQLite store. In memory are what has not ended and what was used last; `flush` writes what was changed, and what it
 * does not find in memory it reads. After a batch that was rolled back another one takes its place.
 */
export class SqliteRecords implements Records {
  readonly #state: StateRow;
  readonly #scale = new Scale();
  readonly #queues = new Queues();
  readonly #live: LiveRows;
  readonly #journals: Journals;
  readonly #agents = new Agents();
  readonly #announcements = new Announcements(this.#scale);
  readonly #erasures: Set<number>;
  readonly #written: readonly { flush(): void }[];
  readonly #held: readonly { trim(): void }[];
  #news: News[] = [];
  #changedAgents = new Set<string>();

  moment = { now: 0, time: 0 };
  readonly sessions: Records["sessions"];
  readonly turns: Records["turns"];
  readonly events: Records["events"];
  readonly deliveries: Records["deliveries"];
  readonly keys: Records["keys"];
  readonly summaries: Records["summaries"];
  readonly usage: Records["usage"];
  readonly gateway: Records["gateway"];
  readonly agents: Records["agents"];
  readonly beats: Records["beats"];
  readonly announcements: Records["announcements"];
  readonly apiKeys: Records["apiKeys"];
  readonly erasures: Records["erasures"];
  readonly compactions = compactionRecords(this.#queues);
  /** They end with the process: nobody else runs them. */
  readonly lateAttempts: Records["lateAttempts"];

  constructor(db: Database, before?: SqliteRecords) {
    this.#state = new StateRow(db);
    const { kept } = this.#state;
    this.#scale.bytes = kept.bytes;
    const live = new LiveRows(db);
    this.#live = live;
    this.#journals = new Journals(db, this.#scale);
    const open = new OpenTurns(this.#queues);
    const journal = (ordinal: number): Stream<Entry> => this.journal(ordinal);
    const sessions = sessionTable(db, this.#scale, kept);
    const turns = turnTable(db, { scale: this.#scale, live, open, journal });
    const events = eventTable(db, this.#scale);
    const deliveries = deliveryTable(db, kept.shelves);
    const keys = keyTable(db, this.#scale);
    const summaries = summaryTable(db, this.#scale);
    const usage = usageTable(db, this.#scale);
    const tables = [sessions, turns, events, deliveries, keys, summaries, usage].map(({ table }) => table);
    this.#held = tables;
    this.#written = [...tables, live, this.#journals];
    this.sessions = sessions.records;
    this.turns = turns.records;
    this.events = events.records;
    this.deliveries = deliveries.records;
    this.keys = keys.records;
    this.summaries = summaries.records;
    this.usage = usage.records;
    this.gateway = gatewayStream(this.#journals, kept.gateway);
    this.agents = this.#agentRecords();
    this.beats = this.#beatRecords();
    this.announcements = this.#announcementRecords();
    this.apiKeys = this.#apiKeyRecords();
    this.#erasures = new Set(live.load<{ ordinal: number }>("erasure").map(({ ordinal }) => ordinal));
    this.erasures = this.#erasureRecords();
    this.lateAttempts = before?.lateAttempts ?? lateAttemptRecords();
    // What was loaded weighs nothing more than it did.
    this.#scale.bytes = kept.bytes;
    this.#changedAgents = new Set(this.#agents.names());
  }

  get totals(): Records["totals"] {
    const { sessions, shelves } = this.#state.kept;
    const { queued, running, openEvents, deadEvents } = this.#agents.totals;
    return {
      sessions,
      turnsQueued: queued,
      turnsRunning: running,
      eventsQueued: openEvents,
      eventsDead: deadEvents,
      announcements: this.#announcements.size,
      deliveries: shelves.refused.size + shelves.others.size,
      bytes: this.#scale.bytes,
      deliveryBytes: shelves.refused.bytes + shelves.others.bytes,
    };
  }

  get bookmarks(): Bookmarks {
    return this.#state.kept.bookmarks;
  }

  setBookmarks(change: Partial<Bookmarks>): void {
    Object.assign(this.#state.kept.bookmarks, change);
  }

  next(series: Parameters<Records["next"]>[0]): number {
    return ++this.#state.kept.numbers[series];
  }

  last(series: "event"): number {
    return this.#state.kept.numbers[series];
  }

  notify(news: News): void {
    this.#news.push(news);
  }

  journal(ordinal: number): Stream<Entry> {
    return this.#journals.of<Entry>(ordinal);
  }

  queue(ordinal: number): ReturnType<Records["queue"]> {
    return this.#queues.of(ordinal);
  }

  /** The news for watchers since the last call. */
  takeNews(): readonly News[] {
    const news = this.#news;
    if (news.length > 0) this.#news = [];
    return news;
  }

  /** How the agents are of which something has changed since the last call. */
  takeChangedAgents(): [agent: string, counts: AgentCounts][] {
    const changed = [...this.#changedAgents].map((agent): [string, AgentCounts] => [agent, countsOf(this, agent)]);
    this.#changedAgents.clear();
    return changed;
  }

  /** The channels of all announcements. */
  channels(): string[] {
    return this.#announcements.channels();
  }

  /** Writes what was changed. */
  flush(): void {
    for (const one of this.#written) one.flush();
    this.#state.kept.bytes = this.#scale.bytes;
    this.#state.flush();
  }

  /** Lets go of what is held for no reason but that it was used. */
  trim(): void {
    for (const table of this.#held) table.trim();
  }

  #agentRecords(): Records["agents"] {
    const { records } = this.#agents;
    for (const { agent, counts } of this.#live.load<{ agent: string; counts: CountChange }>("counts")) {
      records.count(agent, counts);
    }
    const kept = keptLive(this.#live, "agent", records, ({ agent }: AgentRecord) => agent);
    return {
      ...kept,
      put: (record) => {
        kept.put(record);
        this.#changedAgents.add(record.agent);
      },
      count: (agent, change) => {
        records.count(agent, change);
        this.#live.put("counts", agent, { agent, counts: this.#agents.allCounts(agent) });
        this.#changedAgents.add(agent);
      },
    };
  }

  #beatRecords(): Records["beats"] {
    const kept = keptLive(this.#live, "beat", beatRecords(), ({ agent }: BeatRecord) => agent);
    return {
      ...kept,
      put: (record) => {
        kept.put(record);
        this.#changedAgents.add(record.agent);
      },
    };
  }

  #announcementRecords(): Records["announcements"] {
    const idOf = ({ announcement }: AnnouncementRecord) => announcement.turnId;
    const kept = keptLive(this.#live, "announcement", this.#announcements.records, idOf);
    return {
      ...kept,
      delete: (record) => {
        kept.delete(record);
        this.#live.delete("announcement", idOf(record));
      },
    };
  }

  #apiKeyRecords(): Records["apiKeys"] {
    const kept = keptLive(this.#live, "key", apiKeyRecords(), ({ keyId }: ApiKey) => keyId);
    return {
      ...kept,
      delete: (keyId) => {
        kept.delete(keyId);
        this.#live.delete("key", keyId);
      },
    };
  }

  #erasureRecords(): Records["erasures"] {
    return {
      first: () => this.#erasures.values().next().value,
      add: (ordinal) => {
        this.#erasures.add(ordinal);
        this.#live.put("erasure", String(ordinal), { ordinal });
      },
      delete: (ordinal) => {
        this.#erasures.delete(ordinal);
        this.#live.delete("erasure", String(ordinal));
      },
    };
  }
}
