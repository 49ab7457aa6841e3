import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { DeliveryFeed } from "#core/recorder/delivery-feed.ts";
import type { AgentListener, DeletedAt } from "#core/sessions/journal.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { Events } from "#observe/events.ts";
import type { Session, SessionRef, Turn } from "#store/store.ts";
import { type DeliveryReader, pushDeliveries } from "./delivery-pushes.ts";
import type { Frame } from "./frame.ts";
import { placeOfCursor, type StreamPlace } from "./pushes.ts";
import { SessionStream, type SessionStreamParts } from "./session-stream.ts";
import {
  type GatewayStream,
  type PendingCall,
  type PushSink,
  Reader,
  type ReaderOwner,
  type Sender,
} from "./streams.ts";

export type SubscriberParts = SessionStreamParts & {
  gatewayStream: Pick<GatewayEntries, "epoch" | "place">;
  deliveryFeed: DeliveryFeed;
  clock: Clock;
  events: Pick<Events, "storeFailed">;
  /** Throws if no agent has this name. */
  requireAgent(name: string): void;
  gateway: GatewayStream;
};

export type FollowOptions = { stream: boolean; replySeq?: number | undefined };

const MOST_SESSIONS = 1_000;
const NO_ENTRIES = { firstSeq: 1, lastSeq: 0 };
const PAGE = 32;
/** The pause before a failed read is retried. */
const RETRY_MS = 1_000;
/** The most streams of a connection that may be behind. With more, the connection is closed, and the client resumes with its cursors. */
const MOST_BEHIND = 10_000;

/** The subscriptions of a connection, and the unfinished turns that it started. It is created with the first of these. */
export class Subscriber implements ReaderOwner, AgentListener {
  readonly sink: PushSink;
  readonly readers = new Map<string, Reader<SessionStream>>();
  /** The subscribed agents, each with the function that ends its subscription. */
  readonly agents = new Map<string, () => void>();
  gateway: Reader<GatewayStream> | undefined = undefined;
  deliveries: DeliveryReader | undefined = undefined;
  readonly #parts: SubscriberParts;
  /** Requests are processed one after another, so that each sees the result of the previous one. */
  #lastRequest: Promise<unknown> = Promise.resolve();
  readonly #behind = new Set<Reader>();
  #isPumping = false;
  #isPumpDue = false;

  constructor(sink: PushSink, parts: SubscriberParts) {
    this.sink = sink;
    this.#parts = parts;
  }

  /** True if the connection is subscribed to a session or an agent. */
  get hasSessions(): boolean {
    return this.agents.size > 0 || [...this.readers.values()].some(({ isSubscribed }) => isSubscribed);
  }

  /** Starts subscriptions or changes their places, either all or none. Pushes start after the answer to the call. */
  async subscribe(request: Subscribe): Promise<Subscribed> {
    const begun = this.#lastRequest.then(() => this.#begin(request));
    this.#lastRequest = begun.catch(() => {});
    const places = await begun;
    if (!this.sink.isOpen) this.leave();
    return places;
  }

  /** Ends subscriptions, after earlier requests have been processed. */
  async unsubscribe({ sessions = [], agents = [], gateway, deliveries }: Unsubscribe): Promise<void> {
    await this.#lastRequest;
    for (const name of agents) this.#unfollowAgent(name);
    for (const id of sessions) {
      const reader = this.readers.get(id);
      if (!reader) continue;
      reader.isNamed = false;
      // A session of a subscribed agent stays subscribed.
      if (!this.agents.has(reader.stream.agent ?? "")) reader.release();
    }
    if (gateway || deliveries) this.#dropDeliveries();
    if (gateway && this.gateway) this.drop(this.gateway);
  }

