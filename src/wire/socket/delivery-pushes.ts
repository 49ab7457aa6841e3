import type { DeliveryFeed, DeliveryNews } from "#core/recorder/delivery-feed.ts";
import type { PushFrames } from "./pushes.ts";
import type { PushSink } from "./streams.ts";

/** Pushed in one turn of the event loop; other calls run between. */
const TOGETHER = 10;

/** A receiver of the pushes, with its place in the gateway's stream. */
type Reader = { readonly sink: PushSink; readonly gateway: { readonly sent: number | undefined } | undefined };

/** Pushes the deliveries that are recorded. They can be dropped, like the pieces of a reply: a slow reader has to list again. */
export const createDeliveryPushes = ({ feed, frames }: { feed: DeliveryFeed; frames: PushFrames }) => {
  let made: { news: readonly DeliveryNews[]; from: number; seq: number; texts: string[] } | undefined;
  /** Readers that are at the same place of the gateway's stream share the frames. */
  const framesOf = (news: readonly DeliveryNews[], from: number, seq: number): string[] => {
    if (made?.news !== news || made.from !== from || made.seq !== seq) {
      const texts = news.slice(from, from + TOGETHER).map((one) => frames.delivery(one, seq));
      made = { news, from, seq, texts };
    }
    return made.texts;
  };

  return {
    /** Nothing is pushed before `start`, so that the answer to the call comes first. With `isReset` a `stream.reset` is the first. */
    async join(subscriber: Reader): Promise<{ start(isReset: boolean): void; stop(): void }> {
      const { sink } = subscriber;
      let isStarted = false;
      let isMissing = false;
      const push = (news: readonly DeliveryNews[], from = 0): void => {
        // Its place in the gateway's stream: a cursor of a newer place would pass over entries that it was not sent.
        const seq = subscriber.gateway?.sent;
        if (!isStarted || seq === undefined) return;
        if (isMissing && sink.hasRoom) {
          isMissing = false;
          sink.push(frames.reset(frames.gatewayCursor(seq), undefined));
        }
        for (const frame of framesOf(news, from, seq)) {
          isMissing ||= sink.isFull;
          if (isMissing) return;
          sink.push(frame);
        }
        if (from + TOGETHER < news.length) setImmediate(push, news, from + TOGETHER);
      };
      const unfollow = await feed.follow({
        tell: (news) => void setImmediate(push, news),
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
    },
  };
};

export type DeliveryPushes = ReturnType<typeof createDeliveryPushes>;
export type DeliveryReader = Awaited<ReturnType<DeliveryPushes["join"]>>;
