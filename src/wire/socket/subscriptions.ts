import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { DeliveryFeed } from "#core/recorder/delivery-feed.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { SessionRef, Store, Turn } from "#store/store.ts";
import { createDeliveryPushes } from "./delivery-pushes.ts";
import { createPushFrames } from "./pushes.ts";
import type { PushSink, StreamReader } from "./stream-reader.ts";
import { GatewayStream, SessionStream, type StreamParts } from "./streams.ts";
import { createSubscribe } from "./subscribe.ts";
import { Subscriber } from "./subscriber.ts";
import { type FollowOptions, type PendingCall, TurnFollower } from "./turn-follower.ts";
import { createTurnFollowers } from "./turn-followers.ts";

/** A connection, as what it is told of. */
export type Subscribing = PushSink & { subscriber: Subscriber | undefined };

export type SubscriptionsParts = {
  store: Store;
  gatewayStream: GatewayEntries;
  deliveryFeed: DeliveryFeed;
  live: LiveReplies;
  clock: Clock;
  events: Pick<Events, "storeFailed">;
  /** Throws where there is none of this name. */
  requireAgent(name: string): void;
};

/** Who is told what: entries of the store go to those who subscribed to their session or its agent, and to whoever sent the message. */
export const createSubscriptions = (parts: SubscriptionsParts) => {
  const { store, gatewayStream, live, requireAgent } = parts;
  const frames = createPushFrames({ sessions: store.epoch, gateway: gatewayStream.epoch });
  const streams = new Map<string, SessionStream>();
  const ofAgent = new Map<string, Set<Subscriber>>();
  let due: (SessionStream | TurnFollower)[] = [];

  const flushTexts = (): void => {
    const flushing = due;
    due = [];
    for (const one of flushing) {
      if (one instanceof SessionStream) one.flushText();
      else followers.flushText(one);
    }
  };
  const onText = (one: SessionStream | TurnFollower): void => {
    if (due.push(one) === 1) setImmediate(flushTexts);
  };
  const subscriberOf = (sink: PushSink): Subscriber => {
    const one = sink as Subscribing;
    one.subscriber ??= new Subscriber(sink, parts);
    return one.subscriber;
  };

  const drop = (subscriber: Subscriber, reader: StreamReader): void => {
    const { stream } = reader;
    subscriber.drop(reader);
    if (stream.readers.size > 0) return;
    if (stream instanceof SessionStream) streams.delete(stream.sessionId);
    stream.close();
  };
  /** Readers that came by their agent stay only as long as there is something to tell. */
  const dropIdle = (stream: SessionStream): void => {
    if (stream.isWriting) return;
    for (const reader of stream.readers) {
      const subscriber = subscriberOf(reader.sink);
      if (!reader.isBehind && !subscriber.named.has(stream.sessionId)) drop(subscriber, reader);
    }
  };
  const streamParts: StreamParts = {
    store,
    gatewayStream,
    live,
    frames,
    onText,
    isSender: ({ sink }, { sessionId }, turnId) => followers.streams(sink, sessionId, turnId),
    onBehind: (reader) => subscriberOf(reader.sink).fallBehind(reader),
    onCaughtUp: dropIdle,
  };
  const streamOf = (sessionId: string): SessionStream => {
    const known = streams.get(sessionId);
    if (known) return known;
    const stream = new SessionStream(streamParts, sessionId);
    streams.set(sessionId, stream);
    return stream;
  };
  const gateway = new GatewayStream(streamParts);
  const followers = createTurnFollowers({
    store,
    live,
    frames,
    onText,
    subscriberOf: ({ sink }) => (sink as Subscribing).subscriber,
    makeSubscriber: ({ sink }) => subscriberOf(sink),
  });

  const joinByAgent = (session: SessionRef, before: number, subscribers: ReadonlySet<Subscriber>): void => {
    for (const subscriber of subscribers) {
      if (subscriber.readers.has(session.sessionId)) continue;
      const reader = subscriber.join(streamOf(session.sessionId));
      reader.sent = before;
      reader.isBehind = false;
    }
  };
  const followAgent = (subscriber: Subscriber, name: string): void => {
    subscriber.agents.add(name);
    const others = ofAgent.get(name) ?? new Set();
    ofAgent.set(name, others.add(subscriber));
  };
  const unfollowAgent = (subscriber: Subscriber, name: string): void => {
    subscriber.agents.delete(name);
    const others = ofAgent.get(name);
    if (others?.delete(subscriber) && others.size === 0) ofAgent.delete(name);
    for (const [id, reader] of subscriber.readers)
      if (reader.stream.agent === name && !subscriber.named.has(id)) drop(subscriber, reader);
  };
  const subscribe = createSubscribe({
    store,
    gatewayStream,
    frames,
    gateway,
    deliveries: createDeliveryPushes({ feed: parts.deliveryFeed, frames }),
    requireAgent,
    streamOf,
    followAgent,
    drop,
  });

  store.watch({
    entries(session, entries) {
      if (entries.length === 0) return;
      const subscribers = ofAgent.size > 0 ? ofAgent.get(session.agent) : undefined;
      if (subscribers) joinByAgent(session, (entries[0]?.seq ?? 1) - 1, subscribers);
      // Before the streams: a reader that came by its agent leaves them with the entry that ends its turn.
      followers.tell(session, entries);
      const stream = streams.size > 0 ? streams.get(session.sessionId) : undefined;
      if (!stream) return;
      stream.be(session);
      stream.tell(entries);
      if (subscribers) dropIdle(stream);
    },
    sessionDeleted(session, end) {
      followers.deleted(session, end);
      const sinks = new Set([...(ofAgent.get(session.agent) ?? [])].map(({ sink }) => sink));
      for (const reader of streams.get(session.sessionId)?.readers ?? []) {
        const subscriber = subscriberOf(reader.sink);
        sinks.add(reader.sink);
        subscriber.named.delete(session.sessionId);
        drop(subscriber, reader);
      }
      if (sinks.size === 0) return;
      const frame = frames.deleted(session, end);
      // It cannot wait in the store.
      for (const sink of sinks) {
        if (sink.isFull) sink.cut();
        else sink.push(frame);
      }
    },
    gatewayEntries() {},
    work() {},
    cancel() {},
    compaction() {},
    beat() {},
    announcement() {},
    wantsGateway: () => false,
    wants: ({ sessionId, agent }) => streams.has(sessionId) || ofAgent.has(agent) || followers.has(sessionId),
  });

  const leave = ({ subscriber }: Subscribing): void => {
    if (!subscriber) return;
    for (const name of [...subscriber.agents]) unfollowAgent(subscriber, name);
    for (const reader of [...subscriber.readers.values()]) drop(subscriber, reader);
    if (subscriber.gateway) drop(subscriber, subscriber.gateway);
    subscriber.dropDeliveries();
    subscriber.named.clear();
  };

  return {
    /** Begins or moves subscriptions; all of them or none. Pushes begin after what is under way now: after the answer to the call. */
    async subscribe(sink: Subscribing, request: Subscribe): Promise<Subscribed> {
      const subscriber = subscriberOf(sink);
      const begun = subscriber.turn.then(() => subscribe(subscriber, request));
      subscriber.turn = begun.catch(() => {});
      const places = await begun;
      if (!sink.isOpen) leave(sink);
      return places;
    },

    /** Ends subscriptions, after those requests that came before. */
    async unsubscribe({ subscriber }: Subscribing, request: Unsubscribe): Promise<void> {
      if (!subscriber) return;
      const { sessions = [], agents = [], gateway: end } = request;
      await subscriber.turn;
      for (const name of agents) unfollowAgent(subscriber, name);
      for (const id of sessions) {
        const reader = subscriber.readers.get(id);
        subscriber.named.delete(id);
        // One of an agent that is subscribed to goes on.
        if (reader && !subscriber.agents.has(reader.stream.agent ?? "")) drop(subscriber, reader);
      }
      if (end || request.deliveries) subscriber.dropDeliveries();
      if (end && subscriber.gateway) drop(subscriber, subscriber.gateway);
    },

    /** Tells the sender of a turn how it ends. */
    follow(sink: PushSink, call: PendingCall, turn: Turn, options: FollowOptions): void {
      const { turnId, sessionId, agent, seq, status } = turn;
      const hasEnded = status !== "queued" && status !== "running";
      // One that repeats its call on the same connection gets the pieces once.
      const stream = options.stream && !followers.streams(sink, sessionId, turnId);
      const follower = new TurnFollower(sink, { turnId, sessionId, agent, seq }, { ...options, stream }, call);
      followers.add(follower, hasEnded);
      // Another gateway may have ended it before it was followed here.
      if (store.shared && options.replySeq === undefined && !hasEnded) followers.lookAgain(follower);
    },

    /** The connection has gone. */
    leave,
  };
};

export type Subscriptions = ReturnType<typeof createSubscriptions>;
