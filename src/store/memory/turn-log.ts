import type { IdPlace } from "./id-index.ts";
import { giveOffHeap, takeOffHeap } from "./off-heap.ts";

const BLOCK_ROWS = 1024;
const ROW_BYTES = 16;

type Block = { numbers: Float64Array; ordinals: Uint32Array; seqs: Uint32Array; used: number };
export type LoggedTurn = IdPlace & { number: number };

/**
 * Where all turns are, in the order of their coming, numbered from 1. Nobody tells it of those that go: as each block fills up, the rows
 * of two older ones are looked at, and those that are not there any more leave.
 */
export class TurnLog {
  #blocks: Block[] = [];
  #last = 0;
  #thinned = 0;

  /** Answers the number of the turn. */
  push({ ordinal, seq }: IdPlace, isThere: (place: IdPlace) => boolean): number {
    let block = this.#blocks.at(-1);
    if (!block || block.used === BLOCK_ROWS) {
      this.#thin(isThere);
      this.#thin(isThere);
      block = newBlock();
      this.#blocks.push(block);
    }
    put(block, ++this.#last, ordinal, seq);
    return this.#last;
  }

  /** Turns whose numbers are smaller, the newest first, at most `most`. */
  below(number: number, most: number): LoggedTurn[] {
    const found: LoggedTurn[] = [];
    for (let at = this.#blocks.length - 1; at >= 0 && found.length < most; at--) {
      const block = this.#blocks[at] as Block;
      if (block.used === 0 || (block.numbers[0] as number) >= number) continue;
      for (let row = block.used - 1; row >= 0 && found.length < most; row--) {
        const turn = rowAt(block, row);
        if (turn.number < number) found.push(turn);
      }
    }
    return found;
  }

  #thin(isThere: (place: IdPlace) => boolean): void {
    if (this.#thinned >= this.#blocks.length) this.#thinned = 0;
    const block = this.#blocks[this.#thinned];
    if (!block) return;
    const { used } = block;
    block.used = 0;
    for (let row = 0; row < used; row++) {
      const turn = rowAt(block, row);
      if (isThere(turn)) put(block, turn.number, turn.ordinal, turn.seq);
    }
    const before = this.#blocks[this.#thinned - 1];
    if (!before || before.used + block.used > BLOCK_ROWS) {
      this.#thinned++;
      return;
    }
    for (let row = 0; row < block.used; row++) {
      const { number, ordinal, seq } = rowAt(block, row);
      put(before, number, ordinal, seq);
    }
    this.#blocks.splice(this.#thinned, 1);
    giveOffHeap(block.numbers.buffer);
  }
}

const newBlock = (): Block => {
  const memory = takeOffHeap(BLOCK_ROWS * ROW_BYTES);
  return {
    numbers: new Float64Array(memory, 0, BLOCK_ROWS),
    ordinals: new Uint32Array(memory, BLOCK_ROWS * 8, BLOCK_ROWS),
    seqs: new Uint32Array(memory, BLOCK_ROWS * 12, BLOCK_ROWS),
    used: 0,
  };
};

const put = (block: Block, number: number, ordinal: number, seq: number): void => {
  const row = block.used++;
  block.numbers[row] = number;
  block.ordinals[row] = ordinal;
  block.seqs[row] = seq;
};

const rowAt = ({ numbers, ordinals, seqs }: Block, row: number): LoggedTurn => ({
  number: numbers[row] as number,
  ordinal: ordinals[row] as number,
  seq: seqs[row] as number,
});
