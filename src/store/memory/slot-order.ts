import { offHeap } from "./off-heap.ts";
import { NO_SLOT } from "./record-segments.ts";

const PAGE = 1024;

type Page = { readonly slots: Int32Array; live: number };

/** Slots by an ordinal that grows by one with each: ordinals begin at 1. It lets whole pages go, so that it costs what is kept. */
export class SlotOrder {
  #pages: (Page | undefined)[] = [];
  #spare: Int32Array | undefined;
  /** How many pages were let go before the first of these. */
  #gone = 0;
  #last = 0;

  /** The newest ordinal ever. */
  get last(): number {
    return this.#last;
  }

  push(slot: number): number {
    const at = this.#last % PAGE;
    if (at === 0) this.#addPage();
    const page = this.#pages[this.#pages.length - 1] as Page;
    page.slots[at] = slot;
    page.live++;
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
    const slots = this.#spare ?? new Int32Array(offHeap(PAGE * 4)).fill(NO_SLOT);
    this.#spare = undefined;
    const last = this.#pages.length - 1;
    const page = this.#pages[last];
    this.#pages.push({ slots, live: 0 });
    if (page?.live === 0) this.#drop(last, page);
  }

  #drop(index: number, { slots }: Page): void {
    this.#pages[index] = undefined;
    this.#spare = slots;
    if (index > 0) return;
    let gone = 0;
    while (gone < this.#pages.length - 1 && this.#pages[gone] === undefined) gone++;
    this.#pages = this.#pages.slice(gone);
    this.#gone += gone;
  }
}
