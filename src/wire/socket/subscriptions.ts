import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { DeliveryFeed } from "#core/recorder/delivery-feed.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { SessionRef, Store, Turn } from "#store/store.ts";
import { createDeliveryPushes } from "./delivery-pushes.ts";
import { createPushFrames } from "./pushes.ts";
import { GatewayStream, type PushSink, SessionStream, type StreamParts } from "./streams.ts";
import { Subscriber, type SubscriberParts } from "./subscriber.ts";
import { createTurnFollowers, type FollowOptions, type PendingCall, TurnFollower } from "./turn-followers.ts";

/** A connection, as subscriptions see it. */
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

/** Entries of the store go to the subscribers of their session or its agent, and to the sender of the message. */
export const createSubscriptions = (parts: SubscriptionsParts) => {
  const { store, gatewayStream, live } = parts;
  const frames = createPushFrames({ sessions: store.epoch, gateway: gatewayStream.epoch });
  const streams = new Map<string, SessionStream>();
  const ofAgent = new Map<string, Set<Subscriber>>();
  let due: (SessionStream | TurnFollower)[] = [];

  const flushTexts = (): void => {
    const flushing = due;
    due = [];
    for (const one of flushing) {
      if (one instanceof SessionStream) one.flushText();
      else one.flushText(live, frames);
    }
  };
  const onText = (one: SessionStream | TurnFollower): void => {
    if (due.push(one) === 1) setImmediate(flushTexts);
  };
  const subscriberOf = (sink: PushSink): Subscriber => {
    const one = sink as Subscribing;
    one.subscriber ??= new Subscriber(sink, subscriberParts);
    return one.subscriber;
  };
  /** Readers that came by their agent stay only as long as there is something to tell. */
  const dropIdle = (stream: SessionStream): void => {
    if (stream.isWriting) return;
    for (const reader of stream.readers) {
      const subscriber = subscriberOf(reader.sink);
      if (!reader.isBehind && !subscriber.named.has(stream.sessionId)) subscriber.drop(reader);
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
  const subscriberParts: SubscriberParts = {
    ...parts,
    frames,
    gateway: new GatewayStream(streamParts),
    deliveries: createDeliveryPushes({ feed: parts.deliveryFeed, frames }),
    ofAgent,
    streamOf(sessionId) {
      const known = streams.get(sessionId);
      if (known) return known;
      const stream = new SessionStream(streamParts, sessionId);
      streams.set(sessionId, stream);
      return stream;
    },
    onUnread(stream) {
      if (stream instanceof SessionStream) streams.delete(stream.sessionId);
      stream.close();
    },
  };
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
      const reader = subscriber.join(subscriberParts.streamOf(session.sessionId));
      reader.sent = before;
      reader.isBehind = false;
    }
  };

  store.watch({
    entries(session, entries) {
      if (entries.length === 0) return;
      const subscribers = ofAgent.size > 0 ? ofAgent.get(session.agent) : undefined;
      if (subscribers) joinByAgent(session, (entries[0]?.seq ?? 1) - 1, subscribers);
      // Before the streams: a reader that came by its agent leaves them with the entry that ends its turn.
      followers.publish(session, entries);
      const stream = streams.size > 0 ? streams.get(session.sessionId) : undefined;
      if (!stream) return;
      stream.setSession(session);
      stream.publish(entries);
      if (subscribers) dropIdle(stream);
    },
    sessionDeleted(session, end) {
      followers.deleted(session, end);
      const sinks = new Set([...(ofAgent.get(session.agent) ?? [])].map(({ sink }) => sink));
      for (const reader of streams.get(session.sessionId)?.readers ?? []) {
        const subscriber = subscriberOf(reader.sink);
        sinks.add(reader.sink);
        subscriber.named.delete(session.sessionId);
        subscriber.drop(reader);
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

  return {
    subscribe: (sink: Subscribing, request: Subscribe): Promise<Subscribed> => subscriberOf(sink).subscribe(request),

    async unsubscribe({ subscriber }: Subscribing, request: Unsubscribe): Promise<void> {
      await subscriber?.unsubscribe(request);
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
      if (store.shared && options.replySeq === undefined && !hasEnded) followers.checkEnded(follower);
    },
  };
};

export type Subscriptions = ReturnType<typeof createSubscriptions>;
