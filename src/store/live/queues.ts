import type { CompactionRecord, OpenTurnRecord } from "#store/rules/records.ts";

type QueuePlace = OpenTurnRecord | CompactionRecord;

const NOBODY: readonly QueuePlace[] = [];

/** The unfinished turns and compactions of each session, by their places. */
export class Queues {
  readonly #bySession = new Map<number, QueuePlace[]>();

  of(ordinal: number): readonly QueuePlace[] {
    return this.#bySession.get(ordinal) ?? NOBODY;
  }

  /** Puts something in its place in a session's queue, or takes it out. */
  set(ordinal: number, place: number, of: QueuePlace | undefined): void {
    const queue = this.#bySession.get(ordinal) ?? [];
    const at = placeIn(queue, place);
    const isThere = queue[at]?.place === place;
    if (of) queue.splice(at, isThere ? 1 : 0, of);
    else if (isThere) queue.splice(at, 1);
    if (queue.length > 0) this.#bySession.set(ordinal, queue);
    else this.#bySession.delete(ordinal);
  }
}

/** The first place in a queue that is not before `place`. */
const placeIn = (queue: readonly QueuePlace[], place: number): number => {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((queue[middle] as QueuePlace).place < place) low = middle + 1;
    else high = middle;
  }
  return low;
};
