/** The characters that are compared at once. */
const BLOCK = 3;
/** The most characters that one step may pass over. */
const MOST_WINDOW = 12;
const LEAST_BITS = 12;
const MOST_BITS = 20;
/** Places of the table for each block of a sought text: the more, the seldomer two blocks share one. */
const PLACES = 16;

/** Finds any of many texts. */
export type TextFinder = {
  /** The place of the first match at or after `from`; -1 if there is none. */
  find(text: string, from: number): number;
  /** The longest of them that stands at this place. Call it with a position that `find` returned. */
  at(text: string, place: number): string;
};

/**
 * The algorithm of Wu and Manber: a table says for each three characters how far the next of the texts can begin at the nearest, so that
 * most characters of a text without any are never read. Searching allocates nothing. `texts` have three characters at least.
 */
export function createTextFinder(texts: readonly string[]): TextFinder {
  const window = texts.reduce((least, { length }) => Math.min(least, length), MOST_WINDOW);
  const steps = window - BLOCK + 1;
  const bits = Math.min(MOST_BITS, Math.max(LEAST_BITS, Math.ceil(Math.log2(texts.length * steps * PLACES + 1))));
  const mask = (1 << bits) - 1;
  // Small integers only: others would be allocated.
  const blockAt = (text: string, end: number): number =>
    (text.charCodeAt(end - 2) * 1369 + text.charCodeAt(end - 1) * 37 + text.charCodeAt(end)) & mask;
  const shifts = new Uint8Array(mask + 1).fill(steps);
  /** The texts by the last block of their first `window` characters, the longest first. */
  const endingWith = new Map<number, string[]>();
  for (const text of texts) {
    for (let end = BLOCK - 1; end < window; end++) {
      const block = blockAt(text, end);
      shifts[block] = Math.min(shifts[block] as number, window - 1 - end);
    }
    const last = blockAt(text, window - 1);
    const others = endingWith.get(last);
    if (others) others.push(text);
    else endingWith.set(last, [text]);
  }
  for (const some of endingWith.values()) some.sort((a, b) => b.length - a.length);

  const foundAt = (text: string, place: number, block: number): string | undefined => {
    const some = endingWith.get(block);
    if (some) for (let n = 0; n < some.length; n++) if (text.startsWith(some[n] as string, place)) return some[n];
    return undefined;
  };

  return {
    find(text, from) {
      for (let end = from + window - 1; end < text.length; ) {
        const block = blockAt(text, end);
        const shift = shifts[block] as number;
        if (shift > 0) end += shift;
        else if (foundAt(text, end - window + 1, block) !== undefined) return end - window + 1;
        else end++;
      }
      return -1;
    },
    at: (text, place) => foundAt(text, place, blockAt(text, place + window - 1)) as string,
  };
}
