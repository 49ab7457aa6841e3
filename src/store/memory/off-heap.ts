/**
 * Memory for records, outside the JavaScript heap. Shared, though nobody shares it: what an ArrayBuffer holds counts towards the next
 * full collection, and a store that grows by megabytes a second would bring one about every second, for nothing that it could free.
 */
export const offHeap = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);

export const offHeapBytes = (bytes: number): Buffer => Buffer.from(offHeap(bytes));
