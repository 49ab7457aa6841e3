import { decodeCursor, encodeCursor } from "#store/cursors.ts";
import type { Page } from "#store/store.ts";
import { giveOffHeap, takeOffHeap } from "./off-heap.ts";

/** So many rows, with those that are gone, are looked up and thinned out together. */
const BLOCK_ROWS = 1024;
/** A block has so many at least. */
const FEWEST_ROWS = 16;
/** No row is there any more. */
const GONE = -1;

type Block = { ordinals: Float64Array; slots: Int32Array; used: number; live: number };

/**
 * Slots in the order of their ordinals, read newest first a page at a time. A page costs the same at any length and any depth: of a
 * block's rows a quarter is alive at least. Typed arrays, as there may be a million rows: nothing for a collection to look at.
 */
export class OrderedSlots {
  #blocks: Block[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Ordinals must grow. */
  push(ordinal: number, slot: number): void {
    let block = this.#blocks.at(-1);
    if (!block || block.used === block.slots.length) {
      block = newBlock(BLOCK_ROWS);
      this.#blocks.push(block);
    }
    putRow(block, ordinal, slot);
    this.#size++;
  }

  /** Forgets a row that is there. */
  delete(ordinal: number): void {
    const at = this.#blockOf(ordinal);
    const block = this.#blocks[at] as Block;
    block.slots[rowOf(block, ordinal)] = GONE;
    block.live--;
    this.#size--;
    if (block.live * 4 >= block.used) return;
    // The last one is still being filled.
    if (at === this.#blocks.length - 1) closeUp(block);
    else {
      if (block.live === 0) this.#blocks.splice(at, 1);
      else this.#blocks[at] = thinned(block);
      giveOffHeap(block.ordinals.buffer);
    }
  }

  find(ordinal: number): number | undefined {
    const block = this.#blocks[this.#blockOf(ordinal)];
    const row = block ? rowOf(block, ordinal) : 0;
    if (!block || row >= block.used || block.ordinals[row] !== ordinal) return undefined;
    const slot = block.slots[row] as number;
    return slot === GONE ? undefined : slot;
  }

  /** Slots above `ordinal`, oldest first, for a sweep that goes on where it stopped. What is deleted meanwhile is left out or was seen. */
  *after(ordinal: number): Iterable<number> {
    for (let next: number | undefined = ordinal + 1; ; ) {
      const place: { ordinal: number; slot: number } | undefined = this.#firstFrom(next);
      if (!place) return;
      yield place.slot;
      next = place.ordinal + 1;
    }
  }

  page<R>(limit: number, cursor: string | undefined, read: (slot: number) => R): Page<R> {
    const below = cursor === undefined ? Infinity : decodeCursor(cursor);
    const items: R[] = [];
    let last = 0;
    for (let at = below === Infinity ? this.#blocks.length - 1 : this.#blockOf(below); at >= 0; at--) {
      const block = this.#blocks[at];
      if (!block) continue;
      for (let row = Math.min(rowOf(block, below), block.used) - 1; row >= 0; row--) {
        const slot = block.slots[row] as number;
        if (slot === GONE) continue;
        if (items.length === limit) return { items, next: items.length > 0 ? encodeCursor(last) : undefined };
        items.push(read(slot));
        last = block.ordinals[row] as number;
      }
    }
    return { items, next: undefined };
  }

  #firstFrom(ordinal: number): { ordinal: number; slot: number } | undefined {
    for (let at = this.#blockOf(ordinal); at < this.#blocks.length; at++) {
      const block = this.#blocks[at] as Block;
      for (let row = rowOf(block, ordinal); row < block.used; row++) {
        const slot = block.slots[row] as number;
        if (slot !== GONE) return { ordinal: block.ordinals[row] as number, slot };
      }
    }
    return undefined;
  }

  /** The first block that ends at `ordinal` or after it. */
  #blockOf(ordinal: number): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const { ordinals, used } = this.#blocks[middle] as Block;
      if ((ordinals[used - 1] ?? 0) < ordinal) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const newBlock = (rows: number): Block => {
  const memory = takeOffHeap(rows * 12);
  return { ordinals: new Float64Array(memory, 0, rows), slots: new Int32Array(memory, rows * 8), used: 0, live: 0 };
};

const putRow = (block: Block, ordinal: number, slot: number): void => {
  block.ordinals[block.used] = ordinal;
  block.slots[block.used++] = slot;
  block.live++;
};

/** The rows that are there, in little more memory than they need: of a few sizes, as others soon need such. */
const thinned = (old: Block): Block => {
  const block = newBlock(2 ** (32 - Math.clz32(Math.max(old.live, FEWEST_ROWS) - 1)));
  for (let row = 0; row < old.used; row++) {
    const slot = old.slots[row] as number;
    if (slot !== GONE) putRow(block, old.ordinals[row] as number, slot);
  }
  return block;
};

/** Leaves out the rows that are gone, in place: a short list would need new memory for every few that come and go. */
const closeUp = (block: Block): void => {
  const { ordinals, slots, used } = block;
  block.used = 0;
  block.live = 0;
  for (let row = 0; row < used; row++) {
    const slot = slots[row] as number;
    if (slot !== GONE) putRow(block, ordinals[row] as number, slot);
  }
};

/** The first row of a block whose ordinal is not below `ordinal`. */
const rowOf = ({ ordinals, used }: Block, ordinal: number): number => {
  let low = 0;
  let high = used;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ordinals[middle] as number) < ordinal) low = middle + 1;
    else high = middle;
  }
  return low;
};
