import type { DeliveryFeed, DeliveryNews } from "#core/recorder/delivery-feed.ts";
import type { PushFrames } from "./pushes.ts";
import type { PushSink } from "./sink.ts";

export type DeliveryReader = {
  start(isReset: boolean): void;
  /** Called when the connection has room again. */
  resume(): void;
  stop(): void;
};

/**
 * Pushes new and changed deliveries. If a client reads too slowly, pushes are dropped. When its connection has room again, it gets a `stream.reset`, so
 * that it lists the deliveries again. `placeOf` returns the connection's place in the gateway's stream: a cursor of a later place would skip entries that
 * were not sent. Nothing is pushed before `start`, so that the answer to the call is sent first. With `isReset`, a `stream.reset` is pushed first.
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
