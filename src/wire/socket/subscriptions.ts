import type { GatewayStream as GatewayEntries } from "#core/gateway-stream.ts";
import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Turn } from "#store/store.ts";
import { createPushFrames } from "./pushes.ts";
import type { SessionStream } from "./session-stream.ts";
import { GatewayStream, type PendingCall, type PushSink } from "./streams.ts";
import { type FollowOptions, Subscriber, type SubscriberParts } from "./subscriber.ts";

/** The part of a connection that subscriptions use. */
export type Subscribing = PushSink & { subscriber: Subscriber | undefined };

export type SubscriptionsParts = Omit<SubscriberParts, "frames" | "sessions" | "gateway" | "ofAgent"> & {
  gatewayStream: GatewayEntries;
  /** Replaces the secrets of the configuration in a JSON text. */
  hideInJson: (json: string) => string;
};

/** Pushes entries of the store to the subscribers of their session or its agent, and the end of a turn to the sender of its message. */
export function createSubscriptions(given: SubscriptionsParts) {
  const { store, gatewayStream } = given;
  const frames = createPushFrames({ sessions: store.epoch, gateway: gatewayStream.epoch }, given.hideInJson);
  const sessions = new Map<string, SessionStream>();
  const ofAgent = new Map<string, Set<Subscriber>>();
  const parts = { ...given, frames, sessions, gateway: new GatewayStream(gatewayStream, frames), ofAgent };
  const subscriberOf = (connection: Subscribing): Subscriber =>
    (connection.subscriber ??= new Subscriber(connection, parts));

  store.watch({
    entries(session, entries) {
      const [first] = entries;
      if (!first) return;
      for (const subscriber of ofAgent.get(session.agent) ?? [])
        subscriber.joinByAgent(session.sessionId, first.seq - 1);
      const stream = sessions.get(session.sessionId);
      if (!stream) return;
      stream.setSession(session);
      stream.publish(entries);
      stream.releaseIdle();
    },
    sessionDeleted(session, end) {
      const frame = frames.deleted(session, end);
      const notified = new Set(ofAgent.get(session.agent));
      const readers = [...(sessions.get(session.sessionId)?.readers ?? [])];
      for (const { owner, isSubscribed, isHeld } of readers)
        if (isSubscribed || isHeld) notified.add(owner as Subscriber);
      for (const reader of readers) {
        // The deletion also ends the turns of the session.
        if (!notified.has(reader.owner as Subscriber))
          for (const { call } of reader.senders) call.pushAfterAnswer(frame);
        reader.owner.drop(reader);
      }
      // The entry of a deleted session cannot be read later, so a full connection is closed.
      for (const { sink } of notified) {
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
    wants: ({ sessionId, agent }) => sessions.has(sessionId) || ofAgent.has(agent),
  });

  return {
    subscribe: (connection: Subscribing, request: Subscribe): Promise<Subscribed> =>
      subscriberOf(connection).subscribe(request),

    async unsubscribe({ subscriber }: Subscribing, request: Unsubscribe): Promise<void> {
      await subscriber?.unsubscribe(request);
    },

    follow(connection: Subscribing, call: PendingCall, turn: Turn, options: FollowOptions): void {
      subscriberOf(connection).follow(call, turn, options);
    },
  };
}

export type Subscriptions = ReturnType<typeof createSubscriptions>;
