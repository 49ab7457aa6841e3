import type pg from "pg";
import { drop, type Servers } from "./connect.ts";
import { failureOf, unavailable } from "./errors.ts";

/** The most calls that may wait for a connection; one that comes then is told to come later. */
const MOST_WAITING = 5_000;
/** A call that takes so long is given up. The line finds out sooner if the server is there at all. */
const SILENT_MS = 15_000;
/** Where a server did not let one more connection in, those that are there have to do for so long. */
const REST_MS = 1_000;

/** A connection, or the place of one. */
type Slot = { client: pg.Client | undefined; isBusy: boolean };
/** One that has its connection. */
type OpenSlot = Slot & { client: pg.Client };

export type PoolEvents = {
  /** No server can be reached: calls are refused until `reachable` is called. */
  lost(error: unknown): void;
};

/** The connections of this gateway. While the database is away all calls are refused at once. */
export class Pool {
  readonly #servers: Servers;
  readonly #slots: Slot[];
  readonly #events: PoolEvents;
  readonly #waiting: ((slot: OpenSlot | undefined) => void)[] = [];
  /** How many connections are being opened, and when that may be tried again. */
  #opening = 0;
  #opensAt = 0;
  #isAway = false;
  #isClosed = false;

  constructor(servers: Servers, size: number, events: PoolEvents) {
    this.#servers = servers;
    this.#events = events;
    this.#slots = Array.from({ length: size }, () => ({ client: undefined, isBusy: false }));
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** Lends a connection. */
  async run<T>(ask: (client: pg.Client) => Promise<T>): Promise<T> {
    const slot = await this.#take();
    const { client } = slot;
    try {
      return await withPatience(client, ask(client));
    } catch (error) {
      const failure = failureOf(error);
      if (failure === "lost" || failure === "refused") {
        this.#leave(slot, client);
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

  async #take(): Promise<OpenSlot> {
    if (this.#isAway) throw away();
    const free = this.#slots.find((slot): slot is OpenSlot => !slot.isBusy && slot.client !== undefined);
    if (free) {
      free.isBusy = true;
      return free;
    }
    if (this.#waiting.length >= MOST_WAITING) throw unavailable("Too many calls wait for the database.");
    const taken = new Promise<OpenSlot | undefined>((resolve) => this.#waiting.push(resolve));
    this.#openMore();
    const slot = await taken;
    if (!slot) throw away();
    return slot;
  }

  #giveBack(slot: Slot): void {
    const next = slot.client && this.#waiting.shift();
    if (next) {
      next(slot as OpenSlot);
    } else {
      slot.isBusy = false;
      this.#openMore();
    }
  }

  /** One for each call that waits, which takes it or one that is free before: to open one may take long. */
  #openMore(): void {
    if (this.#isAway || this.#opening >= this.#waiting.length) return;
    if (performance.now() < this.#opensAt && this.#hasSome()) return;
    const slot = this.#slots.find(({ isBusy, client }) => !isBusy && !client);
    if (slot) void this.#open(slot);
  }

  async #open(slot: Slot): Promise<void> {
    slot.isBusy = true;
    this.#opening++;
    try {
      const client = await this.#servers.connect();
      if (this.#isAway) drop(client);
      else {
        slot.client = client;
        client.once("end", () => this.#leave(slot, client));
      }
    } catch (error) {
      if (!this.#hasSome()) this.away(error);
      this.#opensAt = performance.now() + REST_MS;
      setTimeout(() => this.#openMore(), REST_MS).unref();
    }
    this.#opening--;
    this.#giveBack(slot);
  }

  #hasSome(): boolean {
    return this.#slots.some(({ client }) => client !== undefined);
  }

  #leave(slot: Slot, client: pg.Client): void {
    if (slot.client === client) slot.client = undefined;
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
