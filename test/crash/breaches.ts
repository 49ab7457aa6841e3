export const PROMISES = [
  "every acknowledged id exists",
  "a refusal stores nothing",
  "each turn ends exactly once",
  "order in each session",
  "no event is lost or handled twice",
  "one effect per key",
  "a reply is its message's",
  "no state moves backwards",
  "a stream continues where it ended",
  "a key is known everywhere",
  "each end is notified",
  "nothing unexpected happens",
  "every resource is released",
  "no secret in the log",
] as const;
export type Promised = (typeof PROMISES)[number];

/** A broken promise: its kind and the ids. */
export type Broken = { promise: Promised; words: string; ids: readonly string[] };

export function breach(promise: Promised, words: string, ...ids: readonly (string | undefined)[]): Broken {
  return {
    promise,
    words,
    ids: ids.filter((id) => id !== undefined),
  };
}

const SHOWN = 10;

/** The report for a reader: each promise with its first breaches and their number. */
export function showBroken(broken: readonly Broken[]): string {
  return PROMISES.flatMap((promise) => {
    const found = broken.filter((one) => one.promise === promise);
    if (found.length === 0) return [];
    const lines = found.slice(0, SHOWN).map(({ words, ids }) => `    ${words}: ${ids.join(", ")}`);
    const more = found.length > SHOWN ? [`    and ${found.length - SHOWN} more`] : [];
    return [`  BROKEN ${promise} (${found.length})`, ...lines, ...more];
  }).join("\n");
}
