import type pg from "pg";
import type { Clock } from "#kit/clock.ts";
import { refOf } from "#store/rules/journal.ts";
import { deliveryChange } from "#store/rules/news.ts";
import type { SessionRecord } from "#store/rules/records.ts";
import type { CompactionResult, Entry, GatewayEntry, SessionRef, StoreWatcher } from "#store/store.ts";
import { AGENTS, BEATS, COUNTS } from "#store/tables/layouts.ts";
import type { State } from "#store/tables/table-records.ts";
import type { CachedCounts } from "./cached-counts.ts";
import { EntryReorderer } from "./entry-reorderer.ts";
import { type Change, newsOf, type PeerNews, payloadsOf, sessionOf } from "./payloads.ts";
import type { CommittedChanges, PostgresRecords } from "./records/records.ts";
import { quote, sql } from "./records/sql.ts";
import { NOW } from "./records/transaction.ts";

/** The sessions with entries since a time, and the `seq` of the first entry since then. */
const MISSED = `select s.body, j.from_seq from (
    select session, min(first_seq) as from_seq from journal where at >= $1 and session > 0 group by session order by session desc limit 5000
  ) as j join sessions s on s.ordinal = j.session`;
/** The maximum number of entries per session that are read after a reconnect. */
const MOST_MISSED = 50;
const MINUTE = 60_000;
/** A gateway that has not polled for this time is not counted. If no other gateway is counted, no notifications are sent. */
const UNSEEN_MS = 10_000;
/** The delay before other gateways are notified of a ready turn: usually this gateway claims it before that. */
const OWN_CLAIM_MS = 25;
/** The stream of gateway entries, as a key. */
const GATEWAY = { ordinal: 0 };

type Parts = {
  clock: Clock;
  node: string;
  known: CachedCounts;
  /** Reads the entries of a session's journal, and those of the gateway's stream. */
  readEntries(sessionId: string, after: number, limit: number): Promise<Entry[]>;
  readGateway(after: number, limit: number): Promise<GatewayEntry[]>;
  notify(payload: string): Promise<void>;
  /** Starts a poll of the other gateways' state. */
  poll(): void;
};

