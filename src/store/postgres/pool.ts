import type pg from "pg";
import { drop, type Servers } from "./connect.ts";
import { failureOf, unavailable } from "./errors.ts";

/** So many calls may wait for a connection; who comes then is told to come later. */
const MOST_WAITING = 5_000;
/** A call that takes so long is given up. Whether the server is there at all, the line finds out sooner. */
const SILENT_MS = 15_000;

/** A connection, or the place of one. One call at a time runs on it, so that its lane's rows are nobody else's. */
type Slot = { readonly n: number; client: pg.Client | undefined; isBusy: boolean };

export type PoolEvents = {
  /** No server can be reached: calls are refused until `reachable` is called. */
  lost(error: unknown): void;
};

/** The connections of this gateway. While the database is away all calls are refused at once. */
export class Pool {
  readonly #servers: Servers;
  readonly #slots: Slot[];
  readonly #events: PoolEvents;
  readonly #node: string;
  #generation = 1;
  readonly #waiting: ((slot: Slot | undefined) => void)[] = [];
  #isAway = false;
  #isClosed = false;

  constructor(servers: Servers, node: string, size: number, events: PoolEvents) {
    this.#servers = servers;
    this.#events = events;
    this.#node = node;
    this.#slots = Array.from({ length: size }, (_, n) => ({ n, client: undefined, isBusy: false }));
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** What the lanes of calls begin with. */
  get lanes(): string {
    return `${this.#node}.${this.#generation}`;
  }

  /** Nobody knows what was counted on the lanes so far: calls that begin from now on get others. */
  renewLanes(): void {
    this.#generation++;
  }

  /** Runs what asks a connection something; `wasSent` in what it throws tells that it may have been kept. */
  async run<T>(ask: (client: pg.Client, lane: string) => Promise<T>): Promise<T> {
    const slot = await this.#take();
    let client = slot.client;
    try {
      client ??= await this.#connect(slot);
      return await withPatience(client, ask(client, `${this.lanes}/${slot.n}`));
    } catch (error) {
      const failure = failureOf(error);
      if (client && (failure === "lost" || failure === "refused")) {
        slot.client = undefined;
        drop(client);
      }
      throw error;
    } finally {
      this.#giveBack(slot);
    }
  }

  /** A server can be reached again. */
  reachable(): void {
    this.#isAway = false;
  }

  /** Refuses all calls, those that are on their way too. */
  away(error: unknown): void {
    if (this.#isAway || this.#isClosed) return;
    this.#isAway = true;
    for (const slot of this.#slots) {
      if (slot.client) drop(slot.client);
      slot.client = undefined;
    }
    for (const take of this.#waiting.splice(0)) take(undefined);
    this.#events.lost(error);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isAway = true;
    for (const take of this.#waiting.splice(0)) take(undefined);
    await Promise.all(this.#slots.map(({ client }) => client?.end().catch(() => {})));
  }

  async #take(): Promise<Slot> {
    if (this.#isAway) throw away();
    // One that has a connection before one that has none.
    const free = this.#slots.find((slot) => !slot.isBusy && slot.client) ?? this.#slots.find((slot) => !slot.isBusy);
    if (free) {
      free.isBusy = true;
      return free;
    }
    if (this.#waiting.length >= MOST_WAITING) throw unavailable("Too many calls wait for the database.");
    const slot = await new Promise<Slot | undefined>((resolve) => this.#waiting.push(resolve));
    if (!slot) throw away();
    return slot;
  }

  #giveBack(slot: Slot): void {
    const next = this.#waiting.shift();
    if (next) next(slot);
    else slot.isBusy = false;
  }

  async #connect(slot: Slot): Promise<pg.Client> {
    let client: pg.Client;
    try {
      client = await this.#servers.connect();
    } catch (error) {
      this.away(error);
      throw error;
    }
    if (this.#isAway) {
      drop(client);
      throw away();
    }
    slot.client = client;
    client.once("end", () => {
      if (slot.client === client) slot.client = undefined;
    });
    return client;
  }
}

const away = () => unavailable("The database cannot be reached.");

const withPatience = async <T>(client: pg.Client, answer: Promise<T>): Promise<T> => {
  const patience = setTimeout(() => drop(client), SILENT_MS);
  try {
    return await answer;
  } finally {
    clearTimeout(patience);
  }
};
