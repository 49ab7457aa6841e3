import { giveOffHeap, takeOffHeap } from "./off-heap.ts";
import { NO_SLOT } from "./record-segments.ts";

const PAGE = 1024;

/** `earliest` and `latest` are of the times that its slots were given with. */
type Page = { readonly slots: Int32Array; live: number; earliest: number; latest: number };

/** Slots by an ordinal that grows by one with each: ordinals begin at 1. It lets whole pages go, so that it costs what is kept. */
export class SlotOrder {
  #pages: (Page | undefined)[] = [];
  /** How many pages were let go before the first of these. */
  #gone = 0;
  #last = 0;

  /** The newest ordinal ever. */
  get last(): number {
    return this.#last;
  }

  /** `at` is when that came which the slot is of, for `find`. */
  push(slot: number, at = 0): number {
    const row = this.#last % PAGE;
    if (row === 0) this.#addPage();
    const page = this.#pages[this.#pages.length - 1] as Page;
    page.slots[row] = slot;
    page.live++;
    if (at < page.earliest) page.earliest = at;
    if (at > page.latest) page.latest = at;
    return ++this.#last;
  }

  slotOf(ordinal: number): number {
    const page = this.#pages[Math.floor((ordinal - 1) / PAGE) - this.#gone];
    return page ? (page.slots[(ordinal - 1) % PAGE] as number) : NO_SLOT;
  }

  clear(ordinal: number): void {
    const index = Math.floor((ordinal - 1) / PAGE) - this.#gone;
    const page = this.#pages[index];
    if (!page) return;
    page.slots[(ordinal - 1) % PAGE] = NO_SLOT;
    page.live--;
    // The last page is still being filled: it goes, if it does, when another follows it.
    if (page.live === 0 && index < this.#pages.length - 1) this.#drop(index, page);
  }

  /**
   * The ordinal of the newest slot that `isIt`, among those given with the time `at`; undefined looks among all; 0 when there is none. It
   * costs little more than a page, as long as slots come nearly in the order of their times.
   */
  find(at: number | undefined, isIt: (slot: number) => boolean): number {
    for (let index = this.#pages.length - 1; index >= 0; index--) {
      const page = this.#pages[index];
      if (!page || page.live === 0 || (at !== undefined && (at < page.earliest || at > page.latest))) continue;
      for (let row = PAGE - 1; row >= 0; row--) {
        const slot = page.slots[row] as number;
        if (slot !== NO_SLOT && isIt(slot)) return (index + this.#gone) * PAGE + row + 1;
      }
    }
    return 0;
  }

  /** The largest ordinal up to `ordinal` that has a slot; 0 when there is none. */
  before(ordinal: number): number {
    let at = Math.min(ordinal, this.#last);
    while (at > 0) {
      const index = Math.floor((at - 1) / PAGE) - this.#gone;
      if (index < 0) return 0;
      const page = this.#pages[index];
      if (!page || page.live === 0) {
        at = (index + this.#gone) * PAGE;
        continue;
      }
      if (page.slots[(at - 1) % PAGE] !== NO_SLOT) return at;
      at--;
    }
    return 0;
  }

  #addPage(): void {
    const slots = new Int32Array(takeOffHeap(PAGE * 4)).fill(NO_SLOT);
    const last = this.#pages.length - 1;
    const page = this.#pages[last];
    this.#pages.push({ slots, live: 0, earliest: Infinity, latest: -Infinity });
    if (page?.live === 0) this.#drop(last, page);
  }

  #drop(index: number, { slots }: Page): void {
    this.#pages[index] = undefined;
    giveOffHeap(slots.buffer);
    if (index > 0) return;
    let gone = 0;
    while (gone < this.#pages.length - 1 && this.#pages[gone] === undefined) gone++;
    this.#pages = this.#pages.slice(gone);
    this.#gone += gone;
  }
}
