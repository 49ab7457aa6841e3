import type pg from "pg";
import { drop, type Servers, withPatience } from "./connect.ts";
import { type Heard, readPayload } from "./payloads.ts";

/** The interval at which a server is polled, and the silence after which it counts as gone. */
const POLL_MS = 1_000;
const SILENT_MS = 5_000;
/** Between two tries to reach the database again: half of it and up to as much again, so that gateways do not come all at once. */
const RETRY_MS = 300;

type NotificationEvents = {
  /** The connection is there, for the first time or again: news from the meantime was not heard. */
  connected(client: pg.Client): Promise<void>;
  lost(error: unknown): void;
  heard(heard: Heard): void;
  /** Once a second. */
  poll(): Promise<void>;
};

/** The connection by which gateways hear of each other. It is the one that looks for the database when it is gone. */
export class Notifications {
  readonly #servers: Servers;
  readonly #node: string;
  readonly #events: NotificationEvents;
  #channel = "";
  #client: pg.Client | undefined;
  #isClosed = false;
  #isSeeking = false;
  /** Somebody has lost the database again while it was being found. */
  #isLostAgain = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(servers: Servers, node: string, events: NotificationEvents) {
    this.#servers = servers;
    this.#node = node;
    this.#events = events;
  }

  /** Begins to listen by this connection, which is its own from now on. */
  async open(channel: string, client: pg.Client): Promise<void> {
    this.#channel = channel;
    await this.#listen(client);
  }

  /** Tells other gateways something that no transaction tells. */
  async notify(payload: string): Promise<void> {
    // A gateway that is not told finds it at the next look.
    await this.#client?.query("select pg_notify($1, $2)", [this.#channel, payload]).catch(() => {});
  }

  /** Looks for the database until it is there. */
  seek(): void {
    if (this.#client) drop(this.#client);
    this.#client = undefined;
    this.#isLostAgain = this.#isSeeking;
    if (this.#isSeeking || this.#isClosed) return;
    this.#isSeeking = true;
    clearTimeout(this.#timer);
    void this.#seekOnce();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #seekOnce(): Promise<void> {
    if (this.#isClosed) return;
    try {
      const moved = () => this.#events.lost(new Error("Another server accepts the writes now."));
      const client = await this.#servers.find(moved);
      this.#isLostAgain = false;
      await this.#listen(client);
      this.#isSeeking = false;
      if (this.#isLostAgain) this.seek();
    } catch (error) {
      this.#events.lost(error);
      this.#timer = setTimeout(() => void this.#seekOnce(), RETRY_MS * (0.5 + Math.random()));
      this.#timer.unref();
    }
  }

  async #listen(client: pg.Client): Promise<void> {
    try {
      client.on("notification", ({ payload }) => this.#hear(payload ?? ""));
      await client.query(`listen ${this.#channel}`);
      await this.#events.connected(client);
      // Gateways that are there already learn that somebody else is.
      await client.query("select pg_notify($1, $2)", [this.#channel, JSON.stringify([this.#node])]);
      if (this.#isClosed) throw new Error("closed");
    } catch (error) {
      drop(client);
      throw error;
    }
    this.#client = client;
    client.once("end", () => {
      if (this.#client !== client) return;
      this.#client = undefined;
      this.seek();
    });
    this.#pollLater(client);
  }

  #pollLater(client: pg.Client): void {
    this.#timer = setTimeout(async () => {
      await withPatience(client, SILENT_MS, client.query("select 'the connection is there'")).catch(() => drop(client));
      await this.#events.poll().catch(() => {});
      if (this.#client === client && !this.#isClosed) this.#pollLater(client);
    }, POLL_MS);
    this.#timer.unref();
  }

  #hear(payload: string): void {
    const heard = readPayload(payload, this.#node);
    if (heard) this.#events.heard(heard);
  }
}
