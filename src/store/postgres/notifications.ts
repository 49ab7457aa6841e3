import type pg from "pg";
import { drop, type Servers, withPatience } from "./connect.ts";
import { type PeerNews, readPayload } from "./payloads.ts";

/** The interval at which the server is polled, and the time without an answer after which the connection is dropped. */
const POLL_MS = 1_000;
const SILENT_MS = 5_000;
/** The mean pause between two attempts to connect. It varies by half, so that gateways do not reconnect all at once. */
const RETRY_MS = 300;

type NotificationEvents = {
  /** Called with a new connection. After the first one, changes since the loss of the previous connection were not received. */
  connected(client: pg.Client): Promise<void>;
  lost(error: unknown): void;
  received(received: PeerNews): void;
  /** Called once a second. */
  poll(): Promise<void>;
};

/** The connection for notifications of other gateways. If the database is lost, it reconnects. */
export class Notifications {
  readonly #servers: Servers;
  readonly #node: string;
  readonly #events: NotificationEvents;
  #channel = "";
  #client: pg.Client | undefined;
  #isClosed = false;
  #isReconnecting = false;
  /** True if a call lost the database again during the reconnect. */
  #isLostAgain = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(servers: Servers, node: string, events: NotificationEvents) {
    this.#servers = servers;
    this.#node = node;
    this.#events = events;
  }

  /** Listens on this connection, and owns it from now on. */
  async open(channel: string, client: pg.Client): Promise<void> {
    this.#channel = channel;
    await this.#listen(client);
  }

  /** Notifies other gateways outside of a transaction. */
  async notify(payload: string): Promise<void> {
    // A gateway without the notification finds the change at its next poll.
    await this.#client?.query("select pg_notify($1, $2)", [this.#channel, payload]).catch(() => {});
  }

  /** Tries to connect until the database answers. */
  reconnect(): void {
    if (this.#client) drop(this.#client);
    this.#client = undefined;
    this.#isLostAgain = this.#isReconnecting;
    if (this.#isReconnecting || this.#isClosed) return;
    this.#isReconnecting = true;
    clearTimeout(this.#timer);
    void this.#reconnectOnce();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #reconnectOnce(): Promise<void> {
    if (this.#isClosed) return;
    try {
      const moved = () => this.#events.lost(new Error("Another server accepts the writes now."));
      const client = await this.#servers.find(moved);
      this.#isLostAgain = false;
      await this.#listen(client);
      this.#isReconnecting = false;
      if (this.#isLostAgain) this.reconnect();
    } catch (error) {
      this.#events.lost(error);
      this.#timer = setTimeout(() => void this.#reconnectOnce(), RETRY_MS * (0.5 + Math.random()));
      this.#timer.unref();
    }
  }

  async #listen(client: pg.Client): Promise<void> {
    try {
      client.on("notification", ({ payload }) => this.#receive(payload ?? ""));
      await client.query(`listen ${this.#channel}`);
      await this.#events.connected(client);
      // Running gateways learn that another one is connected.
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
      this.reconnect();
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

  #receive(payload: string): void {
    const received = readPayload(payload, this.#node);
    if (received) this.#events.received(received);
  }
}
