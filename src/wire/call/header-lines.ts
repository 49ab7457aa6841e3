import type { Clock } from "#kit/clock.ts";
import { HIDDEN, isSecretHeader, withoutCredentials } from "#kit/secret-headers.ts";
import { hashOf } from "#kit/secrets.ts";

/** Characters of a bearer token. A full stop behind it ends a sentence. */
const WORD = /[\w.~+/-]{6,}[\w~+/-]=*/g;

/** Hides the tokens that are valid here, wherever they are in a text. The gateway knows only their hashes. */
export function createTokenHider(isKnown: (hash: Buffer) => boolean) {
  return (text: string): string => text.replace(WORD, (word) => (isKnown(hashOf(word)) ? HIDDEN : word));
}

const REMEMBERED_MS = 1_000;
const MOST_LINES = 1_000;
const MOST_CHARS = 256;

/** Headers that hold an address. As with the path, nothing is kept of its query: people put tokens there. */
const ADDRESSES = new Set(["referer", "x-original-url", "x-original-uri", "x-rewrite-url", "x-forwarded-uri"]);

/** Writes headers as lines, without secrets. */
export type HeaderLines = (rawHeaders: readonly string[]) => string;

/** The line of a header is cached for a second, because clients repeat most headers. */
export function createHeaderLines(hide: (line: string) => string, clock: Clock): HeaderLines {
  /** Lines by the header's name and value. */
  const known = new Map<string, Map<string, string>>();
  let lines = 0;
  let since = clock.monotonic();
  const lineOf = (name: string, value: string): string => {
    if (isSecretHeader(name)) return "";
    const shown = ADDRESSES.has(name) ? value.replace(/\?.*$/s, "").replace(/\/\/[^/]*@/, "//") : value;
    return hide(withoutCredentials(`${name}: ${shown}`));
  };
  const remembered = (name: string, value: string): string => {
    const found = known.get(name)?.get(value);
    if (found !== undefined) return found;
    const line = lineOf(name.toLowerCase(), value);
    if (name.length + value.length > MOST_CHARS) return line;
    const values = known.get(name) ?? new Map<string, string>();
    known.set(name, values.set(value, line));
    lines++;
    return line;
  };
  return (raw) => {
    const now = clock.monotonic();
    if (now - since >= REMEMBERED_MS || lines >= MOST_LINES) {
      known.clear();
      lines = 0;
      since = now;
    }
    const shown: string[] = [];
    for (let n = 0; n < raw.length; n += 2) {
      const line = remembered(raw[n] as string, raw[n + 1] as string);
      if (line !== "") shown.push(line);
    }
    return shown.join("\n");
  };
}
