import { giveOffHeap, offHeap, offHeapBytes, takeOffHeap } from "./off-heap.ts";
import { PackedWriter } from "./packed.ts";

type Segment = { readonly bytes: Buffer; used: number; live: number; liveBytes: number };

/** Where a record is: bytes `from` to `to`. `tail` is how many of them, at the end, can be erased; -1 when there is no such part. */
export type RecordPlace = { bytes: Buffer; from: number; to: number; tail: number };

const SEGMENT_BYTES = 256 * 1024;
/** What a record costs beside its bytes: its slot and its place in the index. */
const SLOT_BYTES = 48;
/** Before each record stands its slot and its length, so that what is left in a segment can be found and moved. */
const HEAD_BYTES = 8;
/** A record with more than that gets a segment where it fits before it is written, with room for what stands beside. */
const LARGE = 64 * 1024;
const BESIDE_BYTES = 4 * 1024;
/** A segment is left by its last records when they are less than one part in so many. */
const MOVE_BELOW = 4;

/** A slot's row is five words. Rows are in pages, so that no table has to grow while others wait. */
const SEGMENT = 0;
const FROM = 1;
const LENGTH = 2;
const TAIL = 3;
const MARK = 4;
const WORDS = 5;
const PAGE = 1024;

export const NO_SLOT = -1;
export const NO_TAIL = -1;

/**
 * Records of any length in segments outside the JavaScript heap, each reached by its slot, a small number that is used again. Records
 * go nearly in the order in which they came; the few that stay longer are moved on, so that they keep no segment for themselves.
 */
export class RecordSegments {
  readonly #segments: (Segment | undefined)[] = [];
  readonly #gaps: number[] = [];
  readonly #freeSlots: number[] = [];
  readonly #pages: Int32Array[] = [];
  readonly #writer = new PackedWriter();
  #current = NO_SLOT;
  #slots = 0;
  #bytes = 0;

