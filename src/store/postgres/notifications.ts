import type pg from "pg";
import { drop, type Servers, withTimeout } from "./connect.ts";
import { type PeerNews, readPayload } from "./payloads.ts";

/** The interval at which the connection is checked, and the time after which it is dropped if the check gets no answer. */
const POLL_MS = 1_000;
const SILENT_MS = 5_000;
/** The mean pause between two attempts to connect. It varies by half, so that gateways do not reconnect all at once. */
const RETRY_MS = 300;

type NotificationEvents = {
  /** Called with each new connection. After a reconnect, the changes since the previous connection was lost have not been received. */
  connected(client: pg.Client): Promise<void>;
  lost(error: unknown): void;
  received(received: PeerNews): void;
  /** Called once a second. */
  poll(): Promise<void>;
};

/** The connection that receives the notifications of other gateways. It reconnects if it is lost. */
export class Notifications {
  readonly #servers: Servers;
  readonly #node: string;
  readonly #events: NotificationEvents;
  #channel = "";
  #client: pg.Client | undefined;
  #isClosed = false;
  #isReconnecting = false;
  /** True if the database was lost again during the reconnect. */
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

  /** Sends a notification that is not part of a transaction. */
  async notify(payload: string): Promise<void> {
    // A gateway without the notification finds the change at its next poll.
    await this.#client?.query("select pg_notify($1, $2)", [this.#channel, payload]).catch(() => {});
  }

  /** Drops the connection, and tries to connect until the database answers. */
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
      await withTimeout(client, SILENT_MS, client.query("select 'the connection is there'")).catch(() => drop(client));
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
