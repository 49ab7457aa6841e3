import type { GatewayStream } from "#core/gateway-stream.ts";
import type { DeliveryFeed } from "#core/recorder/delivery-feed.ts";
import type { AgentFollower, DeletedAt, SessionStreams } from "#core/sessions/session-streams.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { reaches } from "#kit/reach.ts";
import type { Session, SessionRef, Store, Turn } from "#store/store.ts";
import type { RpcCaller } from "#wire/rpc/rpc.ts";
import { type DeliveryReader, pushDeliveries } from "./delivery-pushes.ts";
import { Pump, type PumpParts, type PushSink } from "./pump.ts";
import { createPushFrames, type PushFrames, placeOfCursor } from "./pushes.ts";
import {
  GatewaySubscription,
  type Owner,
  type PendingCall,
  SessionSubscription,
  type Subscription,
  storedEnd,
} from "./subscription.ts";

type SubscriberParts = PumpParts & {
  store: Store;
  streams: SessionStreams;
  gatewayStream: GatewayStream;
  deliveryFeed: DeliveryFeed;
  frames: PushFrames;
  /** Throws if no agent has this name, or the caller may not use it. */
  requireAgent(caller: RpcCaller, name: string): void;
};

type FollowOptions = { stream: boolean; replySeq?: number | undefined };

const MOST_SESSIONS = 1_000;

/** The subscriptions of a connection, and the unfinished turns that it started. It is created with the first of these. */
export class Subscriber implements Owner, AgentFollower {
  readonly sink: PushSink;
  readonly pump: Pump;
  readonly frames: PushFrames;
  /** The subscribed agents, each with the function that ends its subscription. */
  readonly agents = new Map<string, () => void>();
  gateway: GatewaySubscription | undefined = undefined;
  deliveries: DeliveryReader | undefined = undefined;
  readonly #parts: SubscriberParts;
  readonly #sessions = new Map<string, SessionSubscription>();
  /** Requests are processed one after another, so that each sees the result of the previous one. */
  #lastRequest: Promise<unknown> = Promise.resolve();

  constructor(sink: PushSink, parts: SubscriberParts) {
    this.sink = sink;
    this.pump = new Pump(sink, parts);
    this.frames = parts.frames;
    this.#parts = parts;
  }

