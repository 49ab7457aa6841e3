import { offHeapBytes } from "./off-heap.ts";

type Arena = {
  bytes: Buffer;
  /** By a chunk's first unit: how many bytes are written, the `seq` of its first entry, the chunks before and behind it. */
  used: Uint32Array;
  firstSeq: Uint32Array;
  before: Float64Array;
  /** Says nothing of the newest chunk of a log. */
  next: Float64Array;
  /** Units in use. */
  live: number;
  /** The size of all its chunks, and the first of those that are free: each has the next one as its `before`. */
  cut: number;
  free: number;
};
type Large = { bytes: Buffer; used: number; firstSeq: number; before: number; next: number };

/** What a chunk holds: bytes `from` to `to` of a buffer, beginning with the entry `firstSeq`. */
export type Extent = { bytes: Buffer; from: number; to: number; firstSeq: number; before: number };

/** A first chunk takes a turn with messages of a hundred bytes. */
export const UNIT = 384;
const UNITS = 2720;
/** Sizes in units, in the order in which a log takes them: most sessions are short, and a long one wastes little of its last chunk. */
const USUAL = [1, 1, 2, 2, 4, 4, 8] as const;
const LAST = USUAL.length - 1;
/** Those for larger entries, too: the place of one can be used again at once, where a buffer of its own waits for a collection. */
const SIZES = [...USUAL, 16, 24, 34, 48, 68, 97, 136, 194, 272, 388, 544, 906, 1360, UNITS] as const;
const LARGE = 2 ** 40;
/** Room behind a larger entry: the end of a turn takes its reply from the entry before, where both are in one chunk. */
const REST = 32;

/** So many empty arenas stay, and one in so many of all. */
const MOST_EMPTY = 3;
const EMPTY_SHARE = 32;

/** No chunk. */
export const NONE = -1;

/**
 * Memory for session logs outside the JavaScript heap, so that a million messages cost the garbage collector nothing. Chunks of a few
 * sizes are cut from arenas of about 1 MiB; an entry too large for any has a buffer of its own. A log is a chain of chunks, each
 * larger than the one before it, up to the last of the usual sizes; larger entries have larger ones.
 */
export class LogArena {
  #arenas: (Arena | undefined)[] = [];
  /** By size, the arenas that have a free chunk. */
  #open: number[][] = SIZES.map(() => []);
  #gaps: number[] = [];
  #large = new Map<number, Large>();
  #largeIds = LARGE;
  #largeBytes = 0;
  #liveUnits = 0;
  /** Arenas of which no chunk is in use; and those that wait to be cut anew. */
  #empty = 0;
  readonly #uncut: Arena[] = [];

  /** How many bytes the chunks in use cover. */
  get liveBytes(): number {
    return this.#liveUnits * UNIT + this.#largeBytes;
  }

  /** How many bytes are held, in use or not. */
  get heldBytes(): number {
    return (this.#arenas.length - this.#gaps.length + this.#uncut.length) * UNITS * UNIT + this.#largeBytes;
  }

  /** A chunk with room for `bytes`, behind the chunk `before`. */
  take(bytes: number, before: number, firstSeq: number): number {
    let size = before === NONE || before >= LARGE ? 0 : this.#sizeAfter(before);
    const needed = bytes + (bytes > (USUAL[LAST] as number) * UNIT ? REST : 0);
    while (size < SIZES.length && (SIZES[size] as number) * UNIT < needed) size++;
    const isLarge = size === SIZES.length;
    const chunk = isLarge ? this.#takeLarge(needed, before, firstSeq) : this.#takeOf(size, before, firstSeq);
    if (before !== NONE) this.#setNext(before, chunk);
    return chunk;
  }

  #takeLarge(bytes: number, before: number, firstSeq: number): number {
    this.#large.set(++this.#largeIds, { bytes: offHeapBytes(bytes), used: 0, firstSeq, before, next: NONE });
    this.#largeBytes += bytes;
    return this.#largeIds;
  }

