import type pg from "pg";
import { drop, type Servers, withTimeout } from "./connect.ts";
import { failureOf, unavailable } from "./errors.ts";

/** The time limit of a call. `Notifications` usually detects a dead server sooner. */
const SILENT_MS = 15_000;
/** The pause after a failed attempt to connect. Until then, calls share the existing connections. */
const REOPEN_MS = 1_000;

/** The connections of this gateway. While the database is unreachable, all calls fail immediately. */
export class Pool {
  readonly #servers: Servers;
  readonly #size: number;
  readonly #lost: (error: unknown) => void;
  readonly #clients = new Set<pg.Client>();
  #idle: pg.Client[] = [];
  /** Connections with plans from before a change of the schema. They are dropped after their current call. */
  readonly #outdated = new WeakSet<pg.Client>();
  readonly #waiting: ((client: pg.Client | undefined) => void)[] = [];
  /** The number of connections that are being opened. */
  #opening = 0;
  /** The earliest time of the next attempt to connect. */
  #opensAt = 0;
  /** True while the database is unreachable. */
  #isAway = false;
  #isClosed = false;

  /** Calls `lost` when no server can be reached. Then calls are refused until `reachable` is called. */
  constructor(servers: Servers, size: number, lost: (error: unknown) => void) {
    this.#servers = servers;
    this.#size = size;
    this.#lost = lost;
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** Runs `work` with a connection, once one is free. */
  async run<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    if (this.#isAway) throw away();
    const client = this.#idle.pop() ?? (await this.#nextFree());
    if (!client) throw away();
    try {
      return await withTimeout(client, SILENT_MS, work(client));
    } catch (error) {
      const failure = failureOf(error);
      if (failure === "lost" || failure === "refused") this.#drop(client);
      if (failure === "outdated") this.#dropPlans();
      throw error;
    } finally {
      this.#giveBack(client);
    }
  }

  /** Called when a server is reachable again: calls no longer fail immediately. */
  reachable(): void {
    this.#isAway = false;
  }

  /** Called when the database is unreachable: all calls fail, including the pending ones. */
  away(error: unknown): void {
    if (this.#isAway || this.#isClosed) return;
    this.#isAway = true;
    for (const client of [...this.#clients]) this.#drop(client);
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
    this.#lost(error);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isAway = true;
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
    await Promise.all([...this.#clients].map((client) => client.end().catch(() => {})));
  }

  /** Waits for a connection: a new one, or an existing one if it becomes free earlier. */
  #nextFree(): Promise<pg.Client | undefined> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#openMore();
    });
  }

  /** Drops the connections whose plans are outdated: otherwise a call could meet one of them at each try. */
  #dropPlans(): void {
    for (const client of this.#idle) this.#drop(client);
    for (const client of this.#clients) this.#outdated.add(client);
  }

  #giveBack(client: pg.Client): void {
    if (this.#outdated.has(client)) this.#drop(client);
    const isOpen = this.#clients.has(client);
    const next = isOpen ? this.#waiting.shift() : undefined;
    if (next) next(client);
    else if (isOpen) this.#idle.push(client);
    else this.#openMore();
  }

  #openMore(): void {
    if (this.#isAway || this.#opening >= this.#waiting.length) return;
    if (this.#clients.size + this.#opening >= this.#size) return;
    if (performance.now() < this.#opensAt && this.#clients.size > 0) return;
    void this.#open();
  }

  async #open(): Promise<void> {
    this.#opening++;
    try {
      const client = await this.#servers.connect();
      if (this.#isAway) return drop(client);
      this.#clients.add(client);
      client.once("end", () => this.#drop(client));
      this.#giveBack(client);
    } catch (error) {
      if (this.#clients.size === 0) this.away(error);
      this.#opensAt = performance.now() + REOPEN_MS;
      setTimeout(() => this.#openMore(), REOPEN_MS).unref();
    } finally {
      this.#opening--;
    }
  }

  #drop(client: pg.Client): void {
    this.#clients.delete(client);
    this.#idle = this.#idle.filter((one) => one !== client);
    drop(client);
  }
}

function away() {
  return unavailable("The database cannot be reached.");
}
