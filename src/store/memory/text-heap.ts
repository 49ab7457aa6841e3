import { offHeapBytes } from "./off-heap.ts";

const PAGE_BYTES = 262_144;

type Page = { bytes: Buffer; used: number; live: number };

/**
 * Short blobs outside the JavaScript heap, each at a place that never moves. A page is used again when nothing on it is alive: what
 * is made at about the same time is forgotten at about the same time.
 */
export class TextHeap {
  #pages: (Page | undefined)[] = [];
  #free: number[] = [];
  #spare: Buffer | undefined;
  #open = -1;

  /** Copies the first `length` bytes of `source`; answers their place. */
  add(source: Buffer, length: number): number {
    let page = this.#pages[this.#open];
    if (!page || page.used + length > page.bytes.length) {
      this.#letGo(this.#open);
      this.#open = this.#free.pop() ?? this.#pages.length;
      page = { bytes: this.#take(length), used: 0, live: 0 };
      this.#pages[this.#open] = page;
    }
    const at = page.used;
    source.copy(page.bytes, at, 0, length);
    page.used += length;
    page.live++;
    return this.#open * PAGE_BYTES + at;
  }

  /** The bytes from a place on: whose end is known only to who wrote them. */
  read(place: number): { bytes: Buffer; at: number } {
    return { bytes: (this.#pages[Math.floor(place / PAGE_BYTES)] as Page).bytes, at: place % PAGE_BYTES };
  }

  delete(place: number): void {
    const at = Math.floor(place / PAGE_BYTES);
    (this.#pages[at] as Page).live--;
    if (at !== this.#open) this.#letGo(at);
  }

  #letGo(at: number): void {
    const page = this.#pages[at];
    if (!page || page.live > 0) return;
    if (page.bytes.length === PAGE_BYTES) this.#spare = page.bytes;
    this.#pages[at] = undefined;
    this.#free.push(at);
  }

  #take(length: number): Buffer {
    if (length > PAGE_BYTES) return offHeapBytes(length);
    const spare = this.#spare ?? offHeapBytes(PAGE_BYTES);
    this.#spare = undefined;
    return spare;
  }
}
