import type { News } from "#store/rules/news.ts";
import type {
  AgentCount,
  AgentRecord,
  BeatRecord,
  Bookmarks,
  DeliveryRecord,
  OpenTurnRecord,
  Records,
  SessionRecord,
} from "#store/rules/records.ts";
import { idleAt } from "#store/rules/retention.ts";
import { findShare } from "#store/rules/shares.ts";
import type { Lane, UsageCount } from "#store/store.ts";
import { gatewayStream } from "#store/tables/journal-rows.ts";
import {
  AGENTS,
  API_KEYS,
  BEATS,
  COUNTS,
  counterOf,
  DELIVERIES,
  hourOf,
  LANE_ORDERS,
  minuteOf,
  OPEN_TURNS,
  OUTGOING,
  SESSIONS,
  TURNS,
} from "#store/tables/layouts.ts";
import type { Changed, Key, Layout } from "#store/tables/table.ts";
import { type Parts, type State, TableRecords } from "#store/tables/table-records.ts";
import { encodeText } from "../texts.ts";
import { turnsAhead } from "./ahead.ts";
import { Journals } from "./journal.ts";
import type { Memory } from "./memory.ts";
import { Rates } from "./rates.ts";
import { integer, json, quote, type Row, sql, textList, truth } from "./sql.ts";
import { FIRST_OF_GROUP, PostgresTable } from "./table.ts";
import type { NamedSql, Statement, Transaction } from "./transaction.ts";

/** The tables whose records a process remembers, because rules use them to find other records. */
const REMEMBERED: readonly object[] = [SESSIONS, OPEN_TURNS, TURNS, BEATS, OUTGOING];
/** The number of usage counters that a call reads together. */
const COUNTERS_A_PAGE = 10_000;

type AnyTable = { readonly changed: ReadonlyMap<Key, object | undefined> };

/** The changes of a transaction. */
export type CommittedChanges = {
  readonly news: readonly News[];
  readonly state: State;
  readonly counts: readonly AgentCount[];
  readonly agents: readonly AgentRecord[];
  readonly beats: readonly BeatRecord[];
  readonly areKeysChanged: boolean;
  /** True if an agent was paused or resumed. */
  readonly areAgentsPaused: boolean;
};

/** The records of one transaction. Each pass begins with the state and the records as they were loaded. */
export class TransactionRecords {
  readonly transaction: Transaction;
  readonly #memory: Memory;
  readonly isWriting: boolean;
  readonly #tables = new Map<object, AnyTable>();
  readonly #journals: Journals;
  readonly rates: Rates;
  #state: State;
  /** The ordinal of the newest session before the transaction. */
  #newest = 0;
  /** The bookmarks that the last pass has set. The others are in memory, because concurrent transactions may set them. */
  #bookmarks: Partial<Bookmarks> = {};
  #records: PostgresRecords | undefined;
  #changes: CommittedChanges | undefined;