  /** Pushes the end of a turn to its sender, and with `stream` the pieces of the reply until then. */
  follow(call: PendingCall, turn: Turn, { stream, replySeq }: FollowOptions): void {
    if (!this.sink.isOpen) return;
    const sender = { turnId: turn.turnId, stream, call };
    if (hasEnded(turn)) {
      this.#pushEnd(sender, turn);
      return;
    }
    const reader = this.#readerOf(turn.sessionId);
    reader.senders = [...reader.senders, sender];
    reader.stream.agent ??= turn.agent;
    if (stream) reader.stream.sendPieces(turn.turnId, replySeq);
    // The turn may have ended on another gateway before it was followed here.
    if (this.#parts.store.shared && replySeq === undefined) void this.#checkEnded(reader, sender);
  }

  leave(): void {
    for (const name of [...this.agents.keys()]) this.#unfollowAgent(name);
    for (const reader of [...this.readers.values(), ...this.#behind]) this.drop(reader);
    if (this.gateway) this.drop(this.gateway);
    this.#dropDeliveries();
  }

  /** The journal's listener. Subscribes to a session of a subscribed agent, to the entries after `before`. */
  joinByAgent(sessionId: string, before: number): void {
    const reader = this.#readerOf(sessionId);
    if (reader.isSubscribed) return;
    reader.isSubscribed = true;
    if (!reader.isBehind) reader.sent = before;
  }

  /** The journal's listener. */
  deleted(session: SessionRef, end: DeletedAt): void {
    this.pushDeleted(this.#parts.frames.deleted(session, end));
  }

  pushDeleted(frame: Frame): void {
    // The entry of a deleted session cannot be read later, so a full connection is closed.
    if (this.sink.isFull) this.sink.cut();
    else this.sink.push(frame);
  }

  fallBehind(reader: Reader): void {
    reader.isBehind = true;
    this.#behind.add(reader);
    if (this.#behind.size > MOST_BEHIND) this.sink.cut();
    this.pumpSoon();
  }

  /** Sends waiting entries in the next tick, so that the answer to a call precedes the pushes that the call causes. */
  pumpSoon(): void {
    this.deliveries?.resume();
    if (this.#isPumpDue || this.#isPumping) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      void this.#pump();
    });
  }

  #readerOf(sessionId: string): Reader<SessionStream> {
    const known = this.readers.get(sessionId);
    if (known) return known;
    const reader = new Reader(this, this.#streamOf(sessionId));
    this.readers.set(sessionId, reader);
    return reader;
  }

  #streamOf(sessionId: string): SessionStream {
    return this.#parts.sessions.get(sessionId) ?? new SessionStream(this.#parts, sessionId);
  }

  drop(reader: Reader): void {
    const { stream } = reader;
    reader.isOver = true;
    this.#behind.delete(reader);
    if (reader === this.gateway) this.gateway = undefined;
    else if (stream instanceof SessionStream && this.readers.get(stream.sessionId) === reader)
      this.readers.delete(stream.sessionId);
    stream.leave(reader);
  }

  /** Pushes the end of a turn that has ended, with a separate reader that starts at the turn. */
  #pushEnd(sender: Sender, { sessionId, seq }: Pick<Turn, "sessionId" | "seq">): void {
    const reader = new Reader(this, this.#streamOf(sessionId));
    reader.senders = [sender];
    reader.sent = seq - 1;
    this.fallBehind(reader);
  }

  async #checkEnded(reader: Reader<SessionStream>, sender: Sender): Promise<void> {
    // If the store fails, the end is pushed when its entry is received.
    const turn = await this.#parts.store.getTurn(sender.turnId).catch(() => undefined);
    if (!turn || !hasEnded(turn) || reader.isOver || !reader.senders.includes(sender)) return;
    if (!reader.isSubscribed) this.#pushEnd(sender, turn);
    reader.senders = reader.senders.filter((one) => one !== sender);
    reader.dropIdle();
  }

  /** Sends the entries that wait in the store, while there is room. */
  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      for (let [reader] = this.#behind; reader && this.sink.isOpen; [reader] = this.#behind) {
        if (!this.sink.hasRoom) {
          this.sink.hold();
          break;
        }
        await this.#readPage(reader);
        // The messages are written between two pages, so that `hasRoom` is true.
        await yieldToOthers();
      }
    } catch (error) {
      this.#parts.events.storeFailed({ operation: "readEntries", error });
      this.#parts.clock.after(RETRY_MS, () => this.pumpSoon());
    }
    this.#isPumping = false;
  }

