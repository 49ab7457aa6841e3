// Copied by "npm run generate" from scripts/generate/runtime/typescript/push-queue.ts; do not edit.
import type { Push } from "./push-types.ts";
import { lostError } from "./socket.ts";

const limit = 10_000;

/** The pushes of one reader, from the start of its reading. A reader that falls too far behind gets an error. */
export interface PushQueue extends AsyncIterableIterator<Push> {
  add(push: Push): void;
  fail(error: unknown): void;
}

export function createPushQueue(onEnd: (queue: PushQueue) => void): PushQueue {
  const pushes: Push[] = [];
  let waiting: { resolve: (result: IteratorResult<Push>) => void; reject: (error: unknown) => void }[] = [];
  let ended: { error?: unknown } | undefined;

  const end = (how: { error?: unknown }) => {
    if (ended !== undefined) return;
    ended = how;
    onEnd(queue);
    const readers = waiting;
    waiting = [];
    for (const reader of readers) {
      if ("error" in how) reader.reject(how.error);
      else reader.resolve({ done: true, value: undefined });
    }
  };
  const queue: PushQueue = {
    add(push) {
      if (ended !== undefined) return;
      const reader = waiting.shift();
      if (reader !== undefined) reader.resolve({ done: false, value: push });
      else if (pushes.push(push) > limit) end({ error: lostError(`${limit} pushes were not read in time`) });
    },
    fail: (error) => end({ error }),
    async next() {
      const push = pushes.shift();
      if (push !== undefined) return { done: false, value: push };
      if (ended === undefined) return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      if (!("error" in ended)) return { done: true, value: undefined };
      const { error } = ended;
      ended = {}; // It is thrown once; after that the reader has ended.
      throw error;
    },
    async return() {
      end({});
      pushes.length = 0;
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => queue,
  };
  return queue;
}