  constructor(transaction: Transaction, memory: Memory, isWriting: boolean) {
    this.isWriting = isWriting;
    this.transaction = transaction;
    this.#memory = memory;
    this.rates = new Rates(transaction);
    this.#journals = new Journals(transaction, (bytes) => {
      this.#state.bytes += bytes;
    });
    this.#state = JSON.parse(memory.state);
  }

  /** Begins a pass. */
  begin(): PostgresRecords {
    this.transaction.reset();
    this.#state = JSON.parse(this.transaction.state ?? this.#memory.state);
    this.#newest = this.#state.numbers.session;
    this.#bookmarks = Object.create(this.#memory.bookmarks);
    this.#records = new PostgresRecords(this, {
      state: this.#state,
      bookmarks: this.#bookmarks as Bookmarks,
      table: this.#tableWith,
      journal: (ordinal) => this.#journals.of(ordinal),
      gateway: gatewayStream(this.#journals, this.#state.gateway),
    });
    return this.#records;
  }

  /** The statements that save the changes of the last pass. */
  saved(): NamedSql[] {
    const saved = this.transaction.saved();
    const isChanged = this.#journals.isChanged || [...this.#tables.values()].some(({ changed }) => changed.size > 0);
    if (!isChanged && JSON.stringify(this.#state) === this.transaction.state) return saved;
    this.#state.version++;
    return [...saved, { name: "gateway_state_update", sql: sql`update gateway_state set body = ${json(this.#state)}` }];
  }

  /** The changes of the last pass. */
  changes(): CommittedChanges {
    const agents = this.tableOf<AgentRecord>(AGENTS);
    this.#changes ??= {
      news: this.#records?.takeWantedNews() ?? [],
      state: this.#state,
      counts: this.#changed(COUNTS),
      agents: this.#changed(AGENTS),
      beats: this.#changed(BEATS),
      areKeysChanged: this.tableOf(API_KEYS).changed.size > 0,
      areAgentsPaused: [...agents.changed].some(([key, after]) => after?.pausedAt !== agents.loaded(key)?.pausedAt),
    };
    return this.#changes;
  }

  /** Remembers what the next transactions may need, after the commit. */
  remember(): void {
    Object.assign(this.#memory.bookmarks, this.#bookmarks);
    this.#memory.state = JSON.stringify(this.#state);
    for (const layout of REMEMBERED) {
      for (const [key, record] of this.#tables.get(layout)?.changed ?? []) this.#memory.learn(layout, key, record);
    }
  }

  /** The table of a layout, which lives as long as the transaction. */
  tableOf<R extends object>(layout: Layout<R>): PostgresTable<R> {
    const known = this.#tables.get(layout) as PostgresTable<R> | undefined;
    if (known) return known;
    const table: PostgresTable<R> = new PostgresTable(this.transaction, layout, {
      isNew: (column, value) => column === "session" && Number(value) > this.#newest,
      guess: (key) => this.#memory.guess(layout, key) as R | undefined,
      loading: (keys) => (this.isWriting && layout.table === SESSIONS.table ? [this.#queuesOf(keys as string[])] : []),
    });
    this.#tables.set(layout, table as unknown as AnyTable);
    return table;
  }

  readonly #tableWith = <R extends object>(layout: Layout<R>, changed?: Changed<R>): PostgresTable<R> => {
    const table = this.tableOf(layout);
    table.onChange = changed;
    return table;
  };

  /** Loads the first turns of each session's queue with the session, because most rules that write to a session read them. */
  #queuesOf(sessionIds: readonly string[]): Statement {
    const turns = this.tableOf<OpenTurnRecord>(OPEN_TURNS);
    const { queue } = OPEN_TURNS.orders;
    const ordinals = sql`select ordinal as of from sessions where session_id = any (${textList(sessionIds.map(encodeText))})`;
    const take = (rows: readonly Row[]): void => {
      const records = rows.map(({ body }) => body as OpenTurnRecord);
      for (const sessionId of sessionIds) {
        const ordinal = this.tableOf<SessionRecord>(SESSIONS).loaded(sessionId)?.session.ordinal;
        if (ordinal === undefined) continue;
        turns.takeGroup(
          queue,
          ordinal,
          records.filter((record) => record.ordinal === ordinal),
          FIRST_OF_GROUP,
        );
      }
    };
    return { ...turns.groupsOf(queue, ordinals, FIRST_OF_GROUP), take };
  }

  #changed<R extends object>(layout: Layout<R>): R[] {
    return [...this.tableOf(layout).changed.values()].flatMap((record) => record ?? []);
  }
}

/** The records of one pass. */
export class PostgresRecords extends TableRecords {
  readonly transaction: Transaction;
  readonly rates: Rates;
  readonly state: State;
  readonly #whole: TransactionRecords;
  #swept: Records["sessions"] | undefined;
  #deleted: Records["deliveries"] | undefined;
  #ahead: Records["turns"] | undefined;
  #counters: Records["usage"] | undefined;
  /** The most turns that a claim of this pass may take. */
  claiming = 0;

  constructor(whole: TransactionRecords, parts: Parts) {
    super(parts);
    const { transaction, rates } = whole;
    this.#whole = whole;
    this.transaction = transaction;
    this.rates = rates;
    this.state = parts.state;
    this.moment = { now: transaction.now, time: transaction.time };
  }

  /** A sweep reads only the sessions that are past their retention, in the order of their idle times. */
  override get sessions(): Records["sessions"] {
    const table = this.#whole.tableOf<SessionRecord>(SESSIONS);
    this.#swept ??= {
      ...super.sessions,
      after: (last, limit, { sessionsBefore, webhookSessionsBefore }) => {
        const place = last ? [minuteOf(idleAt(last)), last.session.ordinal] : [-1, 0];
        const idle = (isWebhook: boolean, before: number) => sql`(select body, idle_minute, ordinal from sessions
          where is_webhook = ${truth(isWebhook)} and (idle_minute, ordinal) > (${place.map(integer).join(", ")})
          and idle_minute <= ${integer(minuteOf(before))} and idle_at <= ${integer(before)} order by idle_minute, ordinal limit ${integer(limit)})`;
        const both = sql`${idle(false, sessionsBefore)} union all ${idle(true, webhookSessionsBefore)}`;
        const found = sql`select body from (${both}) as of order by idle_minute, ordinal limit ${integer(limit)}`;
        return table.take(this.transaction.read("sessions_scan_idle", found));
      },
    };
    return this.#swept;
  }

  /** In a full recorder, each new delivery deletes the oldest one. All deliveries that the calls of a transaction delete are read together. */
  override get deliveries(): Records["deliveries"] {
    const table = this.#whole.tableOf<DeliveryRecord>(DELIVERIES);
    this.#deleted ??= { ...super.deliveries, firstEnded: (of) => table.first(DELIVERIES.orders.ended, of) };
    return this.#deleted;
  }

  /** A reading call gets large pages, because a pass repeats the pages before. */
  override get usage(): Records["usage"] {
    if (this.#whole.isWriting) return super.usage;
    this.#counters ??= {
      ...super.usage,
      after: (place) => {
        const above = quote(encodeText(typeof place === "number" ? hourOf(place) : counterOf(place)));
        const page = sql`select body from usage where counter > ${above} order by counter limit ${integer(COUNTERS_A_PAGE)}`;
        return this.transaction.read("usage_scan_page", page).map(({ body }) => body as UsageCount);
      },
    };
    return this.#counters;
  }

  override get turns(): Records["turns"] {
    if (!this.#whole.isWriting) return super.turns;
    const turns = this.#whole.tableOf<OpenTurnRecord>(OPEN_TURNS);
    this.#ahead ??= turnsAhead(super.turns, {
      loaded: (agent, lane) => turns.loadedIn(LANE_ORDERS[lane], agent, this.claiming),
      request: (record) => this.#request(record),
    });
    return this.#ahead;
  }

  /** All records of a small table. */
  all<R extends object>(layout: Layout<R>): R[] {
    return this.#whole.tableOf(layout).scan({ by: layout.key }, {});
  }

  /** The running turns that were cancelled. */
  cancelledTurns(): OpenTurnRecord[] {
    return this.#whole.tableOf<OpenTurnRecord>(OPEN_TURNS).scan(OPEN_TURNS.orders.cancelled, {});
  }

  /** The news of this pass. If all turns that can be claimed were claimed in the same transaction, there is no news of turns. */
  takeWantedNews(): readonly News[] {
    const news = this.takeNews();
    if (this.claiming === 0 || this.#mayHaveWork()) return news;
    return news.filter((one) => one.kind !== "work" || one.of !== "turn");
  }

  #mayHaveWork(): boolean {
    const turns = super.turns;
    const hasReady = turns
      .readyAgents()
      .some((agent) => (Object.keys(LANE_ORDERS) as Lane[]).some((lane) => turns.firstReady(agent, lane)));
    return hasReady || turns.nextDueAt() !== undefined || this.transaction.wanted().length > 0;
  }

  /** Requests the records that the claim or the end of a turn needs. */
  #request({ turn, ordinal, open }: OpenTurnRecord): void {
    this.sessions.find(turn.sessionId);
    this.#whole.tableOf<AgentCount>(COUNTS).find(turn.agent);
    findShare(this, turn);
    if (open.group) {
      this.keys.find(open.group.key);
      if (turn.deliveryId !== undefined) this.deliveries.find(turn.deliveryId);
    } else if (open.task?.kind !== "compact") this.journal(ordinal).after(turn.seq - 2, 1);
  }
}
