const SLOTS = 8192;
const slotOf = (first: number, second: number): number => (first * 31 + second * 977) & (SLOTS - 1);

/**
 * A function that says whether a text holds any of the words. It looks at every few characters only (Wu and Manber's
 * way), so that its cost grows with the text and hardly with the number of words. No word is under 2 characters.
 */
export const findAny = (words: readonly string[]): ((text: string) => boolean) => {
  if (words.length === 0) return () => false;
  const window = Math.min(...words.map((word) => word.length));
  // How far the window may move when it ends with this pair of characters; 0: a word may begin where the window does.
  const moves = new Int32Array(SLOTS).fill(window - 1);
  const candidates = new Map<number, string[]>();
  for (const word of words) {
    for (let end = 1; end < window; end++) {
      const slot = slotOf(word.charCodeAt(end - 1), word.charCodeAt(end));
      moves[slot] = Math.min(moves[slot] ?? 0, window - 1 - end);
      if (end === window - 1) candidates.set(slot, [...(candidates.get(slot) ?? []), word]);
    }
  }
  return (text) => {
    for (let end = window - 1; end < text.length; ) {
      const slot = slotOf(text.charCodeAt(end - 1), text.charCodeAt(end));
      const move = moves[slot] ?? 1;
      if (move > 0) {
        end += move;
        continue;
      }
      for (const word of candidates.get(slot) ?? []) if (text.startsWith(word, end - window + 1)) return true;
      end++;
    }
    return false;
  };
};
