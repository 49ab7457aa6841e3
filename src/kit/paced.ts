import type { Readable } from "node:stream";

/** Bytes of a body that are taken from its connection before anybody reads them. */
export const READ_AHEAD = 4 * 1024;
/**
 * A body, a piece in each turn of the event loop: the other side may send each byte by itself, and other work must have its turn.
 * Bytes that are not read yet hold the sender back.
 */
export async function* paced(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let isFirst = true;
  for await (const piece of body) {
    if (!isFirst) await new Promise((resolve) => setImmediate(resolve));
    isFirst = false;
    yield piece;
  }
}

/** Pieces as a stream for an SDK. Its cancellation destroys the body that they come from, even if nothing was read of it. */
export const streamOf = (pieces: AsyncIterator<Uint8Array>, body: Readable): ReadableStream<Uint8Array> =>
  new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel: () => discard(body),
  });

/** Ends an answer that nobody reads. */
export const discard = (body: Readable): void => void body.on("error", () => {}).destroy();
