import type { Subscribe, Subscribed, Unsubscribe } from "#generated/push-types.ts";
import type { Turn } from "#store/store.ts";
import type { PushSink } from "./pump.ts";
import { createPushFrames } from "./pushes.ts";
import { type FollowOptions, Subscriber, type SubscriberParts } from "./subscriber.ts";
import type { PendingCall } from "./subscription.ts";

/** The part of a connection that subscriptions use. */
export type Subscribing = PushSink & { subscriber: Subscriber | undefined };

export type SubscriptionsParts = Omit<SubscriberParts, "frames"> & {
  /** Replaces the secrets of the configuration in a JSON text. */
  hideInJson: (json: string) => string;
};

/** Pushes entries of the store to the subscribers of their session or its agent, and the end of a turn to the sender of its message. */
export function createSubscriptions(given: SubscriptionsParts) {
  const { store, gatewayStream } = given;
  const frames = createPushFrames({ sessions: store.epoch, gateway: gatewayStream.epoch }, given.hideInJson);
  const parts = { ...given, frames };
  const subscriberOf = (connection: Subscribing): Subscriber =>
    (connection.subscriber ??= new Subscriber(connection, parts));

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
