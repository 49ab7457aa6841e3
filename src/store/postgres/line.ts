import type pg from "pg";
import { drop, type Servers } from "./connect.ts";
import type { Change, Notice } from "./frame.ts";

/** The safety net: what no notification told is looked for so often. */
const POLL_MS = 1_000;
/** A server that is there and answers nothing for so long is as good as gone. */
const SILENT_MS = 5_000;
/** Between two tries to reach the database again: half of it and up to as much again, so that gateways do not come all at once. */
const RETRY_MS = 300;
/** Notifications go at once, but no sooner than so long after the one before. */
const PUBLISH_MS = 50;
/** What may go with the next one, and waits no longer than so. */
const LAZY: ReadonlySet<Notice> = new Set(["gateway", "handed"]);
const LAZY_MS = 100;
/** A notification takes 8 000 bytes. */
const MOST_BYTES = 7_000;

/** It waits for no disk: what it tells of is kept, and a notification outlives no server. */
const NOTIFY = "select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";

export type Heard = { news: number[]; changes: Change[]; notices: [Notice, number | readonly string[]][] };

export type LineEvents = {
  /** It is there, for the first time or again: what came meanwhile was not heard. */
  connected(client: pg.Client): Promise<void>;
  lost(error: unknown): void;
  heard(heard: Heard): void;
  /** Once a second; answers whether other gateways are there. */
  poll(client: pg.Client): Promise<boolean>;
};

/** The connection by which gateways hear of each other. It is the one that looks for the database when it is gone. */
export class Line {
  readonly #servers: Servers;
  readonly #node: string;
  /** What its own notifications begin with. */
  readonly #own: string;
  readonly #events: LineEvents;
  #channel = "";
  #client: pg.Client | undefined;
  #isClosed = false;
  #isSeeking = false;
  /** Somebody has lost the database again while it was being found. */
  #isLostAgain = false;
  /** Other gateways are there. With none, nobody is told anything. */
  #hasOthers = true;
  #unsent: Heard = empty();
  #isPlanned = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(servers: Servers, node: string, events: LineEvents) {
    this.#servers = servers;
    this.#node = node;
    this.#own = JSON.stringify([node]).slice(0, -1);
    this.#events = events;
  }

  /** Begins to listen by this connection, which is its own from now on. */
  async open(channel: string, client: pg.Client): Promise<void> {
    this.#channel = channel;
    await this.#listen(client);
  }

  /** Other gateways are there, as far as is known. */
  get hasOthers(): boolean {
    return this.#hasOthers;
  }

  publish(news: number | null, changes: readonly Change[]): void {
    if (!this.#hasOthers) return;
    if (news !== null) this.#unsent.news.push(news);
    this.#unsent.changes.push(...changes);
    this.#plan();
  }

  notify(notice: Notice, of: number | readonly string[]): void {
    if (!this.#hasOthers) return;
    const same = this.#unsent.notices.find(([name]) => name === notice);
    if (!same) this.#unsent.notices.push([notice, of]);
    else same[1] = typeof of === "number" ? of : [...new Set([...(same[1] as readonly string[]), ...of])];
    if (!LAZY.has(notice)) this.#plan();
    else if (!same) setTimeout(() => this.#plan(), LAZY_MS).unref();
  }

  /** Looks for the database until it is there. */
  seek(): void {
    if (this.#client) drop(this.#client);
    this.#client = undefined;
    this.#isLostAgain = this.#isSeeking;
    if (this.#isSeeking || this.#isClosed) return;
    this.#isSeeking = true;
    clearTimeout(this.#timer);
    const again = () => {
      this.#timer = setTimeout(() => void tryOnce(), RETRY_MS * (0.5 + Math.random()));
      this.#timer.unref();
    };
    const tryOnce = async () => {
      if (this.#isClosed) return;
      try {
        const client = await this.#servers.find(() =>
          this.#events.lost(new Error("Another server takes the writes now.")),
        );
        this.#isLostAgain = false;
        await this.#listen(client);
        this.#isSeeking = false;
        if (this.#isLostAgain) this.seek();
      } catch (error) {
        this.#events.lost(error);
        again();
      }
    };
    void tryOnce();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#flush();
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #listen(client: pg.Client): Promise<void> {
    try {
      client.on("notification", ({ payload }) => this.#hear(payload ?? ""));
      await client.query(`listen ${this.#channel}`);
      await this.#events.connected(client);
      // Whoever is there already learns that somebody else is.
      await client.query("select pg_notify($1, $2)", [this.#channel, JSON.stringify([this.#node])]);
      this.#hasOthers = await this.#events.poll(client);
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
      const patience = setTimeout(() => drop(client), SILENT_MS);
      try {
        this.#hasOthers = await this.#events.poll(client);
        if (this.#client === client && !this.#isClosed) this.#pollLater(client);
      } catch {
        drop(client);
      } finally {
        clearTimeout(patience);
      }
    }, POLL_MS);
    this.#timer.unref();
  }

  #hear(payload: string): void {
    // Its own come back, too.
    if (payload.startsWith(this.#own)) return;
    const [, news, changes, notices] = JSON.parse(payload) as [string, number[]?, Change[]?, Heard["notices"]?];
    this.#hasOthers = true;
    if (news) this.#events.heard({ news, changes: changes ?? [], notices: notices ?? [] });
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(async () => {
      await this.#flush();
      setTimeout(() => {
        this.#isPlanned = false;
        const { changes, notices } = this.#unsent;
        if (changes.length > 0 || notices.some(([name]) => !LAZY.has(name))) this.#plan();
      }, PUBLISH_MS).unref();
    });
  }

  async #flush(): Promise<void> {
    const { news, changes, notices } = this.#unsent;
    this.#unsent = empty();
    const client = this.#client;
    if (!client || (changes.length === 0 && notices.length === 0)) return;
    try {
      for (const payload of payloads(this.#node, news, changes, notices)) {
        await client.query({ name: "notify", text: NOTIFY, values: [this.#channel, payload] });
      }
    } catch {
      // Who is not told finds it at the next look.
    }
  }
}

const empty = (): Heard => ({ news: [], changes: [], notices: [] });

/** In pieces that a notification can hold. What is in none of them is found by its number. */
const payloads = (node: string, news: number[], changes: Change[], notices: Heard["notices"]): string[] => {
  const whole = JSON.stringify([node, news, changes, notices]);
  if (Buffer.byteLength(whole) <= MOST_BYTES) return [whole];
  const ids = [...notices];
  const texts = ids.filter(([, of]) => typeof of !== "number" && of.length > 10);
  if (changes.length <= 1 && texts.length === 0) return [];
  const half = Math.ceil(changes.length / 2);
  const few = notices.map(([name, of]): [Notice, number | readonly string[]] =>
    typeof of === "number" ? [name, of] : [name, of.slice(0, Math.ceil(of.length / 2))],
  );
  const rest = texts.map(([name, of]): [Notice, readonly string[]] => {
    const list = of as readonly string[];
    return [name, list.slice(Math.ceil(list.length / 2))];
  });
  return [...payloads(node, news, changes.slice(0, half), few), ...payloads(node, [], changes.slice(half), rest)];
};
