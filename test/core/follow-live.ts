import type { Stream, StreamEntry } from "#core/follow.ts";

/** Takes each new entry of a stream. Returns a function that ends this. */
export function followLive<E extends StreamEntry>(stream: Stream<E>, take: (entry: E) => void): () => void {
  const follower = stream.follow({
    isFull: false,
    hasRoom: true,
    wants: () => true,
    take,
    gap() {},
    behind() {},
  });
  follower.startLive();
  return () => follower.leave();
}
