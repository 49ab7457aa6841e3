type Segment = { bytes: Buffer; used: number; live: number };

/** Where a record is: bytes `from` to `to`. `tail` is how many of them, at the end, can be erased; -1 when there is no such part. */
export type RecordPlace = { bytes: Buffer; from: number; to: number; tail: number };

const SEGMENT_BYTES = 256 * 1024;
/** Spare segments that are kept for the next records. */
const SPARE = 2;
/** What a record costs beside its bytes: its slot and its place in the index. */
const SLOT_BYTES = 48;
/** Before each record stands its slot, so that what is left in a segment can be found and moved. */
const HEAD_BYTES = 8;
const FIRST_SLOTS = 256;

export const NO_SLOT = -1;

/**
 * Records of any length in segments outside the JavaScript heap, each reached by its slot, a small number that is used again. Records
 * go nearly in the order in which they came; the few that stay longer are moved on, so that they keep no segment for themselves.
 */
export class RecordSegments {
  readonly #segments: (Segment | undefined)[] = [];
  readonly #spare: Buffer[] = [];
  readonly #freeSlots: number[] = [];
  #current = NO_SLOT;
  #slots = 0;
  #segmentOf = new Int32Array(FIRST_SLOTS);
  #from = new Uint32Array(FIRST_SLOTS);
  #length = new Uint32Array(FIRST_SLOTS);
  #tail = new Int32Array(FIRST_SLOTS);
  #mark = new Uint32Array(FIRST_SLOTS);
  #bytes = 0;

  get size(): number {
    return this.#slots - this.#freeSlots.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps the first `length` bytes of `source`, of which the last `tail` can be erased, and a number beside them. Answers the slot. */
  add(source: Buffer, length: number, tail: number, mark: number): number {
    const slot = this.#freeSlots.pop() ?? this.#newSlot();
    this.#length[slot] = length;
    this.#tail[slot] = tail;
    this.#mark[slot] = mark;
    this.#bytes += length + SLOT_BYTES;
    this.#place(slot, source, 0);
    return slot;
  }

  read(slot: number): RecordPlace {
    const { bytes } = this.#segments[this.#segmentOf[slot] as number] as Segment;
    const from = this.#from[slot] as number;
    return { bytes, from, to: from + (this.#length[slot] as number), tail: this.#tail[slot] as number };
  }

  markOf(slot: number): number {
    return this.#mark[slot] as number;
  }

  delete(slot: number): void {
    const index = this.#segmentOf[slot] as number;
    this.#bytes -= (this.#length[slot] as number) + SLOT_BYTES;
    this.#segmentOf[slot] = NO_SLOT;
    this.#freeSlots.push(slot);
    this.#leave(index);
  }

  /** Overwrites the part that can be erased, and forgets that there was one. */
  eraseTail(slot: number): void {
    const { bytes, to, tail } = this.read(slot);
    if (tail < 0) return;
    bytes.fill(0, to - tail, to);
    this.#length[slot] = (this.#length[slot] as number) - tail;
    this.#tail[slot] = -1;
    this.#bytes -= tail;
  }

  #place(slot: number, source: Buffer, from: number): void {
    const length = this.#length[slot] as number;
    const room = HEAD_BYTES + length;
    let segment = this.#segments[this.#current];
    if (!segment || segment.used + room > segment.bytes.length) {
      segment = this.#open(room);
    }
    segment.bytes.writeUInt32LE(slot, segment.used);
    segment.bytes.writeUInt32LE(length, segment.used + 4);
    this.#segmentOf[slot] = this.#current;
    this.#from[slot] = segment.used + HEAD_BYTES;
    source.copy(segment.bytes, segment.used + HEAD_BYTES, from, from + length);
    segment.used += room;
    segment.live++;
  }

  #open(room: number): Segment {
    const before = this.#current;
    const bytes = room <= SEGMENT_BYTES ? (this.#spare.pop() ?? Buffer.allocUnsafeSlow(SEGMENT_BYTES)) : undefined;
    const segment = { bytes: bytes ?? Buffer.allocUnsafeSlow(room), used: 0, live: 0 };
    const gap = this.#segments.indexOf(undefined);
    this.#current = gap < 0 ? this.#segments.length : gap;
    this.#segments[this.#current] = segment;
    // Filled and emptied while it was the one that is written to.
    if (this.#segments[before]?.live === 0) this.#drop(before);
    return segment;
  }

  #leave(index: number): void {
    const segment = this.#segments[index] as Segment;
    segment.live--;
    if (index === this.#current) return;
    if (segment.live === 0) this.#drop(index);
    else if (segment.live * MOVE_BELOW < countOf(segment)) this.#moveOn(index, segment);
  }

  /** Moves what is left to where is written now, and gives the segment back. */
  #moveOn(index: number, segment: Segment): void {
    for (let at = 0; at < segment.used; ) {
      const slot = segment.bytes.readUInt32LE(at);
      const from = at + HEAD_BYTES;
      at = from + segment.bytes.readUInt32LE(at + 4);
      if (this.#segmentOf[slot] === index && this.#from[slot] === from) this.#place(slot, segment.bytes, from);
    }
    this.#drop(index);
  }

  #drop(index: number): void {
    const { bytes } = this.#segments[index] as Segment;
    this.#segments[index] = undefined;
    if (bytes.length === SEGMENT_BYTES && this.#spare.length < SPARE) this.#spare.push(bytes);
  }

  #newSlot(): number {
    const slot = this.#slots++;
    if (slot === this.#from.length) {
      this.#segmentOf = grown(this.#segmentOf, new Int32Array(slot * 2));
      this.#from = grown(this.#from, new Uint32Array(slot * 2));
      this.#length = grown(this.#length, new Uint32Array(slot * 2));
      this.#tail = grown(this.#tail, new Int32Array(slot * 2));
      this.#mark = grown(this.#mark, new Uint32Array(slot * 2));
    }
    return slot;
  }
}

/** A segment is left by its last records when so few of them stay: one in so many that it has room for. */
const MOVE_BELOW = 8;
const RECORD_BYTES = 400;
const countOf = ({ bytes }: Segment): number => bytes.length / RECORD_BYTES;

const grown = <T extends Int32Array | Uint32Array>(old: T, next: T): T => {
  next.set(old);
  return next;
};
