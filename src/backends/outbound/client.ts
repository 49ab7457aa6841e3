import { isIP, type Socket } from "node:net";
import { buildConnector } from "undici";
import type { Clock } from "#kit/clock.ts";
import { reachWithin } from "#kit/lookup.ts";
import { KEPT_MS } from "./answer-head.ts";
import { type AnswerHandler, Asked, Connection, type ConnectionOwner, onread } from "./connection.ts";
import { type Gathering, gathering as shared } from "./gathering.ts";
import { headOf, hostOf, type OutgoingRequest } from "./request-text.ts";

/** How often is looked for connections that have waited long enough. */
const LOOK_MS = 1_000;
/**
 * With so many connections to a server, each request has one more opened for the next, until so many wait: to connect first is much of what a reply's
 * first piece waits for.
 */
const MANY = 100;
const SPARE = 5;

/** One that waits for a request, until then. */
type Idle = { connection: Connection; until: number };

/** The connections to one server. */
type Place = ConnectionOwner & {
  url: URL;
  host: string;
  servername: string | undefined;
  idle: Idle[];
  /** How many are open, and how many are being opened ahead of their request. */
  open: number;
  opening: number;
};

export type ClientWish = {
  gathering?: Gathering;
  /** Who signs the certificates of those that are asked, where that is not whom Node trusts. */
  ca?: Buffer;
};

/**
 * POSTs over HTTP/1.1, each on a connection of its own that is kept for the next. It does what is needed here and no more: a client for all
 * that HTTP can be costs a turn as much as all the rest of it. The address is the configuration's: no redirect is followed, no variable of the
 * environment sets a proxy, no cookie is kept, nothing is sent twice. How long an answer may take is not decided here: every turn is watched.
 */
export class Client {
  readonly #clock: Clock;
  readonly #gathering: Gathering;
  readonly #connect: (url: URL, servername: string | undefined, then: buildConnector.Callback) => void;
  readonly #places = new Map<string, Place>();
  /** All that are open. */
  readonly #open = new Set<Connection>();
  #connecting = 0;
  /** Answered in this turn of the event loop, and free in the next: by then it is known whether the server has ended them, or says more. */
  #answered: { place: Place; one: Idle }[] = [];
  #stopLooking: (() => void) | undefined;
  #whenClosed: (() => void) | undefined;
  #isClosed = false;

