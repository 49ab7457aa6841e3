/**
 * Memory for records, outside the JavaScript heap. Shared, though nobody shares it: what an ArrayBuffer holds counts towards the next
 * full collection, and a store that grows by megabytes a second would bring one about every second, for nothing that it could free.
 */
export const offHeap = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);

export const offHeapBytes = (bytes: number): Buffer => Buffer.from(offHeap(bytes));

/** Of each size so much is kept for whoever takes some next, and so many pieces at least. */
const SPARE_BYTES = 4 * 1024 * 1024;
const SPARE_PIECES = 2;

const spare = new Map<number, ArrayBufferLike[]>();

/**
 * The same for what comes and goes all the time: `giveOffHeap` gives it to the next who asks for as much. What is left to the garbage collector
 * waits for a full collection, and meanwhile memory grows by all that waits, and is cut into pieces of every size. It is not cleared.
 */
export const takeOffHeap = (bytes: number): ArrayBufferLike => spare.get(bytes)?.pop() ?? offHeap(bytes);

/** Nobody may use it any more. */
export const giveOffHeap = (memory: ArrayBufferLike): void => {
  const bytes = memory.byteLength;
  let pieces = spare.get(bytes);
  if (!pieces) {
    pieces = [];
    spare.set(bytes, pieces);
  }
  if (pieces.length < SPARE_PIECES || (pieces.length + 1) * bytes <= SPARE_BYTES) pieces.push(memory);
};
