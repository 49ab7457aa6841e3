import { offHeapBytes } from "./off-heap.ts";

const PAGE_BYTES = 262_144;
/** Up to this length there is a size for every eight bytes, then one for every doubling. */
const FINE_BYTES = 256;
const STEP = 8;
const FINE_SIZES = FINE_BYTES / STEP;
/** No place is free that was used. */
const NONE = -1;

/** Places of one size. From `used` on they were never taken; each that is free again begins with where the next of those is. */
type Page = { bytes: Buffer; size: number; used: number; free: number; live: number };

/**
 * Short blobs outside the JavaScript heap, each at a place that never moves. A place that is free is given to another blob of about the
 * same length: among those that soon go there are always some that stay, and a page must not be theirs alone.
 */
export class TextHeap {
  readonly #pages: (Page | undefined)[] = [];
  readonly #gaps: number[] = [];
  /** By size, the pages that have room. */
  readonly #roomy: number[][] = [];

  /** Copies the first `length` bytes of `source`; answers their place. */
  add(source: Buffer, length: number): number {
    const roomy = this.#roomyOf(sizeFor(length));
    if (roomy.length === 0) roomy.push(this.#addPage(length));
    const index = roomy[roomy.length - 1] as number;
    const page = this.#pages[index] as Page;
    const at = page.free === NONE ? page.used : page.free;
    if (page.free === NONE) page.used += page.size;
    else page.free = page.bytes.readInt32LE(at);
    page.live++;
    if (isFull(page)) roomy.pop();
    source.copy(page.bytes, at, 0, length);
    return index * PAGE_BYTES + at;
  }

  /** The bytes from a place on: whose end is known only to who wrote them. */
  read(place: number): { bytes: Buffer; at: number } {
    // `| 0`: see `slotOfPlace`.
    return { bytes: (this.#pages[Math.floor(place / PAGE_BYTES)] as Page).bytes, at: (place % PAGE_BYTES) | 0 };
  }

  delete(place: number): void {
    const index = Math.floor(place / PAGE_BYTES);
    const page = this.#pages[index] as Page;
    const roomy = this.#roomyOf(page.size);
    if (isFull(page)) roomy.push(index);
    page.bytes.writeInt32LE(page.free, place % PAGE_BYTES);
    page.free = place % PAGE_BYTES;
    page.live--;
    // One stays, for what comes next.
    if (page.live > 0 || roomy.length < 2) return;
    roomy.splice(roomy.indexOf(index), 1);
    this.#pages[index] = undefined;
    this.#gaps.push(index);
  }

  #addPage(length: number): number {
    const size = sizeFor(length);
    const index = this.#gaps.pop() ?? this.#pages.length;
    this.#pages[index] = { bytes: offHeapBytes(Math.max(size, PAGE_BYTES)), size, used: 0, free: NONE, live: 0 };
    return index;
  }

  #roomyOf(size: number): number[] {
    const at = size <= FINE_BYTES ? size / STEP : FINE_SIZES + Math.log2(size / FINE_BYTES);
    this.#roomy[at] ??= [];
    return this.#roomy[at];
  }
}

const sizeFor = (length: number): number =>
  length <= FINE_BYTES ? Math.max(Math.ceil(length / STEP) * STEP, STEP) : 2 ** (32 - Math.clz32(length - 1));

const isFull = ({ bytes, size, used, free }: Page): boolean => free === NONE && used + size > bytes.length;
