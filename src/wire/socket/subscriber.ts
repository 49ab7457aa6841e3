import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Clock } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Events } from "#observe/events.ts";
import type { Session, Store } from "#store/store.ts";
import type { DeliveryPushes, DeliveryReader } from "./delivery-pushes.ts";
import { type PushFrames, placeOfCursor, type StreamPlace } from "./pushes.ts";
import { SessionStream } from "./session-stream.ts";
import { type GatewayStream, type PushSink, type SinkSubscriber, type Stream, StreamReader } from "./streams.ts";

export type SubscriberParts = {
  store: Store;
  gatewayStream: Pick<GatewayEntries, "epoch" | "place">;
  clock: Clock;
  events: Pick<Events, "storeFailed">;
  frames: PushFrames;
  gateway: GatewayStream;
  deliveries: DeliveryPushes;
  /** Throws where there is none of this name. */
  requireAgent(name: string): void;
  /** The subscribers of each agent. */
  ofAgent: Map<string, Set<Subscriber>>;
  streamOf(sessionId: string): SessionStream;
  /** Nobody reads it any more. */
  onUnread(stream: Stream): void;
};

export const MOST_SESSIONS = 1_000;
const NO_ENTRIES = { firstSeq: 1, lastSeq: 0 };
const PAGE = 32;
/** The wait before a store that did not answer is asked again. */
const RETRY_MS = 1_000;
/** Sessions that wait for one connection. A connection that lets more pile up is cut, and goes on by its cursors. */
const MOST_BEHIND = 10_000;

/** The subscriptions of one connection; made with the first. */
export class Subscriber implements SinkSubscriber {
  readonly sink: PushSink;
  readonly readers = new Map<string, StreamReader<SessionStream>>();
  /** Sessions that were asked for by id; readers of others are there because of their agent. */
  readonly named = new Set<string>();
  readonly agents = new Set<string>();
  gateway: StreamReader<GatewayStream> | undefined = undefined;
  deliveries: DeliveryReader | undefined = undefined;
  readonly #parts: SubscriberParts;
  /** One request after the other: each sees the result of the one before. */
  #lastRequest: Promise<unknown> = Promise.resolve();
  readonly #behind = new Set<StreamReader>();
  /** Pushes beside the streams, which are read from the store when there is room. */
  readonly #owed: (() => Promise<void>)[] = [];
  #isPumping = false;
  #isPumpDue = false;

  constructor(sink: PushSink, parts: SubscriberParts) {
    this.sink = sink;
    this.#parts = parts;
  }

  covers(sessionId: string, agent: string | undefined): boolean {
    const reader = this.readers.get(sessionId);
    return reader ? reader.sent !== undefined : agent !== undefined && this.agents.has(agent);
  }

  /** Begins subscriptions or moves them; all of them or none. Pushes begin after the answer to the call. */
  async subscribe(request: Subscribe): Promise<Subscribed> {
    const begun = this.#lastRequest.then(() => this.#begin(request));
    this.#lastRequest = begun.catch(() => {});
    const places = await begun;
    if (!this.sink.isOpen) this.leave();
    return places;
  }

  /** Ends subscriptions, after the requests that came before. */
  async unsubscribe({ sessions = [], agents = [], gateway, deliveries }: Unsubscribe): Promise<void> {
    await this.#lastRequest;
    for (const name of agents) this.#unfollowAgent(name);
    for (const id of sessions) {
      const reader = this.readers.get(id);
      this.named.delete(id);
      // One of an agent that is subscribed to goes on.
      if (reader && !this.agents.has(reader.stream.agent ?? "")) this.drop(reader);
    }
    if (gateway || deliveries) this.#dropDeliveries();
    if (gateway && this.gateway) this.drop(this.gateway);
  }

  /** Ends all of them. */
  leave(): void {
    for (const name of [...this.agents]) this.#unfollowAgent(name);
    for (const reader of [...this.readers.values()]) this.drop(reader);
    if (this.gateway) this.drop(this.gateway);
    this.#dropDeliveries();
    this.named.clear();
  }

  join(stream: SessionStream): StreamReader<SessionStream> {
    const reader = new StreamReader(this.sink, stream);
    this.readers.set(stream.sessionId, reader);
    stream.readers.add(reader);
    return reader;
  }