  /** True if the connection is subscribed to a session or an agent. */
  get hasSessions(): boolean {
    return this.agents.size > 0 || [...this.#sessions.values()].some(({ isSubscribed }) => isSubscribed);
  }

  mayRead(agent: string | undefined): boolean {
    return reaches(this.sink.caller, agent);
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
    for (const id of sessions) this.#sessions.get(id)?.unsubscribe();
    if (gateway || deliveries) this.#dropDeliveries();
    if (gateway) this.gateway?.leave();
  }

  /** Pushes the end of a turn to its sender, and with `stream` the pieces of the reply until then. */
  follow(call: PendingCall, turn: Turn, { stream, replySeq }: FollowOptions): void {
    if (!this.sink.isOpen) return;
    const { sessionId, turnId, agent, seq } = turn;
    const isEnded = hasEnded(turn);
    const sender = { turnId, seq, stream: stream && !isEnded, call };
    // The turn of a queued or repeated message may have begun before this call. On another gateway, it may even have ended.
    const mayHaveBegun = replySeq === undefined;
    const mayHaveEnded = isEnded || (mayHaveBegun && this.#parts.store.shared !== undefined);
    const isFollowed = this.#sessions.has(sessionId);
    const subscription = this.#subscriptionOf(sessionId);
    subscription.stream.agent ??= agent;
    subscription.addSender(sender, !(mayHaveEnded || (stream && mayHaveBegun)), replySeq);
    if (isEnded || (isFollowed && mayHaveEnded)) this.pump.add(storedEnd(subscription, sender, isEnded));
  }

  leave(): void {
    for (const name of [...this.agents.keys()]) this.#unfollowAgent(name);
    for (const subscription of [...this.#sessions.values()]) subscription.leave();
    this.gateway?.leave();
    this.#dropDeliveries();
  }

  /** Subscribes to a session of a subscribed agent. */
  joinByAgent(sessionId: string, before: number): void {
    this.#subscriptionOf(sessionId).joinByAgent(before);
  }

  /** Pushes the end of a deleted session. */
  deleted(session: SessionRef, end: DeletedAt): void {
    // The entry of a deleted session cannot be read later, so a full connection is closed.
    if (this.sink.isFull) this.sink.closeTooSlow();
    else this.sink.push(this.frames.deleted(end, session));
  }

  forget(subscription: Subscription): void {
    if (subscription === this.gateway) this.gateway = undefined;
    else if (subscription instanceof SessionSubscription) this.#sessions.delete(subscription.stream.sessionId);
  }

  #subscriptionOf(sessionId: string): SessionSubscription {
    const known = this.#sessions.get(sessionId);
    if (known) return known;
    const subscription = new SessionSubscription(this, this.#parts.streams.of(sessionId));
    this.#sessions.set(sessionId, subscription);
    return subscription;
  }

  async #begin(request: Subscribe): Promise<Subscribed> {
    const { store, gatewayStream, deliveryFeed, frames } = this.#parts;
    const { gateway: from, agents = [] } = request;
    this.#check(request);
    const wanted = Object.entries(request.sessions ?? {});
    // The subscriptions follow their streams before the last `seq` of each stream is read, so that they do not miss an entry.
    const requested = wanted.map(([id]) => this.#subscriptionOf(id));
    for (const subscription of requested) subscription.isRequested = true;
    if (from !== undefined) this.gateway ??= new GatewaySubscription(this, gatewayStream);
    try {
      const stored = await Promise.all(wanted.map(([id]) => store.getSession(id)));
      // A session that the caller may not read is answered like an absent one.
      const found = stored.map((session) => (session && this.mayRead(session.agent) ? session : undefined));
      const missing = wanted.find(([, cursor], n) => cursor === null && !found[n]);
      if (missing) throw new GatewayError("session-not-found", `No session has the id \`${missing[0]}\`.`);
      const range = from === undefined ? undefined : await gatewayStream.place();
      if (request.deliveries && !this.deliveries)
        this.deliveries = pushDeliveries(
          { feed: deliveryFeed, frames, sink: this.sink, pump: this.pump },
          () => this.gateway?.seq ?? 0,
        );
      for (const [n, [id, cursor]] of wanted.entries()) this.#startSession(id, found[n], cursor);
      if (range) this.gateway?.subscribe(from ?? null, { ...range, epoch: gatewayStream.epoch, ordinal: 0 });
      // Deliveries have no cursor: a client that resumes must list them again.
      if (request.deliveries) this.deliveries?.start(typeof from === "string");
    } finally {
      for (const subscription of requested) {
        subscription.isRequested = false;
        subscription.leaveIfUnused();
      }
      if (this.gateway && !this.gateway.isSubscribed) this.gateway.leave();
    }
    for (const name of agents)
      if (!this.agents.has(name)) this.agents.set(name, this.#parts.streams.followAgent(name, this));
    return this.#placesOf(request);
  }

  #check({ sessions = {}, agents = [], gateway, deliveries }: Subscribe): void {
    for (const name of agents) this.#parts.requireAgent(this.sink.caller, name);
    for (const [id, cursor] of Object.entries(sessions)) checkCursor(cursor, "session", `sessions["${id}"]`);
    checkCursor(gateway ?? null, "gateway", "gateway");
    if (deliveries && gateway === undefined && !this.gateway)
      throw new GatewayError(
        "invalid-params",
        "`deliveries` requires the gateway's stream: subscribe to `gateway` too.",
      );
    const named = [...this.#sessions].flatMap(([id, { byName }]) => (byName ? [id] : []));
    if (new Set([...named, ...Object.keys(sessions)]).size > MOST_SESSIONS)
      throw new GatewayError(
        "invalid-params",
        `\`sessions\`: a connection may subscribe to at most ${MOST_SESSIONS} sessions.`,
      );
  }

  #startSession(id: string, session: Session | undefined, from: string | null): void {
    const subscription = this.#sessions.get(id);
    // The session was deleted after it was read.
    if (!subscription) return;
    if (session) subscription.stream.setSession(session);
    const { firstSeq = 1, lastSeq = 0, ordinal = 0 } = session ?? {};
    const { epoch } = this.#parts.store;
    subscription.subscribe(from, { epoch, ordinal, first: firstSeq, last: lastSeq });
    subscription.byName = true;
  }

  #placesOf({ sessions, gateway }: Subscribe): Subscribed {
    const places = Object.keys(sessions ?? {}).flatMap((id) => {
      const subscription = this.#sessions.get(id);
      return subscription ? [[id, subscription.cursorAt(subscription.seq)] as const] : [];
    });
    return {
      ...(sessions && { sessions: Object.fromEntries(places) }),
      ...(gateway !== undefined && { gateway: this.frames.gatewayCursor(this.gateway?.seq ?? 0) }),
    };
  }

  #unfollowAgent(name: string): void {
    this.agents.get(name)?.();
    this.agents.delete(name);
    for (const subscription of [...this.#sessions.values()]) subscription.leaveAgent(name);
  }

  #dropDeliveries(): void {
    this.deliveries?.stop();
    this.deliveries = undefined;
  }
}

/** Creates the subscribers of connections, which share their frames. `hideInJson` replaces the secrets of the configuration in a JSON text. */
export function subscribers(given: Omit<SubscriberParts, "frames"> & { hideInJson: (json: string) => string }) {
  const epochs = { sessions: given.store.epoch, gateway: given.gatewayStream.epoch };
  const parts = { ...given, frames: createPushFrames(epochs, given.hideInJson) };
  return (sink: PushSink): Subscriber => new Subscriber(sink, parts);
}

function hasEnded({ status }: Turn): boolean {
  return status !== "queued" && status !== "running";
}

function checkCursor(cursor: string | null, kind: "session" | "gateway", name: string): void {
  if (cursor !== null && placeOfCursor(cursor)?.kind !== kind)
    throw new GatewayError("invalid-params", `\`${name}\` is not a cursor of this stream.`);
}