  #takeOf(size: number, before: number, firstSeq: number): number {
    const open = this.#open[size] as number[];
    if (open.length === 0) this.#addArena(size);
    const index = open[open.length - 1] as number;
    const arena = this.#arenas[index] as Arena;
    const unit = arena.free;
    arena.free = arena.before[unit] as number;
    if (arena.free === NONE) open.pop();
    arena.used[unit] = 0;
    arena.firstSeq[unit] = firstSeq;
    arena.before[unit] = before;
    if (arena.live === 0) this.#empty--;
    arena.live += SIZES[size] as number;
    this.#liveUnits += SIZES[size] as number;
    return index * UNITS + unit;
  }

  /** Whether a chunk has room for so many bytes. */
  hasRoom(chunk: number, bytes: number): boolean {
    if (chunk === NONE) return false;
    if (chunk >= LARGE) {
      const large = this.#large.get(chunk) as Large;
      return large.used + bytes <= large.bytes.length;
    }
    const arena = this.#arenaOf(chunk);
    return (arena.used[unitOf(chunk)] as number) + bytes <= (SIZES[arena.cut] as number) * UNIT;
  }

  /** Appends the first `length` bytes of `source`; false, and nothing written, when the chunk has no room. */
  write(chunk: number, source: Buffer, length: number): boolean {
    if (chunk === NONE) return false;
    if (chunk >= LARGE) {
      const large = this.#large.get(chunk) as Large;
      if (large.used + length > large.bytes.length) return false;
      source.copy(large.bytes, large.used, 0, length);
      large.used += length;
      return true;
    }
    const arena = this.#arenaOf(chunk);
    const unit = unitOf(chunk);
    const used = arena.used[unit] as number;
    if (used + length > (SIZES[arena.cut] as number) * UNIT) return false;
    copyBytes(source, length, arena.bytes, unit * UNIT + used);
    arena.used[unit] = used + length;
    return true;
  }

  read(chunk: number): Extent {
    if (chunk >= LARGE) {
      const { bytes, used, firstSeq, before } = this.#large.get(chunk) as Large;
      return { bytes, from: 0, to: used, firstSeq, before };
    }
    const arena = this.#arenaOf(chunk);
    const unit = unitOf(chunk);
    const from = unit * UNIT;
    return {
      bytes: arena.bytes,
      from,
      to: from + (arena.used[unit] as number),
      firstSeq: arena.firstSeq[unit] as number,
      before: arena.before[unit] as number,
    };
  }

  /** The chunk behind one that is not the newest of its log. */
  nextOf(chunk: number): number {
    if (chunk >= LARGE) return (this.#large.get(chunk) as Large).next;
    return this.#arenaOf(chunk).next[unitOf(chunk)] as number;
  }

  /** Frees the oldest chunk of a log, which is not the newest too; answers the one that is the oldest then. */
  giveFirst(chunk: number): number {
    const next = this.nextOf(chunk);
    this.#setBefore(next, NONE);
    this.give(chunk);
    return next;
  }

  /** Frees a chunk; answers the one before it. */
  give(chunk: number): number {
    if (chunk >= LARGE) {
      const { before, bytes } = this.#large.get(chunk) as Large;
      this.#largeBytes -= bytes.length;
      this.#large.delete(chunk);
      return before;
    }
    const index = Math.floor(chunk / UNITS);
    const arena = this.#arenas[index] as Arena;
    const unit = unitOf(chunk);
    const before = arena.before[unit] as number;
    if (arena.free === NONE) this.#open[arena.cut]?.push(index);
    arena.before[unit] = arena.free;
    arena.free = unit;
    const units = SIZES[arena.cut] as number;
    arena.live -= units;
    this.#liveUnits -= units;
    if (arena.live === 0) this.#leaveEmpty();
    return before;
  }

  #setBefore(chunk: number, before: number): void {
    if (chunk >= LARGE) (this.#large.get(chunk) as Large).before = before;
    else this.#arenaOf(chunk).before[unitOf(chunk)] = before;
  }

  #setNext(chunk: number, next: number): void {
    if (chunk >= LARGE) (this.#large.get(chunk) as Large).next = next;
    else this.#arenaOf(chunk).next[unitOf(chunk)] = next;
  }

  #arenaOf(chunk: number): Arena {
    return this.#arenas[Math.floor(chunk / UNITS)] as Arena;
  }

  #sizeAfter(before: number): number {
    const { cut } = this.#arenaOf(before);
    return cut > LAST ? 0 : Math.min(cut + 1, LAST);
  }

  /** Cuts a new arena into chunks of one size. */
  #addArena(size: number): void {
    const index = this.#gaps.pop() ?? this.#arenas.length;
    const arena = this.#uncut.pop() ?? newArena();
    const { before } = arena;
    const step = SIZES[size] as number;
    let free = NONE;
    for (let unit = Math.floor(UNITS / step) * step - step; unit >= 0; unit -= step) {
      before[unit] = free;
      free = unit;
    }
    arena.cut = size;
    arena.free = free;
    this.#arenas[index] = arena;
    this.#open[size]?.push(index);
    this.#empty++;
  }

  /**
   * What is freed is mostly used again, so a few empty arenas stay as they are cut; the others wait to be cut anew, for whatever size needs one:
   * else memory would grow for as long as each size has now and then more chunks than ever before. What waits goes back to the system once it is
   * as much as is in use: not sooner, as it leaves memory only with a full collection, which may be far away.
   */
  #leaveEmpty(): void {
    const kept = this.#arenas.length - this.#gaps.length;
    if (++this.#empty <= MOST_EMPTY + kept / EMPTY_SHARE) return;
    this.#empty = 0;
    const isEmpty = (index: number): boolean => this.#arenas[index]?.live === 0;
    for (const [size, open] of this.#open.entries()) {
      const empty = open.filter(isEmpty);
      if (empty.length === 0) continue;
      this.#open[size] = open.filter((index) => !isEmpty(index));
      for (const index of empty) {
        this.#uncut.push(this.#arenas[index] as Arena);
        this.#arenas[index] = undefined;
      }
      this.#gaps.push(...empty);
    }
    const inUse = this.#arenas.length - this.#gaps.length;
    if (this.#uncut.length > Math.max(inUse, MOST_EMPTY)) this.#uncut.length = Math.max(inUse, MOST_EMPTY);
  }
}

/** An arena that is not cut into chunks. */
const newArena = (): Arena => ({
  bytes: offHeapBytes(UNIT * UNITS),
  used: new Uint32Array(UNITS),
  firstSeq: new Uint32Array(UNITS),
  before: new Float64Array(UNITS),
  next: new Float64Array(UNITS),
  live: 0,
  cut: 0,
  free: NONE,
});

/** `| 0`: see `slotOfPlace`. */
const unitOf = (chunk: number): number => (chunk % UNITS) | 0;

const SHORT = 96;

/** Most entries are short, and a call into the system's copy costs more than their bytes. */
const copyBytes = (source: Buffer, length: number, target: Buffer, to: number): void => {
  if (length > SHORT) source.copy(target, to, 0, length);
  else for (let at = 0; at < length; at++) target[to + at] = source[at] as number;
};
