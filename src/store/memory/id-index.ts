import { offHeap } from "./off-heap.ts";

/** Where a thing of this id is: of a turn, the ordinal of its session and the `seq` of its first `turn.queued` entry there. */
export type IdPlace = { ordinal: number; seq: number };

/** The place of what is found by a slot: ordinals begin at 1, and the second number says nothing. */
export const placeOfSlot = (slot: number): IdPlace => ({ ordinal: slot + 1, seq: 1 });
/**
 * The slot of such a place.
 * @NOTE `| 0`: a number that was among doubles stays one until the code around it is compiled, and all compiled code that has seen
 * none but small integers is thrown away when the first such number comes along.
 */
export const slotOfPlace = ({ ordinal }: IdPlace): number => (ordinal - 1) | 0;

type Shard = { words: Uint32Array; used: number; live: number };

const SHARDS = 256;
const WORDS = 3;
const FIRST_ROWS = 16;
/** Between these shares of its rows a shard is neither too small nor too large. */
const LEAST_LIVE = 0.25;
const MOST_LIVE = 0.55;
const EMPTY = 0;
const BASIS = 0x811c9dc5;
const GONE = 1;
/** Ordinals begin at 1; kept one higher, none looks like an empty or a freed row. */
const ORDINAL_BASE = 1;

/**
 * Places by id, in a few typed arrays: no strings, nothing for the garbage collector to look at. It keeps a hash of an id, so an answer
 * is a candidate that the caller checks against the log. Many small tables, so that none takes long to grow.
 */
export class IdIndex {
  readonly #seed: number;
  #shards: Shard[] = Array.from({ length: SHARDS }, () => emptyShard(FIRST_ROWS));

  /** Where callers choose the ids, with a seed that they cannot know: else they could choose such as share a row. */
  constructor(seed = BASIS) {
    this.#seed = seed;
  }

  add(id: string, { ordinal, seq }: IdPlace): void {
    const hash = hashOf(id, this.#seed);
    const at = hash % SHARDS;
    let shard = this.#shards[at] as Shard;
    if ((shard.used + 1) * WORDS * 4 > shard.words.length * 3) {
      shard = rewritten(shard);
      this.#shards[at] = shard;
    }
    put(shard, hash, ordinal + ORDINAL_BASE, seq);
  }

  /** The place for which `isIt` says yes. */
  find(id: string, isIt: (place: IdPlace) => boolean): IdPlace | undefined {
    const row = this.#rowOf(hashOf(id, this.#seed), isIt);
    return row === undefined ? undefined : placeAt(row.words, row.at);
  }

  delete(id: string, place: IdPlace): void {
    this.deleteHash(hashOf(id, this.#seed), place);
  }

  /** The same, for who has kept the hash but not the id. */
  deleteHash(hash: number, { ordinal, seq }: IdPlace): void {
    const shard = this.#shards[hash % SHARDS] as Shard;
    const { words } = shard;
    const rows = words.length / WORDS;
    for (let row = Math.floor(hash / SHARDS) % rows; ; row = row + 1 === rows ? 0 : row + 1) {
      const at = row * WORDS;
      if (words[at + 1] === EMPTY) return;
      if (words[at] !== hash || words[at + 1] !== ordinal + ORDINAL_BASE || words[at + 2] !== seq) continue;
      words[at + 1] = GONE;
      shard.live--;
      return;
    }
  }

  #rowOf(hash: number, isIt: (place: IdPlace) => boolean) {
    const shard = this.#shards[hash % SHARDS] as Shard;
    const { words } = shard;
    const rows = words.length / WORDS;
    for (let row = Math.floor(hash / SHARDS) % rows; ; row = row + 1 === rows ? 0 : row + 1) {
      const at = row * WORDS;
      if (words[at + 1] === EMPTY) return undefined;
      if (words[at] === hash && words[at + 1] !== GONE && isIt(placeAt(words, at))) return { shard, words, at };
    }
  }
}

const placeAt = (words: Uint32Array, at: number): IdPlace => ({
  ordinal: (words[at + 1] as number) - ORDINAL_BASE,
  seq: words[at + 2] as number,
});

const emptyShard = (rows: number): Shard => ({ words: new Uint32Array(offHeap(rows * WORDS * 4)), used: 0, live: 0 });

const put = (shard: Shard, hash: number, ordinal: number, seq: number): void => {
  const { words } = shard;
  const rows = words.length / WORDS;
  let row = Math.floor(hash / SHARDS) % rows;
  while (words[row * WORDS + 1] !== EMPTY) row = row + 1 === rows ? 0 : row + 1;
  words[row * WORDS] = hash;
  words[row * WORDS + 1] = ordinal;
  words[row * WORDS + 2] = seq;
  shard.used++;
  shard.live++;
};

/**
 * The same rows without the freed ones, about half full. Where ids go as fast as they come it stays in its place: new memory for every few ids
 * that come is more than a garbage collector clears away in time.
 */
const rewritten = (old: Shard): Shard => {
  const { words, live } = old;
  const rows = words.length / WORDS;
  const fits = live >= rows * LEAST_LIVE && live <= rows * MOST_LIVE;
  const next = fits ? old : emptyShard(Math.max(FIRST_ROWS, Math.ceil(live * 2)));
  const from = fits ? copyOf(words) : words;
  if (fits) {
    words.fill(EMPTY);
    next.used = 0;
    next.live = 0;
  }
  for (let at = 0; at < words.length; at += WORDS) {
    const ordinal = from[at + 1] as number;
    if (ordinal > GONE) put(next, from[at] as number, ordinal, from[at + 2] as number);
  }
  return next;
};

/** Where rows are while their shard is written anew. */
let copied: Uint32Array = new Uint32Array(0);

const copyOf = (words: Uint32Array): Uint32Array => {
  if (copied.length < words.length) copied = new Uint32Array(offHeap(words.length * 4));
  copied.set(words);
  return copied;
};

/** FNV-1a, from the end on: the front of an id is time, which neighbours share. */
export const hashOf = (text: string, seed = BASIS): number => {
  let hash = seed;
  for (let at = text.length - 1; at >= 0; at--) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
};
