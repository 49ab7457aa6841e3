import { giveOffHeap, takeOffHeap } from "./off-heap.ts";

const BLOCK = 512;

type Block = { readonly ordinals: Float64Array; used: number; open: number; free: number };

/**
 * Ordinals of what is still open, in order; some of it is free, the rest taken. Which of them, only their block knows by its counts:
 * who walks it passes over blocks without a free one, and looks at each of the others.
 */
export class OpenQueue {
  readonly #blocks: Block[] = [];

  /** Ordinals must grow. */
  push(ordinal: number): void {
    let block = this.#blocks.at(-1);
    if (!block || block.used === BLOCK) {
      block = { ordinals: new Float64Array(takeOffHeap(BLOCK * 8)), used: 0, open: 0, free: 0 };
      this.#blocks.push(block);
    }
    block.ordinals[block.used++] = ordinal;
    block.open++;
    block.free++;
  }

  /** It was free, and is not any more. */
  take(ordinal: number): void {
    (this.#blocks[this.#indexOf(ordinal)] as Block).free--;
  }

  giveBack(ordinal: number): void {
    (this.#blocks[this.#indexOf(ordinal)] as Block).free++;
  }

  /** It was taken, and is open no more. */
  end(ordinal: number): void {
    const index = this.#indexOf(ordinal);
    const block = this.#blocks[index] as Block;
    if (--block.open > 0) return;
    block.used = 0;
    if (index === this.#blocks.length - 1) return;
    this.#blocks.splice(index, 1);
    giveOffHeap(block.ordinals.buffer);
  }

  /** The free ones above `ordinal`, and among them some that are not. */
  *after(ordinal: number): Iterable<number> {
    for (let index = Math.max(this.#indexOf(ordinal), 0); index < this.#blocks.length; index++) {
      const { ordinals, used, free } = this.#blocks[index] as Block;
      if (free === 0) continue;
      for (let at = 0; at < used; at++) if ((ordinals[at] as number) > ordinal) yield ordinals[at] as number;
    }
  }

  /** The last block that begins at `ordinal` or before; -1 when there is none. */
  #indexOf(ordinal: number): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (((this.#blocks[middle] as Block).ordinals[0] as number) <= ordinal) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
