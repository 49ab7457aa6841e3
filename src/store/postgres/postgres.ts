import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newBareId } from "#kit/ids.ts";
import { isPieces } from "#store/rules/records.ts";
import { isReading, type RuleName, rules } from "#store/rules/rules.ts";
import type {
  BeatOrder,
  Delivery,
  EventOrder,
  ScheduleOrder,
  Store,
  StoreNotice,
  TurnEnd,
  TurnOrder,
} from "#store/store.ts";
import { CachedCounts } from "./cached-counts.ts";
import { drop, Servers } from "./connect.ts";
import { unavailable } from "./errors.ts";
import { createEventThrottle } from "./event-throttle.ts";
import { migrate } from "./migrate.ts";
import { Notifications } from "./notifications.ts";
import { PeerSync } from "./peer-sync.ts";
import { Pool } from "./pool.ts";
import { ahead } from "./records/ahead.ts";
import { Memory } from "./records/memory.ts";
import type { PostgresRecords } from "./records/records.ts";
import { double, quote, sql } from "./records/sql.ts";
import type { NamedSql } from "./records/transaction.ts";
import { sharedStore } from "./shared.ts";
import { TransactionBatcher } from "./transaction-batcher.ts";

type PostgresParts = {
  clock: Clock;
  /** The servers of one database. The gateway uses the one that accepts writes. */
  url: readonly string[];
  notice?: (notice: StoreNotice) => void;
  /** The number of connections, without the one for notifications. */
  connections?: number;
};

const CONNECTIONS = 8;

/** The approximate number of bytes that a call writes. Calls that are not listed write little. */
const BYTES: Partial<Record<RuleName, (...args: never[]) => number>> = {
  startTurn: ({ text, delivery }: TurnOrder) => text.length + (delivery?.bytes ?? 0),
  startBeat: ({ batch }: BeatOrder) => batch.bytes,
  runSchedule: ({ start }: ScheduleOrder) => (start && "text" in start.turn ? start.turn.text.length : 0),
  requestRun: (_: unknown, { turn }: { turn: TurnOrder }) => turn.text.length,
  queueEvent: ({ text, delivery }: EventOrder) => text.length + (delivery?.bytes ?? 0),
  recordDelivery: ({ bytes }: Delivery) => bytes,
  endTurn: (_: unknown, { reply, toolCalls, compaction }: TurnEnd) =>
    reply.length + JSON.stringify([toolCalls, compaction]).length,
};

/**
 * A store that several gateways share. The rules run in this process, on records that a transaction loads. Only one gateway writes at a time, and
 * concurrent calls share a transaction. Watchers are notified of the changes of a call before it resolves, and of the changes of other gateways
 * through notifications of the database.
 */
