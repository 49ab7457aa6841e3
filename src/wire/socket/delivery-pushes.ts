import type { DeliveryFeed, DeliveryNews } from "#core/recorder/delivery-feed.ts";
import type { PushFrames } from "./pushes.ts";
import type { PushSink } from "./streams.ts";

export type DeliveryReader = {
  start(isReset: boolean): void;
  /** The connection has room again. */
  resume(): void;
  stop(): void;
};

/**
 * Pushes the deliveries that are recorded or change. They are dropped for a slow reader, which is sent a `stream.reset` when it has room
 * again, and lists the deliveries. `placeOf` gives the connection's place in the gateway's stream: a cursor of a newer place would pass over
 * entries that it was not sent. Nothing is pushed before `start`, so that the answer to the call comes first. With `isReset` a `stream.reset` is
 * the first.
 */
export function pushDeliveries(
  feed: Pick<DeliveryFeed, "follow">,
  frames: PushFrames,
  sink: PushSink,
  placeOf: () => number,
): DeliveryReader {
  let isStarted = false;
  let isMissing = false;
  const tell = (news: readonly DeliveryNews[]): void => {
    if (!isStarted) return;
    if (isMissing && sink.hasRoom) {
      isMissing = false;
      sink.push(frames.reset(frames.gatewayCursor(placeOf()), undefined));
    }
    for (const one of news) {
      isMissing ||= sink.isFull;
      if (isMissing) break;
      sink.push(frames.delivery(one, placeOf()));
    }
    if (isMissing) sink.hold();
  };
  const resume = (): void => {
    if (isMissing) setImmediate(tell, []);
  };
  const miss = (): void => {
    isMissing = true;
    resume();
  };
  const unfollow = feed.follow({ tell, miss });
  return {
    start(isReset) {
      isStarted = true;
      if (isReset) miss();
    },
    resume,
    stop() {
      isStarted = false;
      unfollow();
    },
  };
}