  drop(reader: StreamReader): void {
    const { stream } = reader;
    reader.leave();
    stream.readers.delete(reader);
    this.#behind.delete(reader);
    if (stream instanceof SessionStream) this.readers.delete(stream.sessionId);
    else this.gateway = undefined;
    if (stream.isUnread) this.#parts.onUnread(stream);
  }

  fallBehind(reader: StreamReader): void {
    this.#behind.add(reader);
    if (this.#behind.size > MOST_BEHIND) this.sink.cut();
    this.pumpSoon();
  }

  owe(push: () => Promise<void>): void {
    this.#owed.push(push);
    this.pumpSoon();
  }

  /** After all that is under way now: the answer to a call goes before the pushes that it causes. */
  pumpSoon(): void {
    if (this.#isPumpDue || this.#isPumping) return;
    this.#isPumpDue = true;
    setImmediate(() => {
      this.#isPumpDue = false;
      void this.#pump();
    });
  }

  /** Sends the entries that wait in the store, as far as there is room. */
  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      while (this.sink.isOpen) {
        const [owed] = this.#owed;
        const [reader] = this.#behind;
        if (!owed && !reader) break;
        if (!this.sink.hasRoom) {
          this.sink.hold();
          break;
        }
        if (owed) {
          await owed();
          this.#owed.shift();
        } else if (reader) await this.#readOn(reader);
        // The messages are written between two pages, so that `hasRoom` is true.
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      this.#parts.events.storeFailed({ operation: "readEntries", error });
      this.#parts.clock.after(RETRY_MS, () => this.pumpSoon());
    }
    this.#isPumping = false;
  }

  async #readOn(reader: StreamReader): Promise<void> {
    const { stream, sink } = reader;
    const from = reader.sent ?? 0;
    if (reader.isReset) {
      reader.isReset = false;
      sink.push(stream.resetFrame(from));
    }
    const { newest } = reader;
    const page = await stream.read(from, PAGE);
    if (reader.isOver || (reader.sent ?? 0) !== from) return;
    const before = (page[0]?.seq ?? 0) - 1;
    if (before > from) {
      // The entries between were erased while this reader was behind.
      reader.start(before, false);
      sink.push(stream.resetFrame(before));
    }
    for (const entry of page) {
      if (!sink.hasRoom) return;
      reader.push(stream.frameOf(entry), entry.seq);
    }
    this.#behind.delete(reader);
    const isNews = reader.newest > (reader.sent ?? 0) && (page.length > 0 || reader.newest !== newest);
    if (page.length === PAGE || isNews) {
      this.#behind.add(reader); // The others have their turn first.
      return;
    }
    reader.isBehind = false;
    stream.caughtUp();
  }