/** Notifies the watchers of the changes of this gateway, and of those of other gateways on the same database. */
export class PeerSync {
  readonly watchers = new Set<StoreWatcher>();
  readonly #parts: Parts;
  /** The journals of sessions, and the gateway stream. */
  readonly #entries: EntryReorderer<SessionRef, Entry>;
  readonly #gateway: EntryReorderer<typeof GATEWAY, GatewayEntry>;
  /** The cancelled turns that the watchers have been notified of. */
  #stopped = new Set<string>();
  #peers = 0;
  #readyTimer: NodeJS.Timeout | undefined;
  #keys: string | undefined;
  /** The time of the last snapshot by the wall clock. */
  #snapshotAt = 0;
  /** True if more than `UNSEEN_MS` passed between the last two snapshots. */
  #wasUnseen = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { clock, readEntries, readGateway } = parts;
    const hasOthers = () => this.#peers > 0;
    this.#entries = new EntryReorderer({
      clock,
      hasOthers,
      read: ({ sessionId }, after, limit) => readEntries(sessionId, after, limit),
      wants: (session) => [...this.watchers].some((watcher) => watcher.wants?.(session)),
      notify: (session, entries, elsewhere) => {
        for (const watcher of this.watchers) {
          if (elsewhere) watcher.entries(session, entries, true);
          else watcher.entries(session, entries);
        }
      },
    });
    this.#gateway = new EntryReorderer({
      clock,
      hasOthers,
      read: (_, after, limit) => readGateway(after, limit),
      wants: () => [...this.watchers].some((watcher) => watcher.wantsGateway?.()),
      notify: (_, entries) => {
        for (const watcher of this.watchers) watcher.gatewayEntries(entries);
      },
    });
  }

  /** The number of gateways at the last poll, including this one. */
  get count(): number {
    return 1 + this.#peers;
  }

  /** The notifications for changes that are about to be committed. */
  payloads(changes: CommittedChanges): string[] {
    return this.#peers > 0 ? payloadsOf(this.#parts.node, newsOf(changes)) : [];
  }

  async notify(news: PeerNews): Promise<void> {
    if (this.#peers === 0) return;
    for (const payload of payloadsOf(this.#parts.node, news)) await this.#parts.notify(payload);
  }

  /** Notifies the watchers of changes that this gateway committed. */
  committed(committed: CommittedChanges): void {
    this.#parts.known.learn(committed);
    for (const of of committed.news) {
      if ("deliveryId" in of && of.deliveryId !== undefined) this.#delivery(of.deliveryId, deliveryChange(of));
      if (of.kind === "entries") this.#entries.entries(of.session, of.entries);
      else if (of.kind === "deleted") this.#deleted(of.session, of.end);
      else if (of.kind === "gateway") this.#gateway.entries(GATEWAY, of.entries);
      else if (of.kind === "cancel") this.#cancel(of.turnId);
      else if (of.kind === "compacted") this.#compacted(of.turnId, of.result);
      else if (of.kind === "work") {
        if (of.of === "turn") this.#readyTimer ??= setTimeout(() => this.#notifyOfTurns(), OWN_CLAIM_MS).unref();
        for (const watcher of this.watchers) watcher.work(of.of, of.dueInMs);
      }
    }
  }

  received({ changes, notices }: PeerNews): void {
    this.#peers = Math.max(this.#peers, 1);
    for (const change of changes) this.#receive(change);
    const [asked, put]: [string[], string[]] = [[], []];
    for (const [name, of] of notices) {
      if (name === "gateway") void this.#gateway.elsewhere(GATEWAY, of, of);
      if (name === "paused") this.#parts.poll();
      if (name === "textsAsked") asked.push(...of);
      if (name === "textsPut") put.push(...of);
      for (const watcher of this.watchers) {
        if (name === "work") watcher.work(of);
        if (name === "keys") watcher.keysChanged?.();
      }
    }
    for (const watcher of this.watchers) {
      if (asked.length > 0) watcher.textsAsked?.(asked);
      if (put.length > 0) watcher.textsPut?.(put);
    }
  }

  /** Skips the entries of the gateway stream that exist when this gateway starts. */
  async begin(client: pg.Client): Promise<void> {
    const { rows } = await client.query("select body from gateway_state");
    this.#gateway.begin(GATEWAY, (rows[0].body as State).gateway.last);
  }

  /** Reads the sessions with writes during the time without a connection for notifications. */
  async catchUp(client: pg.Client): Promise<void> {
    this.#deliveriesLost();
    const { rows } = await client.query(MISSED, [this.#snapshotAt - MINUTE]);
    for (const { body, from_seq } of rows) {
      const { session } = body as SessionRecord;
      void this.#entries.elsewhere(refOf(session), Math.max(from_seq, session.lastSeq - MOST_MISSED), session.lastSeq);
    }
  }

  /** Records that this gateway is alive, and reads the state of the others for `applySnapshot`. */
  readonly snapshot = (records: PostgresRecords): PeerSnapshot => {
    const { node } = this.#parts;
    const { transaction, turns, outgoing, moment } = records;
    const [peers] = transaction.read(
      "nodes_count_others",
      sql`select count(*) as nodes from nodes where node <> ${quote(node)} and seen > ${NOW} - ${UNSEEN_MS}`,
    );
    transaction.run(
      "nodes_save",
      sql`insert into nodes (node, seen) values (${quote(node)}, ${NOW}) on conflict (node) do update set seen = excluded.seen`,
    );
    for (const [name, statement] of Object.entries(CLEANUP)) transaction.run(name, statement);
    const agents = records.all(AGENTS);
    const paused = new Set(agents.flatMap(({ agent, pausedAt }) => (pausedAt === undefined ? [] : agent)));
    const isDue = (dueAt = Infinity) => dueAt <= moment.time;
    const isReady = (agent: string) => !paused.has(agent) || turns.firstReady(agent, "compact") !== undefined;
    return {
      state: structuredClone(records.state),
      counts: records.all(COUNTS),
      beats: records.all(BEATS),
      agents,
      time: moment.time,
      nodes: (peers?.nodes as number | undefined) ?? 0,
      hasTurns: turns.readyAgents().some(isReady) || isDue(turns.nextDueAt()),
      hasOutgoing: outgoing.readyEndpoints().length > 0 || isDue(outgoing.nextDueAt()),
      keys: records.apiKeys
        .all()
        .map(({ key }) => [key.keyId, key.expiresAt])
        .join(),
      cancelled: records.cancelledTurns().map(({ turn }) => turn.turnId),
    };
  };

  applySnapshot(snapshot: PeerSnapshot): void {
    const before = this.#snapshotAt;
    this.#snapshotAt = this.#parts.clock.now();
    // The other gateways may have sent no notifications, because they did not count this one.
    if (this.#wasUnseen) this.#deliveriesLost();
    this.#wasUnseen = before > 0 && this.#snapshotAt - before > UNSEEN_MS;
    const { nodes, keys, cancelled, state, hasTurns, hasOutgoing, time } = snapshot;
    this.#peers = nodes;
    const dueIn = this.#parts.known.replace(snapshot, time);
    const areKeysNew = this.#keys !== undefined && this.#keys !== keys;
    this.#keys = keys;
    for (const watcher of this.watchers) {
      if (dueIn !== undefined) watcher.work("beat", dueIn);
      if (hasTurns) watcher.work("turn");
      if (hasOutgoing) watcher.work("outgoing");
      if (areKeysNew) watcher.keysChanged?.();
    }
    this.#stopped = new Set([...this.#stopped].filter((id) => cancelled.includes(id)));
    for (const id of cancelled) this.#cancel(id);
    const { last } = state.gateway;
    void this.#gateway.elsewhere(GATEWAY, last, last);
  }

  close(): void {
    this.#notifyOfTurns();
    this.#entries.close();
    this.#gateway.close();
    this.watchers.clear();
  }

  /** Notifies other gateways if there are queued turns or compactions. */
  #notifyOfTurns(): void {
    if (!this.#readyTimer) return;
    clearTimeout(this.#readyTimer);
    this.#readyTimer = undefined;
    if (this.#parts.known.hasQueued()) void this.notify({ changes: [], notices: [["work", "turn"]] });
  }

  #receive(change: Change): void {
    switch (change[0]) {
      case "e": {
        const [from, through] = [change[5], change[6]];
        if (through >= from) void this.#entries.elsewhere(sessionOf(change), from, through);
        break;
      }
      case "d":
        this.#deleted(sessionOf(change), { seq: change[5], at: change[6] });
        break;
      case "c":
        this.#cancel(change[1]);
        break;
      case "p":
        this.#compacted(change[1], change[2]);
        break;
      case "r":
      case "o":
        this.#delivery(change[1], change[0] === "r" ? "recorded" : "outcome");
    }
  }

  #deleted(session: SessionRef, end: { seq: number; at: number }): void {
    if (!this.#entries.end(session)) return;
    for (const watcher of this.watchers) watcher.sessionDeleted(session, end);
  }

  #cancel(turnId: string): void {
    if (this.#stopped.has(turnId)) return;
    this.#stopped.add(turnId);
    for (const watcher of this.watchers) watcher.cancel(turnId);
  }

  #compacted(turnId: string, result: CompactionResult): void {
    for (const watcher of this.watchers) watcher.compacted(turnId, result);
  }

  #deliveriesLost(): void {
    for (const watcher of this.watchers) watcher.deliveriesLost?.();
  }

  #delivery(deliveryId: string, news: "recorded" | "outcome"): void {
    for (const watcher of this.watchers) watcher.delivery?.(deliveryId, news);
  }
}

type PeerSnapshot = Parameters<CachedCounts["replace"]>[0] & {
  /** The time of the database's clock. */
  time: number;
  /** The number of other gateways. */
  nodes: number;
  /** True if a turn or an outgoing message can be claimed. */
  hasTurns: boolean;
  hasOutgoing: boolean;
  /** Changes whenever a key is created, expires or is revoked. */
  keys: string;
  /** The running turns that were cancelled. */
  cancelled: readonly string[];
};

/** The statements that delete old rows. */
const CLEANUP = {
  nodes_delete_old: sql`delete from nodes where seen < ${NOW} - 60000`,
  rate_counts_delete_old: sql`delete from rate_counts where ends_at < ${NOW}`,
  reply_texts_delete_old: sql`delete from reply_texts where at < clock_timestamp() - interval '1 hour'`,
};