  async #readPage(reader: Reader): Promise<void> {
    const { stream, sent: from, newest } = reader;
    const { sink } = this;
    if (reader.isReset) {
      reader.isReset = false;
      sink.push(stream.resetFrame(from));
    }
    const page = await stream.read(from, PAGE);
    if (reader.isOver || reader.sent !== from) return;
    const before = (page[0]?.seq ?? 0) - 1;
    if (before > from) {
      // The entries in between were erased while this reader was behind.
      reader.sent = before;
      if (reader.isSubscribed) sink.push(stream.resetFrame(before));
    }
    for (const entry of page) {
      if (!sink.hasRoom || reader.isOver) return;
      reader.take(entry, () => stream.frameOf(entry));
    }
    if (reader.isOver) return;
    this.#behind.delete(reader);
    const isNews = reader.newest > reader.sent && (page.length > 0 || reader.newest !== newest);
    if (page.length === PAGE || isNews) {
      this.#behind.add(reader); // After the other readers.
      return;
    }
    // A reader of `#pushEnd`: its turn has ended, but the entry of the end was erased.
    if (stream instanceof SessionStream && this.readers.get(stream.sessionId) !== reader) {
      this.drop(reader);
      return;
    }
    reader.isBehind = false;
    stream.caughtUp();
  }

  async #begin(request: Subscribe): Promise<Subscribed> {
    const { store, gatewayStream, deliveryFeed, frames } = this.#parts;
    const { gateway: from, agents = [] } = request;
    this.#check(request);
    const wanted = Object.entries(request.sessions ?? {});
    const held = this.#holdReaders(request);
    try {
      const found = await Promise.all(wanted.map(([id]) => store.getSession(id)));
      const missing = wanted.find(([, cursor], n) => cursor === null && !found[n]);
      if (missing) throw new GatewayError("session-not-found", `No session has the id \`${missing[0]}\`.`);
      const range = from === undefined ? undefined : await gatewayStream.place();
      if (request.deliveries && !this.deliveries)
        this.deliveries = pushDeliveries(deliveryFeed, frames, this.sink, () => this.gateway?.sent ?? 0);
      for (const [n, [id, cursor]] of wanted.entries()) this.#startSession(id, found[n], cursor);
      const isOfStream = ({ epoch }: StreamPlace) => epoch === gatewayStream.epoch;
      if (range && this.gateway) this.#start(this.gateway, from ?? null, { ...range, isOfStream });
      // Deliveries have no cursor: a client that resumes must list them again.
      if (request.deliveries) this.deliveries?.start(typeof from === "string");
    } finally {
      for (const reader of held) {
        reader.isHeld = false;
        if (!reader.isOver) reader.dropIdle();
      }
    }
    for (const name of agents) this.#followAgent(name);
    return this.#placesOf(request);
  }

  #check({ sessions = {}, agents = [], gateway, deliveries }: Subscribe): void {
    for (const name of agents) this.#parts.requireAgent(name);
    for (const [id, cursor] of Object.entries(sessions)) checkCursor(cursor, "session", `sessions["${id}"]`);
    checkCursor(gateway ?? null, "gateway", "gateway");
    if (deliveries && gateway === undefined && !this.gateway)
      throw new GatewayError(
        "invalid-params",
        "`deliveries` requires the gateway's stream: subscribe to `gateway` too.",
      );
    const named = [...this.readers].flatMap(([id, { isNamed }]) => (isNamed ? [id] : []));
    if (new Set([...named, ...Object.keys(sessions)]).size > MOST_SESSIONS)
      throw new GatewayError(
        "invalid-params",
        `\`sessions\`: a connection may subscribe to at most ${MOST_SESSIONS} sessions.`,
      );
  }

  /** Creates the readers before the ends of their streams are read, so that no entry is missed. */
  #holdReaders({ sessions = {}, gateway: from }: Subscribe): Reader[] {
    const held: Reader[] = Object.keys(sessions).map((id) => this.#readerOf(id));
    if (from !== undefined) {
      this.gateway ??= new Reader(this, this.#parts.gateway);
      this.#parts.gateway.open();
      held.push(this.gateway);
    }
    for (const reader of held) reader.isHeld = true;
    return held;
  }

  #startSession(id: string, session: Session | undefined, from: string | null): void {
    const reader = this.readers.get(id);
    // The session was deleted after it was read.
    if (!reader) return;
    if (session) reader.stream.setSession(session);
    reader.isNamed = true;
    const { ordinal } = reader.stream;
    const { epoch } = this.#parts.store;
    const { firstSeq: first, lastSeq: last } = session ?? NO_ENTRIES;
    const isOfStream = (place: StreamPlace) =>
      place.epoch === epoch && (place.ordinal === ordinal || place.ordinal === 0);
    this.#start(reader, from, { first, last, isOfStream });
  }

  /** Starts a reader. If it is already subscribed, it continues from its place, unless the request contains a cursor. */
  #start(
    reader: Reader,
    from: string | null,
    { first, last, isOfStream }: { first: number; last: number; isOfStream: (place: StreamPlace) => boolean },
  ): void {
    if (reader.isSubscribed && from === null) return;
    const place = from === null ? undefined : placeOfCursor(from);
    const isKnown = place !== undefined && isOfStream(place) && place.seq + 1 >= first && place.seq <= last;
    if (place) reader.start(isKnown ? place.seq : last, !isKnown);
    // A new reader starts after the entries that were published since it was created. A reader that is behind for a sender continues from its place.
    else reader.start(reader.isBehind ? reader.sent : Math.max(last, reader.newest), false);
  }

  #placesOf({ sessions, gateway }: Subscribe): Subscribed {
    const { frames } = this.#parts;
    const places = Object.keys(sessions ?? {}).flatMap((id) => {
      const reader = this.readers.get(id);
      return reader ? [[id, frames.sessionCursor(reader.stream, reader.sent)] as const] : [];
    });
    return {
      ...(sessions && { sessions: Object.fromEntries(places) }),
      ...(gateway !== undefined && { gateway: frames.gatewayCursor(this.gateway?.sent ?? 0) }),
    };
  }

  #followAgent(name: string): void {
    if (!this.agents.has(name)) this.agents.set(name, this.#parts.journal.followAgent(name, this));
  }

  #unfollowAgent(name: string): void {
    this.agents.get(name)?.();
    this.agents.delete(name);
    for (const reader of this.readers.values()) if (reader.stream.agent === name && !reader.isNamed) reader.release();
  }

  #dropDeliveries(): void {
    this.deliveries?.stop();
    this.deliveries = undefined;
  }
}

function hasEnded({ status }: Turn): boolean {
  return status !== "queued" && status !== "running";
}

function checkCursor(cursor: string | null, kind: "session" | "gateway", name: string): void {
  if (cursor !== null && placeOfCursor(cursor)?.kind !== kind)
    throw new GatewayError("invalid-params", `\`${name}\` is not a cursor of this stream.`);
}
