import { Socket } from "node:net";
import pg from "pg";
import { failureOf, unavailable } from "./errors.ts";

/** The time limits for a new connection to a server: while calls wait for it, and at the start. */
const CONNECT_MS = 1_000;
const START_MS = 10_000;

// All counts here stay far below 2^53.
const INT8 = 20;
const NUMERIC = 1700;
const types = {
  getTypeParser: (oid: number, format?: "text") =>
    oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/**
 * Each statement is planned once, mostly while the tables are empty, and for tables that grow: rows are looked up by an index, one by one.
 * Nobody waits for long for a gateway that was stopped.
 */
const SETTINGS = `select set_config(name, case name when 'plan_cache_mode' then 'force_generic_plan' else 'off' end, false)
    from pg_settings where name in ('plan_cache_mode', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit');
  set idle_in_transaction_session_timeout = 10000`;

/** A server that takes writes: the place of its address, and how late it is. */
type OpenServer = { at: number; client: pg.Client; timeline: number };

/** Servers of one database, of which one takes writes. */
export class Servers {
  readonly #urls: readonly string[];
  /** The one that was found last. */
  #current = 0;
  /** The latest that was found: it grows with each promotion, and a write to a server of an earlier one is lost. */
  #timeline = 0;
  #patienceMs = START_MS;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** The start is over: from now on there are calls that wait. */
  started(): void {
    this.#patienceMs = CONNECT_MS;
  }

  /** A connection to the server that was found last; `store-unavailable` when it is not there, or takes no writes. */
  async connect(): Promise<pg.Client> {
    try {
      return (await this.#open(this.#current)).client;
    } catch (error) {
      throw noneOf([this.#refusal(this.#current, error)]);
    }
  }

  /**
   * A connection to the server that takes writes; `store-unavailable` when there is none. Among several such servers it takes the
   * one that was promoted last, as the others were left behind. If that is not the previous server, `moved` is called before this
   * resolves.
   */
  async find(moved: () => void = () => {}): Promise<pg.Client> {
    if (this.#urls.length === 1) return await this.connect();
    const { found, refused } = await this.#openAll();
    const [best, ...others] = found.sort((a, b) => b.timeline - a.timeline || this.#rank(a) - this.#rank(b));
    for (const { client } of others) drop(client);
    if (!best) throw noneOf(refused);
    this.#timeline = best.timeline;
    if (best.at !== this.#current) {
      this.#current = best.at;
      moved();
    }
    return best.client;
  }

  /** Among servers that are equally late: the previous one, else the first of the list. */
  #rank({ at }: OpenServer): number {
    return at === this.#current ? -1 : at;
  }

  /** Asks all servers at once. After the first answer, the others have a second more. */
  async #openAll(): Promise<{ found: OpenServer[]; refused: string[] }> {
    const found: OpenServer[] = [];
    const refused = this.#urls.map((_, at) => this.#refusal(at));
    let isOver = false;
    await new Promise<void>((resolve) => {
      const asked = this.#urls.map(async (_, at) => {
        try {
          const one = await this.#open(at);
          if (isOver) return drop(one.client);
          found.push(one);
          setTimeout(resolve, CONNECT_MS).unref();
        } catch (error) {
          refused[at] = this.#refusal(at, error);
        }
      });
      void Promise.all(asked).then(() => resolve());
    });
    isOver = true;
    return { found, refused };
  }

  async #open(at: number): Promise<OpenServer> {
    const { client, timeline } = await open(this.#urls[at] as string, this.#patienceMs, this.#urls.length > 1);
    if (timeline >= this.#timeline) return { at, client, timeline };
    drop(client);
    throw new Error("was left behind when a standby was promoted");
  }

  #refusal(at: number, error?: unknown): string {
    return `${placeOf(this.#urls[at] as string)}: ${(error as Error | undefined)?.message || "does not answer"}`;
  }
}

function noneOf(refused: readonly string[]) {
  return unavailable(`The database does not answer (${refused.join("; ")}).`);
}

async function open(connectionString: string, patienceMs: number, isOneOfSeveral: boolean) {
  const socket = new Socket();
  const client = new pg.Client({
    connectionString,
    stream: () => socket,
    connectionTimeoutMillis: patienceMs,
    keepAlive: true,
    application_name: "agent-gateway",
    types,
  });
  sockets.set(client, socket);
  // One that breaks while nobody asks it anything tells its owner by "end".
  client.on("error", () => {});
  try {
    await client.connect();
    await withPatience(client, patienceMs, settle(client));
    return { client, timeline: isOneOfSeveral ? await withPatience(client, patienceMs, timelineOf(client)) : 0 };
  } catch (error) {
    drop(client);
    throw error;
  }
}

async function settle(client: pg.Client): Promise<void> {
  const { rows } = await client.query("select pg_is_in_recovery() as standby");
  if (rows[0]?.standby) throw new Error("is a standby");
  await client.query(SETTINGS);
}

/** 0 where a server does not tell: then the order of the addresses has to do. */
async function timelineOf(client: pg.Client): Promise<number> {
  try {
    const { rows } = await client.query("select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline");
    return Number.parseInt(rows[0].timeline, 16);
  } catch (error) {
    if (failureOf(error) === "lost") throw error;
    return 0;
  }
}

/** Drops a connection that does not answer in time. */
export async function withPatience<T>(client: pg.Client, patienceMs: number, answer: Promise<T>): Promise<T> {
  const patience = setTimeout(() => drop(client), patienceMs);
  try {
    return await answer;
  } finally {
    clearTimeout(patience);
  }
}

/** The socket of each connection. */
const sockets = new WeakMap<pg.Client, Socket>();

/** Ends a connection without a message to a server that may not answer any more. Calls that wait on the connection fail at once. */
export function drop(client: pg.Client): void {
  sockets.get(client)?.destroy();
}

/** The place of a server, without the secrets of its URL, for a log. */
function placeOf(url: string): string {
  try {
    const { host, pathname } = new URL(url);
    return `${host}${pathname}`;
  } catch {
    return "an address that cannot be read";
  }
}
