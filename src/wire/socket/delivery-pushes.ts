import type { DeliveryFeed, DeliveryNews } from "#core/recorder/delivery-feed.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { PushFrames } from "./pushes.ts";
import type { PushSink } from "./streams.ts";

/** Pushed in one turn of the event loop; other calls run between. */
const TOGETHER = 10;

export type DeliveryReader = { start(isReset: boolean): void; stop(): void };

/**
 * Pushes the deliveries that are recorded. They can be dropped, like the pieces of a reply: a slow reader has to list again. `placeOf` gives
 * the connection's place in the gateway's stream: a cursor of a newer place would pass over entries that it was not sent. Nothing is pushed
 * before `start`, so that the answer to the call comes first. With `isReset` a `stream.reset` is the first.
 */
export async function pushDeliveries(
  feed: Pick<DeliveryFeed, "follow">,
  frames: PushFrames,
  sink: PushSink,
  placeOf: () => number,
): Promise<DeliveryReader> {
  let isStarted = false;
  let isMissing = false;
  const push = async (news: readonly DeliveryNews[]): Promise<void> => {
    for (let from = 0; from === 0 || from < news.length; from += TOGETHER) {
      await yieldToOthers();
      if (!isStarted) return;
      if (isMissing && sink.hasRoom) {
        isMissing = false;
        sink.push(frames.reset(frames.gatewayCursor(placeOf()), undefined));
      }
      for (const one of news.slice(from, from + TOGETHER)) {
        isMissing ||= sink.isFull;
        if (isMissing) return;
        sink.push(frames.delivery(one, placeOf()));
      }
    }
  };
  const unfollow = await feed.follow({
    tell: (news) => void push(news),
    miss: () => {
      isMissing = true;
    },
  });
  return {
    start(isReset) {
      isStarted = true;
      isMissing ||= isReset;
    },
    stop() {
      isStarted = false;
      unfollow();
    },
  };
}
