import type { Clock } from "#kit/clock.ts";
import { withoutCredentials } from "#kit/secret-headers.ts";
import { hashOf } from "#kit/secrets.ts";

/** Characters of a bearer token. A full stop behind it ends a sentence. */
const WORD = /[\w.~+/-]{6,}[\w~+/-]=*/g;

/** Hides the tokens that let somebody in here, wherever they are in a text. The gateway knows them by their hashes alone. */
export const createTokenHider =
  (isKnown: (hash: Buffer) => boolean) =>
  (text: string): string =>
    text.replace(WORD, (word) => (isKnown(hashOf(word)) ? "[hidden]" : word));

const REMEMBERED_MS = 1_000;
const MOST_LINES = 1_000;
const MOST_CHARS = 256;

/** Hides secrets in the line of a header. Each line is looked through once a second, as clients repeat their headers. */
export const createLineHider = (hide: (line: string) => string, clock: Clock): ((line: string) => string) => {
  const hidden = new Map<string, string>();
  let since = clock.monotonic();
  return (line) => {
    const now = clock.monotonic();
    if (now - since >= REMEMBERED_MS || hidden.size >= MOST_LINES) {
      hidden.clear();
      since = now;
    }
    const known = hidden.get(line);
    if (known !== undefined) return known;
    const shown = hide(withoutCredentials(line));
    if (line.length <= MOST_CHARS) hidden.set(line, shown);
    return shown;
  };
};
