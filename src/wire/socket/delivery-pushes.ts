import type { DeliveryFeed, DeliveryNews } from "#core/recorder/delivery-feed.ts";
import type { Pump, PushSink } from "./pump.ts";
import type { PushFrames } from "./pushes.ts";

export type DeliveryReader = { start(isReset: boolean): void; stop(): void };

type Parts = { feed: Pick<DeliveryFeed, "follow">; frames: PushFrames; sink: PushSink; pump: Pump };

/**
 * Pushes new and changed deliveries. If a client reads too slowly, pushes are dropped. When its connection has room again, it gets a `stream.reset`, so
 * that it lists the deliveries again. `placeOf` returns the connection's place in the gateway's stream: a cursor of a later place would skip entries that
 * were not sent. Nothing is pushed before `start`, so that the answer to the call is sent first. With `isReset`, a `stream.reset` is pushed first.
 */
export function pushDeliveries({ feed, frames, sink, pump }: Parts, placeOf: () => number): DeliveryReader {
  let isStarted = false;
  let isMissing = false;
  const reset = {
    async page(): Promise<boolean> {
      isMissing = false;
      sink.push(frames.reset(frames.gatewayCursor(placeOf()), undefined));
      return false;
    },
  };
  const miss = (): void => {
    isMissing = true;
    if (isStarted) pump.add(reset);
  };
  const tell = (news: readonly DeliveryNews[]): void => {
    if (!isStarted) return;
    for (const one of news) {
      if (sink.isFull && !isMissing) miss();
      if (isMissing) return;
      sink.push(frames.delivery(one, placeOf()));
    }
  };
  const unfollow = feed.follow({ tell, miss });
  return {
    start(isReset) {
      isStarted = true;
      if (isReset || isMissing) miss();
    },
    stop() {
      unfollow();
      pump.delete(reset);
    },
  };
}
