/** Names longer than any of ours, or more than a person would name, are not compared: it would take long. */
const LONGEST = 64;
const MOST = 100;

/** The name that was probably meant: the nearest of those known, if it is near enough. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined;
  let best: string | undefined;
  let least = (name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3))) + 1;
  const written = name.toLowerCase();
  for (const candidate of known.slice(0, MOST)) {
    if (candidate.length > LONGEST) continue;
    const steps = distance(written, candidate.toLowerCase(), Math.min(least, candidate.length));
    if (steps === undefined) continue;
    best = candidate;
    least = steps;
  }
  return best;
}

/**
 * How many letters to add, drop, change or swap with their neighbour to get from one text to the other; undefined if it is `limit` or more.
 * Any stranger's request may ask, so it gives up as soon as that is known.
 */
function distance(from: string, to: string, limit: number): number | undefined {
  if (Math.abs(from.length - to.length) >= limit) return undefined;
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    let least = i;
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let steps = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        steps = Math.min(steps, (before[j - 2] ?? 0) + 1);
      }
      next.push(steps);
      if (steps < least) least = steps;
    }
    // A swap continues from the row before the last one: both must be above the limit.
    if (least >= limit && Math.min(...row) >= limit) return undefined;
    before = row;
    row = next;
  }
  const steps = row[to.length] ?? 0;
  return steps < limit ? steps : undefined;
}