  async #begin(request: Subscribe): Promise<Subscribed> {
    const { store, gatewayStream, deliveries } = this.#parts;
    const { gateway: from, agents = [] } = request;
    this.#check(request);
    const wanted = Object.entries(request.sessions ?? {});
    const added = this.#addReaders(request);
    try {
      const found = await Promise.all(wanted.map(([id]) => store.getSession(id)));
      const missing = wanted.find(([, cursor], n) => cursor === null && !found[n]);
      if (missing) throw new GatewayError("session-not-found", `No session has the id \`${missing[0]}\`.`);
      const range = from === undefined ? undefined : await gatewayStream.place();
      const joined = request.deliveries && !this.deliveries ? await deliveries.join(this) : this.deliveries;
      for (const [n, [id, cursor]] of wanted.entries()) this.#startSession(id, found[n], cursor);
      const isOfStream = ({ epoch }: StreamPlace) => epoch === gatewayStream.epoch;
      if (range && this.gateway) this.#start(this.gateway, from ?? null, { ...range, isOfStream });
      this.deliveries = joined;
      // Deliveries have no cursor: a client that goes on has to list them again.
      if (request.deliveries) joined?.start(typeof from === "string");
    } catch (error) {
      for (const reader of added) if (!reader.isOver) this.drop(reader);
      throw error;
    }
    for (const name of agents) this.#followAgent(name);
    return this.#placesOf(request);
  }

  #check({ sessions = {}, agents = [], gateway, deliveries }: Subscribe): void {
    for (const name of agents) this.#parts.requireAgent(name);
    for (const [id, cursor] of Object.entries(sessions)) checkCursor(cursor, "session", `sessions["${id}"]`);
    checkCursor(gateway ?? null, "gateway", "gateway");
    if (deliveries && gateway === undefined && !this.gateway)
      throw new GatewayError("invalid-params", "`deliveries` goes with the gateway's stream: ask for `gateway`, too.");
    const ids = new Set([...this.named, ...Object.keys(sessions)]);
    if (ids.size > MOST_SESSIONS)
      throw new GatewayError("invalid-params", `\`sessions\`: at most ${MOST_SESSIONS} of them go on a connection.`);
  }

  /** Adds readers that listen before the ends of their streams are looked up, so that no entry is missed. */
  #addReaders({ sessions = {}, gateway: from }: Subscribe): StreamReader[] {
    const { gateway, streamOf } = this.#parts;
    const added: StreamReader[] = [];
    for (const id of Object.keys(sessions)) if (!this.readers.has(id)) added.push(this.join(streamOf(id)));
    if (from !== undefined && !this.gateway) {
      this.gateway = new StreamReader(this.sink, gateway);
      gateway.readers.add(this.gateway);
      gateway.open();
      added.push(this.gateway);
    }
    return added;
  }

  #startSession(id: string, session: Session | undefined, from: string | null): void {
    const reader = this.readers.get(id);
    // Deleted since it was looked up.
    if (!reader) return;
    if (session) reader.stream.setSession(session);
    this.named.add(id);
    const { ordinal } = reader.stream;
    const { epoch } = this.#parts.store;
    const { firstSeq: first, lastSeq: last } = session ?? NO_ENTRIES;
    const isOfStream = (place: StreamPlace) =>
      place.epoch === epoch && (place.ordinal === ordinal || place.ordinal === 0);
    this.#start(reader, from, { first, last, isOfStream });
  }

  /** A stream that is read already goes on from its place, unless the request names another. */
  #start(
    reader: StreamReader,
    from: string | null,
    { first, last, isOfStream }: { first: number; last: number; isOfStream: (place: StreamPlace) => boolean },
  ): void {
    if (reader.sent !== undefined && from === null) return;
    const place = from === null ? undefined : placeOfCursor(from);
    const isKnown = place !== undefined && isOfStream(place) && place.seq + 1 >= first && place.seq <= last;
    // A new reader begins behind the entries that came during the lookup: their sender was told of them itself.
    if (!place) reader.start(Math.max(last, reader.newest), false);
    else reader.start(isKnown ? place.seq : last, !isKnown);
    this.fallBehind(reader);
  }

  /** The places from which the subscriptions of a request go on. */
  #placesOf({ sessions, gateway }: Subscribe): Subscribed {
    const { frames } = this.#parts;
    const places = Object.keys(sessions ?? {}).flatMap((id) => {
      const reader = this.readers.get(id);
      return reader ? [[id, frames.sessionCursor(reader.stream, reader.sent ?? 0)] as const] : [];
    });
    return {
      ...(sessions && { sessions: Object.fromEntries(places) }),
      ...(gateway !== undefined && { gateway: frames.gatewayCursor(this.gateway?.sent ?? 0) }),
    };
  }

  #followAgent(name: string): void {
    const { ofAgent } = this.#parts;
    this.agents.add(name);
    ofAgent.set(name, (ofAgent.get(name) ?? new Set()).add(this));
  }

  #unfollowAgent(name: string): void {
    const { ofAgent } = this.#parts;
    this.agents.delete(name);
    const others = ofAgent.get(name);
    if (others?.delete(this) && others.size === 0) ofAgent.delete(name);
    for (const [id, reader] of this.readers) if (reader.stream.agent === name && !this.named.has(id)) this.drop(reader);
  }

  #dropDeliveries(): void {
    this.deliveries?.stop();
    this.deliveries = undefined;
  }
}

const checkCursor = (cursor: string | null, kind: "session" | "gateway", name: string): void => {
  if (cursor !== null && placeOfCursor(cursor)?.kind !== kind)
    throw new GatewayError("invalid-params", `\`${name}\` is no cursor of such a stream.`);
};
