import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { DeliveryFeed } from "#core/recorder/delivery-feed.ts";
import type { LiveReplies } from "#core/turns/live-replies.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Clock } from "#kit/clock.ts";
import type { Events } from "#observe/events.ts";
import type { SessionRef, Store, Turn } from "#store/store.ts";
import { createDeliveryPushes } from "./delivery-pushes.ts";
import { createPushFrames } from "./pushes.ts";
import { type FollowOptions, type PendingCall, pushStoredEnd, SessionStream } from "./session-stream.ts";
import { GatewayStream, type PushSink, type StreamParts } from "./streams.ts";
import { Subscriber, type SubscriberParts } from "./subscriber.ts";

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
  let due: (() => void)[] = [];

  const flushTexts = (): void => {
    const flushing = due;
    due = [];
    for (const flush of flushing) flush();
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
    subscriberOf,
    onText(flush) {
      if (due.push(flush) === 1) setImmediate(flushTexts);
    },
    onCaughtUp: (stream) => dropIdle(stream as SessionStream),
    onUnread(stream) {
      if (stream instanceof SessionStream) streams.delete(stream.sessionId);
      stream.close();
    },
  };
  const streamOf = (sessionId: string): SessionStream => {
    const known = streams.get(sessionId);
    if (known) return known;
    const stream = new SessionStream(streamParts, sessionId);
    streams.set(sessionId, stream);
    return stream;
  };
  const subscriberParts: SubscriberParts = {
    ...parts,
    frames,
    gateway: new GatewayStream(streamParts),
    deliveries: createDeliveryPushes({ feed: parts.deliveryFeed, frames }),
    ofAgent,
    streamOf,
    onUnread: streamParts.onUnread,
  };

  const joinByAgent = (session: SessionRef, before: number, subscribers: ReadonlySet<Subscriber>): void => {
    for (const subscriber of subscribers) {
      if (subscriber.readers.has(session.sessionId)) continue;
      const reader = subscriber.join(streamOf(session.sessionId));
      reader.sent = before;
      reader.isBehind = false;
    }
  };

  store.watch({
    entries(session, entries) {
      if (entries.length === 0) return;
      const subscribers = ofAgent.size > 0 ? ofAgent.get(session.agent) : undefined;
      if (subscribers) joinByAgent(session, (entries[0]?.seq ?? 1) - 1, subscribers);
      const stream = streams.size > 0 ? streams.get(session.sessionId) : undefined;
      if (!stream) return;
      stream.setSession(session);
      stream.publish(entries);
      if (subscribers) dropIdle(stream);
      if (stream.isUnread) streamParts.onUnread(stream);
    },
    sessionDeleted(session, end) {
      const stream = streams.get(session.sessionId);
      const sinks = new Set([...(ofAgent.get(session.agent) ?? [])].map(({ sink }) => sink));
      for (const reader of stream?.readers ?? []) {
        const subscriber = subscriberOf(reader.sink);
        sinks.add(reader.sink);
        subscriber.named.delete(session.sessionId);
        subscriber.drop(reader);
      }
      const frame = frames.deleted(session, end);
      stream?.delete(frame, sinks);
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
    wants: ({ sessionId, agent }) => streams.has(sessionId) || ofAgent.has(agent),
  });

  return {
    subscribe: (sink: Subscribing, request: Subscribe): Promise<Subscribed> => subscriberOf(sink).subscribe(request),

    async unsubscribe({ subscriber }: Subscribing, request: Unsubscribe): Promise<void> {
      await subscriber?.unsubscribe(request);
    },

    /** Pushes the end of a turn to its sender. */
    follow(sink: PushSink, call: PendingCall, turn: Turn, options: FollowOptions): void {
      if (turn.status === "queued" || turn.status === "running")
        streamOf(turn.sessionId).follow(sink, call, turn, options);
      else subscriberOf(sink).owe(() => pushStoredEnd(store, frames, sink, turn, turn.seq - 1));
    },
  };
};

export type Subscriptions = ReturnType<typeof createSubscriptions>;
