import { giveOffHeap, takeOffHeap } from "./off-heap.ts";

const BLOCK = 1024;

/** A queue of numbers outside the JavaScript heap: millions of them cost the garbage collector nothing, and none takes long to add. */
export class NumberFifo {
  #blocks: Float64Array[] = [newBlock()];
  /** Blocks before it were emptied. */
  #first = 0;
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(number: number): void {
    const at = this.#head + this.#size++;
    const index = this.#first + Math.floor(at / BLOCK);
    if (index === this.#blocks.length) this.#blocks.push(newBlock());
    (this.#blocks[index] as Float64Array)[at % BLOCK] = number;
  }

  peek(): number | undefined {
    return this.#size === 0 ? undefined : this.#blocks[this.#first]?.[this.#head];
  }

  shift(): number | undefined {
    const number = this.peek();
    if (number === undefined) return undefined;
    this.#size--;
    if (++this.#head < BLOCK) return number;
    this.#head = 0;
    giveOffHeap((this.#blocks[this.#first] as Float64Array).buffer);
    this.#blocks[this.#first++] = EMPTIED;
    if (this.#first < 64 || this.#first * 2 < this.#blocks.length) return number;
    this.#blocks = this.#blocks.slice(this.#first);
    this.#first = 0;
    return number;
  }
}

const newBlock = (): Float64Array => new Float64Array(takeOffHeap(BLOCK * 8));

const EMPTIED = new Float64Array(0);