  get size(): number {
    return this.#slots - this.#freeSlots.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * What the next record is written with, before `add` or `replace`. It mostly writes to where the record stays. `least`: what is known to be
   * in it takes so many bytes.
   */
  begin(least = 0): PackedWriter {
    let segment = this.#segments[this.#current] ?? this.#open(SEGMENT_BYTES);
    if (least > LARGE && segment.used + least > segment.bytes.length) segment = this.#open(least + BESIDE_BYTES);
    const at = segment.used + HEAD_BYTES;
    if (at <= segment.bytes.length) this.#writer.beginAt(segment.bytes, at);
    else this.#writer.begin();
    return this.#writer;
  }

  /** Keeps what was written, of which the last `tail` bytes can be erased, and a number beside it. Answers the slot. */
  add(tail: number, mark: number): number {
    const slot = this.#freeSlots.pop() ?? this.#newSlot();
    const page = this.#pageOf(slot);
    const at = (slot % PAGE) * WORDS;
    page[at + TAIL] = tail;
    page[at + MARK] = mark;
    this.#keepWritten(slot);
    return slot;
  }

  /** Puts what was written in the place of another record. */
  replace(slot: number, tail: number): void {
    const page = this.#pageOf(slot);
    const at = (slot % PAGE) * WORDS;
    const index = page[at + SEGMENT] as number;
    const { bytes, from, to } = this.read(slot);
    this.#bytes -= to - from + SLOT_BYTES;
    page[at + TAIL] = tail;
    this.#keepWritten(slot);
    // What is replaced may have been erased on purpose.
    bytes.fill(0, from, to);
    this.#leave(index, to - from);
  }

  read(slot: number): RecordPlace {
    const page = this.#pageOf(slot);
    const at = (slot % PAGE) * WORDS;
    const { bytes } = this.#segments[page[at + SEGMENT] as number] as Segment;
    const from = page[at + FROM] as number;
    return { bytes, from, to: from + (page[at + LENGTH] as number), tail: page[at + TAIL] as number };
  }

  /** How much of `bytes` the record is. */
  costOf(slot: number): number {
    return (this.#pageOf(slot)[(slot % PAGE) * WORDS + LENGTH] as number) + SLOT_BYTES;
  }

  markOf(slot: number): number {
    return (this.#pageOf(slot)[(slot % PAGE) * WORDS + MARK] as number) >>> 0;
  }

  setMark(slot: number, mark: number): void {
    this.#pageOf(slot)[(slot % PAGE) * WORDS + MARK] = mark;
  }

  delete(slot: number): void {
    const page = this.#pageOf(slot);
    const at = (slot % PAGE) * WORDS;
    const index = page[at + SEGMENT] as number;
    const length = page[at + LENGTH] as number;
    this.#bytes -= length + SLOT_BYTES;
    page[at + SEGMENT] = NO_SLOT;
    this.#freeSlots.push(slot);
    this.#leave(index, length);
  }

  /** Overwrites the part that can be erased, and forgets that there was one. */
  eraseTail(slot: number): void {
    const { bytes, to, tail } = this.read(slot);
    if (tail < 0) return;
    bytes.fill(0, to - tail, to);
    const page = this.#pageOf(slot);
    const at = (slot % PAGE) * WORDS;
    page[at + LENGTH] = (page[at + LENGTH] as number) - tail;
    page[at + TAIL] = NO_TAIL;
    (this.#segments[page[at + SEGMENT] as number] as Segment).liveBytes -= tail;
    this.#bytes -= tail;
  }

  #keepWritten(slot: number): void {
    const { bytes, start, length: end } = this.#writer;
    const segment = this.#segments[this.#current] as Segment;
    this.#bytes += end - start + SLOT_BYTES;
    if (bytes === segment.bytes) this.#settle(slot, segment, end - start);
    else this.#place(slot, bytes, start, end - start);
  }

  #place(slot: number, source: Buffer, from: number, length: number): void {
    let segment = this.#segments[this.#current];
    const room = HEAD_BYTES + length;
    if (!segment || segment.used + room > segment.bytes.length) segment = this.#open(room);
    source.copy(segment.bytes, segment.used + HEAD_BYTES, from, from + length);
    this.#settle(slot, segment, length);
  }

  /** The record's bytes are where they stay. */
  #settle(slot: number, segment: Segment, length: number): void {
    const { bytes, used } = segment;
    writeWord(bytes, used, slot);
    writeWord(bytes, used + 4, length);
    const page = this.#pageOf(slot);
    const at = (slot % PAGE) * WORDS;
    page[at + SEGMENT] = this.#current;
    page[at + FROM] = used + HEAD_BYTES;
    page[at + LENGTH] = length;
    segment.used = used + HEAD_BYTES + length;
    segment.live++;
    segment.liveBytes += length;
  }

  #open(room: number): Segment {
    const before = this.#current;
    const bytes = room <= SEGMENT_BYTES ? Buffer.from(takeOffHeap(SEGMENT_BYTES)) : offHeapBytes(room);
    const segment = { bytes, used: 0, live: 0, liveBytes: 0 };
    this.#current = this.#gaps.pop() ?? this.#segments.length;
    this.#segments[this.#current] = segment;
    // Filled and emptied while it was the one that is written to.
    if (this.#segments[before]?.live === 0) this.#drop(before);
    return segment;
  }

  #leave(index: number, length: number): void {
    const segment = this.#segments[index] as Segment;
    segment.live--;
    segment.liveBytes -= length;
    if (index === this.#current) return;
    if (segment.live === 0) this.#drop(index);
    else if (segment.liveBytes * MOVE_BELOW < segment.bytes.length) this.#moveOn(index, segment);
  }

  /** Moves what is left to where is written now, and gives the segment back. */
  #moveOn(index: number, segment: Segment): void {
    for (let at = 0; at < segment.used; ) {
      const slot = readWord(segment.bytes, at);
      const from = at + HEAD_BYTES;
      at = from + readWord(segment.bytes, at + 4);
      const page = this.#pageOf(slot);
      const row = (slot % PAGE) * WORDS;
      if (page[row + SEGMENT] !== index || page[row + FROM] !== from) continue;
      // Less than was written there, where its tail was erased.
      this.#place(slot, segment.bytes, from, page[row + LENGTH] as number);
    }
    this.#drop(index);
  }

  #drop(index: number): void {
    const { bytes } = this.#segments[index] as Segment;
    this.#segments[index] = undefined;
    this.#gaps.push(index);
    if (bytes.length === SEGMENT_BYTES) giveOffHeap(bytes.buffer);
  }

  #newSlot(): number {
    if (this.#slots % PAGE === 0) this.#pages.push(new Int32Array(offHeap(PAGE * WORDS * 4)));
    return this.#slots++;
  }

  #pageOf(slot: number): Int32Array {
    return this.#pages[Math.floor(slot / PAGE)] as Int32Array;
  }
}

const writeWord = (bytes: Buffer, at: number, word: number): void => {
  bytes[at] = word;
  bytes[at + 1] = word >>> 8;
  bytes[at + 2] = word >>> 16;
  bytes[at + 3] = word >>> 24;
};

const readWord = (bytes: Buffer, at: number): number =>
  (bytes[at] as number) |
  ((bytes[at + 1] as number) << 8) |
  ((bytes[at + 2] as number) << 16) |
  ((bytes[at + 3] as number) << 24);
