import pg from "pg";
import { unavailable } from "./errors.ts";

/** How long a server may take to take a connection before the next one is asked: while calls wait for it, and at the start. */
const CONNECT_MS = 1_000;
const START_MS = 10_000;

// What is counted here stays far below 2^53.
const INT8 = 20;
const NUMERIC = 1700;
const types = {
  getTypeParser: (oid: number, format?: "text") =>
    oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format),
} as pg.CustomTypesConfig;

/** Plans are for tables that grow: what is empty today is looked up by its index all the same. */
const SETTINGS = `select set_config(name, 'off', false) from pg_settings where name in ('enable_seqscan', 'jit');
  set idle_in_transaction_session_timeout = 0`;

/** Servers of one database, of which one takes writes: mostly the one that did so last. */
export class Servers {
  readonly #urls: readonly string[];
  #current = 0;
  #patienceMs = START_MS;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** The start is over: from now on there are calls that wait. */
  started(): void {
    this.#patienceMs = CONNECT_MS;
  }

  /** A connection to the server that is not in recovery; `store-unavailable` when none of them is there. */
  async connect(): Promise<pg.Client> {
    const tried: string[] = [];
    for (let n = 0; n < this.#urls.length; n++) {
      const at = (this.#current + n) % this.#urls.length;
      const url = this.#urls[at] as string;
      try {
        const client = await open(url, this.#patienceMs);
        this.#current = at;
        return client;
      } catch (error) {
        tried.push(`${placeOf(url)}: ${(error as Error).message || "does not answer"}`);
      }
    }
    throw unavailable(`The database does not answer (${tried.join("; ")}).`);
  }
}

const open = async (connectionString: string, patienceMs: number): Promise<pg.Client> => {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: patienceMs,
    keepAlive: true,
    application_name: "agent-gateway",
    types,
  });
  // One that breaks while nobody asks it anything tells its owner by "end".
  client.on("error", () => {});
  try {
    await client.connect();
    const patience = setTimeout(() => drop(client), patienceMs);
    try {
      const { rows } = await client.query("select pg_is_in_recovery() as standby");
      if (rows[0]?.standby) throw new Error("is a standby");
      await client.query(SETTINGS);
    } finally {
      clearTimeout(patience);
    }
    return client;
  } catch (error) {
    drop(client);
    throw error;
  }
};

/** Ends a connection without a word to a server that may not listen any more: what waits on it fails at once. */
export const drop = (client: pg.Client): void => {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
};

/** Where a server is, without what must not be in a log. */
export const placeOf = (url: string): string => {
  try {
    const { host, pathname } = new URL(url);
    return `${host}${pathname}`;
  } catch {
    return "an address that cannot be read";
  }
};
