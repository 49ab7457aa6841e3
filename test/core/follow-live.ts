import type { Stream, StreamEntry } from "#core/follow.ts";

/** Follows a stream live and takes each new entry. Returns a function that leaves the stream. */
export function followLive<E extends StreamEntry>(stream: Stream<E>, take: (entry: E) => void): () => void {
  const follower = stream.follow({
    isFull: false,
    hasRoom: true,
    wants: () => true,
    take,
    onGap() {},
    onBackfill() {},
  });
  follower.startLive();
  return () => follower.leave();
}
