import type pg from "pg";
import type { Clock } from "#kit/clock.ts";
import { deliveryChange } from "#store/rules/records.ts";
import type { CompactionResult, Entry, GatewayEntry, SessionRef, StoreWatcher } from "#store/store.ts";
import type { CachedCounts } from "./cached-counts.ts";
import { EntryReorderer } from "./entry-reorderer.ts";
import { type Change, newsOf, type PeerNews, payloadsOf, refOf } from "./payloads.ts";
import { ENDS, readBeat, readEnd } from "./records/agents.ts";
import type { CommittedChanges, PostgresRecords } from "./records/records.ts";
import { number, quote, type Row, type Sql, sql } from "./records/sql.ts";

/** The sessions with writes since a time, and for each the `seq` of the first entry since then, among its last 50. */
const MISSED = `select s.ordinal, s.session_id, s.agent, s.context_bytes, s.last_seq,
    (select min(e.seq) from (select seq, at from entries where session = s.ordinal order by seq desc limit 50) as e where e.at >= $1) as from_seq
  from sessions s where s.updated_at >= $1 order by s.ordinal desc limit 5000`;
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
    this.#parts.known.committed(committed);
    for (const of of committed.news) {
      if ("deliveryId" in of && of.deliveryId !== undefined) this.#delivery(of.deliveryId, deliveryChange(of));
      if (of.kind === "entries") this.#entries.entries(of.session, of.entries);
      else if (of.kind === "deleted") this.#deleted(of.session, of.end);
      else if (of.kind === "gateway") this.#gateway.entries(GATEWAY, of.entries);
      else if (of.kind === "cancel") this.#cancel(of.turnId);
      else if (of.kind === "compacted") this.#compacted(of.turnId, of.result);
      else if (of.kind === "work") {
        if (of.of === "turn") this.#readyTimer ??= setTimeout(() => this.#notifyOfTurns(), OWN_CLAIM_MS).unref();
        for (const watcher of this.watchers) watcher.work(of.of);
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
    const { rows } = await client.query("select last from gateway_place");
    this.#gateway.begin(GATEWAY, rows[0].last);
  }

  /** Reads the sessions with writes during the time without a connection for notifications. */
  async catchUp(client: pg.Client): Promise<void> {
    this.#deliveriesLost();
    const { rows } = await client.query(MISSED, [this.#snapshotAt - MINUTE]);
    for (const { ordinal, session_id, agent, context_bytes, from_seq, last_seq } of rows) {
      const session = refOf(["e", ordinal, session_id, agent, context_bytes]);
      void this.#entries.elsewhere(session, from_seq ?? last_seq, last_seq);
    }
  }

  /** Records that this gateway is alive, and reads the state of the others for `applySnapshot`. */
  readonly snapshot = (records: PostgresRecords): PeerSnapshot => {
    const { node } = this.#parts;
    const { transaction } = records;
    const [state] = transaction.read(stateOf(node, transaction.sqlTime));
    transaction.run(
      sql`insert into nodes (node, seen) values (${quote(node)}, ${NOW}) on conflict (node) do update set seen = excluded.seen`,
    );
    for (const statement of CLEANUP) transaction.run(statement);
    return {
      counts: new Map(
        transaction
          .read(sql`select name, sum(value)::bigint as value from counters group by name`)
          .map(({ name, value }) => [name as string, number(value)]),
      ),
      beats: transaction.read(sql`select * from beats`).map((row) => readBeat(row, transaction)),
      ends: transaction.read(sql`select t.* from ${ENDS}`).map(readEnd),
      time: transaction.time,
      state: state ?? {},
      changes: () => records.changes(),
    };
  };

  applySnapshot(snapshot: PeerSnapshot): void {
    const before = this.#snapshotAt;
    this.#snapshotAt = this.#parts.clock.now();
    // The other gateways may have sent no notifications, because they did not count this one.
    if (this.#wasUnseen) this.#deliveriesLost();
    this.#wasUnseen = before > 0 && this.#snapshotAt - before > UNSEEN_MS;
    const { nodes, keys, cancelled, gateway, ready, announcement } = snapshot.state as State;
    this.#peers = nodes;
    const dueIn = this.#parts.known.replace(snapshot);
    // Other calls in the same transaction may have changed the counts after they were read.
    this.#parts.known.committed(snapshot.changes());
    const areKeysNew = this.#keys !== undefined && this.#keys !== keys;
    this.#keys = keys;
    for (const watcher of this.watchers) {
      if (dueIn !== undefined) watcher.work("beat", dueIn);
      if (ready) watcher.work("turn");
      if (announcement) watcher.work("announcement");
      if (areKeysNew) watcher.keysChanged?.();
    }
    this.#stopped = new Set([...this.#stopped].filter((id) => cancelled.includes(id)));
    for (const id of cancelled) this.#cancel(id);
    void this.#gateway.elsewhere(GATEWAY, gateway, gateway);
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
        if (through >= from) void this.#entries.elsewhere(refOf(change), from, through);
        break;
      }
      case "d":
        this.#deleted(refOf(change), { seq: change[5], at: change[6] });
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

type PeerSnapshot = Parameters<CachedCounts["replace"]>[0] & { state: Row; changes(): CommittedChanges };
/** `keys` changes whenever a key is created, expires or is revoked. */
type State = {
  nodes: number;
  gateway: number;
  ready: boolean;
  announcement: boolean;
  keys: string;
  cancelled: string[];
};

/** The current time of the database's clock, in milliseconds. Gateways compare their times by this clock. */
const NOW = "(select extract(epoch from clock_timestamp())::double precision * 1000)";

function stateOf(node: string, time: Sql): Sql {
  return sql`select
  (select count(*) from nodes where node <> ${quote(node)} and seen > ${NOW} - ${UNSEEN_MS}) as nodes,
  (select last from gateway_place) as gateway,
  exists (select from turns t where t.ready_at <= ${time} and (t.lane = 'compact' or not exists (
    select from beats b where b.agent = t.agent and b.paused_at is not null))) as ready,
  exists (select from announcements where not is_claimed and due <= ${time}) as announcement,
  (select json_build_array(count(*), max(ordinal), sum(expires_at)) from api_keys)::text as keys,
  (select coalesce(json_agg(turn_id), '[]') from turns where status = 'running' and is_cancelled) as cancelled`;
}

/** Deletes old rows. */
const CLEANUP = [
  sql`delete from nodes where seen < ${NOW} - 60000`,
  sql`delete from rate_counts where ends_at < ${NOW}`,
  sql`delete from reply_texts where at < clock_timestamp() - interval '1 hour'`,
];