  constructor(connectMs: number, clock: Clock, { gathering = shared, ca }: ClientWish = {}) {
    this.#clock = clock;
    this.#gathering = gathering;
    const connect = buildConnector({ ...reachWithin(connectMs), ca, onread } as buildConnector.BuildOptions);
    this.#connect = ({ protocol, host, hostname, port }, servername, then) => {
      connect(
        { protocol, host, hostname: hostname.replace(/^\[|\]$/g, ""), port, ...(servername && { servername }) },
        then,
      );
    };
  }

  /** Sends a request. The handler hears of whatever becomes of it; only what cannot be sent at all is thrown. */
  dispatch(request: OutgoingRequest, handler: AnswerHandler): void {
    if (this.#isClosed) throw new Error("the client is closed");
    const { origin, body } = request;
    const host = hostOf(request);
    const place = this.#placeOf(origin, host);
    const bytes = Buffer.byteLength(body);
    const head = headOf(request, host === undefined ? place.host : undefined, bytes);
    const asked = new Asked(handler);
    if (asked.isOver) return;
    const connection = this.#take(place);
    if (connection) connection.send(asked, head, body, bytes);
    else this.#begin(place, asked, (opened) => opened.send(asked, head, body, bytes));
    if (place.open >= MANY && place.idle.length + place.opening < SPARE) this.#openSpare(place);
  }

  /** Ends each connection as soon as nobody needs it any more, and takes no more requests. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopLooking?.();
    this.#letAnswered();
    for (const { idle } of this.#places.values()) for (const { connection } of idle.splice(0)) connection.destroy();
    if (this.#open.size + this.#connecting > 0) await new Promise<void>((resolve) => (this.#whenClosed = resolve));
  }

  #placeOf(origin: string, host: string | undefined): Place {
    const key = host === undefined ? origin : `${origin} ${host}`;
    const known = this.#places.get(key);
    if (known) return known;
    const url = new URL(origin);
    const name = host?.replace(/:\d*$/, "");
    const place: Place = {
      url,
      host: url.host,
      servername: name === undefined || isIP(name) !== 0 ? undefined : name,
      idle: [],
      open: 0,
      opening: 0,
      free: (connection, forMs) => this.#free(place, connection, forMs),
      gone: (connection) => this.#gone(place, connection),
    };
    this.#places.set(key, place);
    return place;
  }

  /** The one that was used last: the others may go. */
  #take({ idle }: Place): Connection | undefined {
    const one = idle.pop();
    if (!one) return undefined;
    if (one.until > this.#clock.monotonic()) return one.connection;
    idle.push(one);
    this.#endIdle(idle);
    return undefined;
  }

  #begin(place: Place, asked: Asked, send: (connection: Connection) => void): void {
    this.#connecting++;
    this.#connect(place.url, place.servername, (...[error, socket]) => {
      this.#connecting--;
      if (error) asked.fail(error);
      else this.#opened(place, socket as Socket, asked, send);
      this.#tellClosed();
    });
  }

  #opened(place: Place, socket: Socket, asked: Asked, send: (connection: Connection) => void): void {
    if (asked.isOver) {
      socket.on("error", () => {}).destroy();
      return;
    }
    send(this.#own(place, socket));
  }

  /** One for a request that is yet to come. Where it cannot be had, that request opens its own, and hears why. */
  #openSpare(place: Place): void {
    this.#connecting++;
    place.opening++;
    this.#connect(place.url, place.servername, (...[error, socket]) => {
      this.#connecting--;
      place.opening--;
      if (!error) this.#keepSpare(place, socket as Socket);
      this.#tellClosed();
    });
  }

  #keepSpare(place: Place, socket: Socket): void {
    const connection = this.#own(place, socket);
    if (this.#isClosed) {
      connection.destroy();
      return;
    }
    socket.unref();
    // Under those that have been used, so that it goes first when there are fewer requests.
    place.idle.unshift({ connection, until: this.#clock.monotonic() + KEPT_MS });
    this.#stopLooking ??= this.#clock.after(LOOK_MS, this.#look);
  }

  #own(place: Place, socket: Socket): Connection {
    const connection = new Connection(socket, place, this.#gathering);
    this.#open.add(connection);
    place.open++;
    return connection;
  }

  #free(place: Place, connection: Connection, forMs: number): void {
    if (this.#isClosed) {
      connection.destroy();
      return;
    }
    this.#answered.push({ place, one: { connection, until: this.#clock.monotonic() + forMs } });
    if (this.#answered.length === 1) setImmediate(this.#letAnswered);
    this.#stopLooking ??= this.#clock.after(LOOK_MS, this.#look);
  }

  readonly #letAnswered = (): void => {
    const answered = this.#answered;
    this.#answered = [];
    for (const { place, one } of answered) if (this.#open.has(one.connection)) place.idle.push(one);
  };

  #gone(place: Place, connection: Connection): void {
    const { idle } = place;
    if (this.#open.delete(connection)) place.open--;
    const at = idle.findIndex((one) => one.connection === connection);
    if (at >= 0) idle.splice(at, 1);
    this.#tellClosed();
  }

  readonly #look = (): void => {
    this.#stopLooking = undefined;
    for (const { idle } of this.#places.values()) this.#endIdle(idle);
    if (this.#open.size > 0 && !this.#isClosed) this.#stopLooking = this.#clock.after(LOOK_MS, this.#look);
  };

  #endIdle(idle: Idle[]): void {
    const now = this.#clock.monotonic();
    for (const { connection, until } of idle.slice()) if (until <= now) connection.destroy();
  }

  #tellClosed(): void {
    if (this.#isClosed && this.#open.size + this.#connecting === 0) this.#whenClosed?.();
  }
}
