import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { newBareId } from "#kit/ids.ts";
import type { Store, StoreNotice } from "#store/store.ts";
import { announcementMethods } from "./announcements.ts";
import { keyMethods } from "./api-keys.ts";
import { beatMethods } from "./beats.ts";
import { claimMethods } from "./claims.ts";
import { compactionMethods } from "./compactions.ts";
import { drop, Servers } from "./connect.ts";
import { deliveryMethods } from "./deliveries.ts";
import { unavailable } from "./errors.ts";
import { eventMethods } from "./events.ts";
import { createFrame, type Frame } from "./frame.ts";
import { gatewayMethods, readGateway } from "./gateway-stream.ts";
import { GatewayTellings } from "./gateway-tellings.ts";
import { Line } from "./line.ts";
import { migrate } from "./migrate.ts";
import { Neighbours } from "./neighbours.ts";
import { Pool } from "./pool.ts";
import { readJournal, readMethods } from "./reads.ts";
import { sharedStore } from "./shared.ts";
import { sweepMethods } from "./sweeps.ts";
import { Tellings } from "./tellings.ts";
import { turnMethods } from "./turns.ts";
import { usageMethods } from "./usage.ts";

export type PostgresParts = {
  clock: Clock;
  /** Servers of one database: the gateway keeps to the one that takes writes. */
  url: readonly string[];
  notice?: (notice: StoreNotice) => void;
  /** How many connections, beside the one that listens. */
  connections?: number;
};

const CONNECTIONS = 8;

/**
 * Several gateways on one database. A method that changes something is one call of a function there, and one commit; calls that come
 * together share them. What this node did its watchers learn before the call resolves, what others did by notifications.
 */
export const createPostgresStore = async ({
  clock,
  url,
  notice = () => {},
  connections = CONNECTIONS,
}: PostgresParts): Promise<Store> => {
  const node = newBareId(clock.now());
  const servers = new Servers(url);
  const { epoch, channel, client } = await prepare(servers, clock.now(), notice);

  const pool = new Pool(servers, node, connections, {
    lost(error) {
      notice({ name: "unavailable", detail: (error as Error).message });
      line.seek();
    },
  });
  const tellings = new Tellings({
    clock,
    read: (sessionId, after, limit) => readJournal(frame, sessionId, after, limit),
    hasOthers: () => line.hasOthers,
  });
  const gatewayTellings = new GatewayTellings({
    watchers: tellings.watchers,
    read: (after, limit) => readGateway(frame, after, limit),
    notify: (what, last) => line.notify(what, last),
  });
  const frame: Frame = createFrame({
    clock,
    node,
    pool,
    tellings,
    gatewayTellings,
    publish: (news, changes) => line.publish(news, changes),
    notify: (what, of) => line.notify(what, of),
  });
  const neighbours = new Neighbours(frame);
  let isBegun = false;
  const line = new Line(servers, node, {
    async connected(client) {
      if (!isBegun) return await neighbours.begin(client);
      frame.isUnsure = true;
      if (pool.isAway) notice({ name: "available", detail: "The database answers again." });
      pool.reachable();
      await neighbours.catchUp(client);
    },
    lost: (error) => pool.away(error),
    heard: (heard) => neighbours.heard(heard),
    poll: (client) => neighbours.poll(client),
  });
  await line.open(channel, client).catch(refuse);
  isBegun = true;
  servers.started();

  return {
    kind: "postgres",
    durable: true,
    epoch,
    shared: sharedStore(frame),
    watch: (watcher) => {
      tellings.watchers.add(watcher);
      return () => tellings.watchers.delete(watcher);
    },
    ping: async () => {
      await frame.query("select 1", []);
    },
    ...turnMethods(frame),
    ...claimMethods(frame),
    ...compactionMethods(frame),
    ...readMethods(frame),
    ...sweepMethods(frame),
    ...eventMethods(frame),
    ...beatMethods(frame),
    ...announcementMethods(frame),
    ...deliveryMethods(frame),
    ...keyMethods(frame),
    ...usageMethods(frame),
    ...gatewayMethods(frame),
    [Symbol.asyncDispose]: async () => {
      tellings.close();
      frame.readyWork.flush();
      if (!pool.isAway) {
        await frame.call("leave_gateways", [node, frame.time()]).catch(() => {});
        await frame.call("leave_node", [frame.lanes]).catch(() => {});
      }
      await line.close();
      await pool.close();
    },
  };
};

/** A connection to a database whose schema is up to date. */
const prepare = async (servers: Servers, now: number, notice: (notice: StoreNotice) => void) => {
  const client = await servers.find();
  try {
    const { steps, epoch, channel } = await migrate(client, now);
    if (steps > 0) {
      notice({
        name: "migrated",
        detail: `The database's schema was brought up to date in ${steps === 1 ? "one step" : `${steps} steps`}.`,
      });
    }
    return { epoch, channel, client };
  } catch (error) {
    drop(client);
    return refuse(error);
  }
};

/** What goes wrong before the store is open, in a sentence. */
const refuse = (error: unknown): never => {
  if (error instanceof GatewayError) throw error;
  throw unavailable(`The database cannot be used: ${(error as Error).message}`, error);
};