export async function createPostgresStore({
  clock,
  url,
  notice = () => {},
  connections = CONNECTIONS,
}: PostgresParts): Promise<Store> {
  const node = newBareId(clock.now());
  const servers = new Servers(url);
  const { epoch, channel, client } = await prepare(servers, clock.now(), notice);
  const counts = new CachedCounts();
  const pool = new Pool(servers, connections, (error) => {
    notice({ name: "unavailable", detail: (error as Error).message });
    notifications.reconnect();
  });
  const peers: PeerSync = new PeerSync({
    clock,
    node,
    known: counts,
    readEntries: (sessionId, after, limit) => methods.readEntries(sessionId, { after, limit }),
    readGateway: async (after, limit) => (await methods.readGatewayEntries({ after, limit })).entries,
    notify: (payload) => notifications.notify(payload),
    poll: () => void poll().catch(() => {}),
  });
  const memory = new Memory();
  const parts = { clock, pool, memory, committed: peers.committed.bind(peers) };
  const notificationsOf = (changes: Parameters<PeerSync["payloads"]>[0]) =>
    peers.payloads(changes).map((payload) => ({
      name: "peers_notify",
      sql: sql`select pg_notify(${quote(channel)}, ${quote(payload)})`,
    }));
  const lock = lockOf(channel);
  const writer = new TransactionBatcher({ ...parts, notificationsOf, lock, atOnce: 1 });
  const pauseOf = createEventThrottle({
    waiting: () => counts.stats().eventsQueued,
    isBeating: () => counts.isBeating(),
    time: () => clock.monotonic(),
  });
  const intake = new TransactionBatcher({ ...parts, notificationsOf, lock, atOnce: 1, pauseOf });
  const reader = new TransactionBatcher({
    ...parts,
    notificationsOf,
    lock: undefined,
    atOnce: Math.max(connections - 1, 1),
  });
  const methods = methodsOf((name) => {
    if (isReading(name)) return reader;
    return name === "queueEvent" ? intake : writer;
  });
  const poll = async (): Promise<void> => peers.applySnapshot(await writer.run(peers.snapshot));
  let isOpen = false;
  const notifications = new Notifications(servers, node, {
    async connected(client) {
      if (!isOpen) {
        await peers.begin(client);
      } else {
        if (pool.isAway) notice({ name: "available", detail: "The database is available again." });
        pool.reachable();
        await peers.catchUp(client);
        counts.expectAnyVersion();
      }
      peers.applySnapshot(await writer.runOn(client, peers.snapshot));
    },
    lost: (error) => pool.away(error),
    received: (received) => peers.received(received),
    poll,
  });
  await notifications.open(channel, client).catch(refuse);
  isOpen = true;
  servers.started();

  return {
    kind: "postgres",
    durable: true,
    epoch,
    shared: sharedStore({ node, reader, writer, others: peers }),
    watch: (watcher) => {
      peers.watchers.add(watcher);
      return () => peers.watchers.delete(watcher);
    },
    ping: async () => {
      await reader.run(() => {});
    },
    configure: async (policy) => memory.configure(policy),
    ...methods,
    stats: counts.stats,
    agentCounts: counts.agentCounts,
    openAgents: async () => counts.openAgents(),
    [Symbol.asyncDispose]: async () => {
      peers.close();
      if (!pool.isAway) await writer.run((records) => unregister(records, node)).catch(() => {});
      await notifications.close();
      await pool.close();
    },
  };
}

type Methods = Pick<Store, RuleName>;

function methodsOf(runnerOf: (name: string) => TransactionBatcher) {
  const methods: Record<string, (...args: never[]) => Promise<unknown>> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const run = rule as (records: PostgresRecords, ...args: never[]) => unknown;
    const runner = runnerOf(name);
    const bytesOf = BYTES[name as RuleName];
    const answer = (records: PostgresRecords, args: never[]): unknown => {
      ahead[name as RuleName]?.(records, ...args);
      return answerOf(run(records, ...args));
    };
    methods[name] = (...args) => runner.run((records) => answer(records, args), bytesOf?.(...args));
  }
  return methods as {
    [Name in keyof Methods]: (...args: Parameters<Methods[Name]>) => Promise<Awaited<ReturnType<Methods[Name]>>>;
  };
}

/** Runs a rule that is a generator to its end. */
function answerOf(answer: unknown): unknown {
  for (;;) {
    if (!isPieces(answer)) return answer;
    const { done, value } = answer.next();
    if (done) return value;
  }
}

/** The lock for writes in this schema of the database. The channel's name ends with the schema's oid. */
function lockOf(channel: string): NamedSql {
  return { name: "writers_lock", sql: sql`select pg_advisory_xact_lock(7, ${Number(/\d+$/.exec(channel)?.[0]) | 0})` };
}

/** Removes this gateway from the list of gateways. Its agents stay known for a while: the row of `gateways` is only marked as older. */
function unregister({ transaction }: PostgresRecords, node: string): void {
  const closed = sql`least(seen, ${double(transaction.time)} - 10000)`;
  transaction.run("gateways_close", sql`update gateways set seen = ${closed} where node = ${quote(node)}`);
  transaction.run("nodes_delete", sql`delete from nodes where node = ${quote(node)}`);
}

/** Connects to the database, and updates its schema. */
async function prepare(servers: Servers, now: number, notice: (notice: StoreNotice) => void) {
  const client = await servers.find();
  try {
    const { steps, epoch, channel } = await migrate(client, now);
    if (steps > 0) {
      notice({
        name: "migrated",
        detail: `The database's schema was upgraded in ${steps === 1 ? "one step" : `${steps} steps`}.`,
      });
    }
    return { epoch, channel, client };
  } catch (error) {
    drop(client);
    return refuse(error);
  }
}

/** Throws `store-unavailable` for a failure before the store is open. */
function refuse(error: unknown): never {
  if (error instanceof GatewayError) throw error;
  throw unavailable(`The database cannot be used: ${(error as Error).message}`, error);
}
