import { Socket } from "node:net";
import pg from "pg";
import { failureOf, unavailable } from "./errors.ts";

/** The time limits for a new connection: while calls wait for it, and while the gateway starts. */
const CONNECT_MS = 1_000;
const START_MS = 10_000;

// Sums and counts are read as numbers: they stay far below 2^53.
const INT8 = 20;
const NUMERIC = 1700;
const types = {
  getTypeParser: (oid: number, format?: "text") =>
    oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/**
 * Each statement is planned once, often while the tables are empty. These settings favour indexes, also for the order of rows, so that the plan is
 * also good for large tables. The timeout ends the transaction of a suspended gateway, so that other gateways do not wait for its locks.
 */
const SETTINGS = `select set_config(name, case name when 'plan_cache_mode' then 'force_generic_plan' else 'off' end, false)
    from pg_settings where name in ('plan_cache_mode', 'enable_seqscan', 'enable_sort', 'enable_hashjoin', 'enable_mergejoin', 'jit');
  set idle_in_transaction_session_timeout = 10000`;

/** A connection to a server that accepts writes, the index of the server's URL, and the server's timeline. */
type OpenServer = { at: number; client: pg.Client; timeline: number };

/** The servers of one database. One of them accepts writes. */
export class Servers {
  readonly #urls: readonly string[];
  /** The index of the server that was found last. */
  #current = 0;
  /** The highest timeline that was found. Each promotion of a standby increases it. A write on an earlier timeline would be lost. */
  #timeline = 0;
  #timeoutMs = START_MS;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** Called once the store is open: new connections now have the shorter time limit. */
  started(): void {
    this.#timeoutMs = CONNECT_MS;
  }

  /** Connects to the server that was found last. Throws `store-unavailable` if it does not answer or accepts no writes. */
  async connect(): Promise<pg.Client> {
    try {
      return (await this.#open(this.#current)).client;
    } catch (error) {
      throw noServer([this.#refusal(this.#current, error)]);
    }
  }

  /**
   * Connects to the server that accepts writes. Throws `store-unavailable` if there is none. If several do, it uses the one that was promoted
   * last, because the others are outdated. Calls `moved` before it resolves if this is not the previous server.
   */
  async find(moved: () => void = () => {}): Promise<pg.Client> {
    if (this.#urls.length === 1) return await this.connect();
    const { found, refused } = await this.#openAll();
    const [best, ...others] = found.sort((a, b) => b.timeline - a.timeline || this.#rank(a) - this.#rank(b));
    for (const { client } of others) drop(client);
    if (!best) throw noServer(refused);
    this.#timeline = best.timeline;
    if (best.at !== this.#current) {
      this.#current = best.at;
      moved();
    }
    return best.client;
  }

  /** The rank among servers with the same timeline: first the current one, then in the order of the URLs. */
  #rank({ at }: OpenServer): number {
    return at === this.#current ? -1 : at;
  }

  /** Connects to all servers at once. After the first connection, the others have one more second. */
  async #openAll(): Promise<{ found: OpenServer[]; refused: string[] }> {
    const found: OpenServer[] = [];
    const refused = this.#urls.map((_, at) => this.#refusal(at));
    let isOver = false;
    await new Promise<void>((resolve) => {
      const attempts = this.#urls.map(async (_, at) => {
        try {
          const one = await this.#open(at);
          if (isOver) return drop(one.client);
          found.push(one);
          setTimeout(resolve, CONNECT_MS).unref();
        } catch (error) {
          refused[at] = this.#refusal(at, error);
        }
      });
      void Promise.all(attempts).then(() => resolve());
    });
    isOver = true;
    return { found, refused };
  }

  async #open(at: number): Promise<OpenServer> {
    const { client, timeline } = await open(this.#urls[at] as string, this.#timeoutMs, this.#urls.length > 1);
    if (timeline >= this.#timeline) return { at, client, timeline };
    drop(client);
    throw new Error("is outdated: a standby was promoted");
  }

  #refusal(at: number, error?: unknown): string {
    return `${placeOf(this.#urls[at] as string)}: ${(error as Error | undefined)?.message || "does not answer"}`;
  }
}

function noServer(refused: readonly string[]) {
  return unavailable(`The database does not answer (${refused.join("; ")}).`);
}

async function open(connectionString: string, timeoutMs: number, isOneOfSeveral: boolean) {
  const socket = new Socket();
  const client = new pg.Client({
    connectionString,
    stream: () => socket,
    connectionTimeoutMillis: timeoutMs,
    keepAlive: true,
    application_name: "agent-gateway",
    types,
  });
  sockets.set(client, socket);
  // An unhandled `error` event would end the process. The owner of a broken connection gets `end`.
  client.on("error", () => {});
  try {
    await client.connect();
    await withTimeout(client, timeoutMs, configure(client));
    return { client, timeline: isOneOfSeveral ? await withTimeout(client, timeoutMs, timelineOf(client)) : 0 };
  } catch (error) {
    drop(client);
    throw error;
  }
}

async function configure(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select pg_is_in_recovery() as standby");
  if (rows[0]?.standby) throw new Error("is a standby");
  await client.query(SETTINGS);
}

/** Returns 0 if the server does not provide its timeline. Then the order of the URLs decides. */
async function timelineOf(client: pg.Client): Promise<number> {
  try {
    const { rows } = await client.query("select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline");
    return Number.parseInt(rows[0].timeline, 16);
  } catch (error) {
    if (failureOf(error) === "lost") throw error;
    return 0;
  }
}

/** Waits for an answer. Drops the connection if there is none within `timeoutMs`. */
export async function withTimeout<T>(client: pg.Client, timeoutMs: number, answer: Promise<T>): Promise<T> {
  const timer = setTimeout(() => drop(client), timeoutMs);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
}

/** The socket of each connection. */
const sockets = new WeakMap<pg.Client, Socket>();

/** Closes a connection without a message to the server, which may not answer. Its pending calls fail at once. */
export function drop(client: pg.Client): void {
  sockets.get(client)?.destroy();
}

/** The host and the path of a URL, without its secrets, for the log. */
function placeOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `${host}${pathname}`;
  } catch {
    return "an address that is not a URL";
  }
}
