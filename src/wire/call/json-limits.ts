const QUOTE = 34;
const DEPTH_LIMIT = 64;
/** A body of more values would stand in everybody's way while it is parsed and checked: 80 000 keys took 90 ms. */
const VALUES_LIMIT = 10_000;
/** A comma or a bracket comes before each value but the first, and so before each two strings. */
const STRINGS_LIMIT = 2 * (VALUES_LIMIT + 1);

const COMMA = 44;

/** After so many characters that say nothing, most of them of long numbers, the next that does is looked for, which is ten times as fast. */
const SHORT = 32;
const TELLING = /["[\]{},]/g;

/** Tells whether a text has too few brackets to be nested too deep, be they within strings or not. */
const hasFewBrackets = (text: string): boolean => {
  if (text.length < DEPTH_LIMIT * 2) return true;
  let found = 0;
  for (let at = text.indexOf("{"); at >= 0 && found <= DEPTH_LIMIT; at = text.indexOf("{", at + 1)) found++;
  for (let at = text.indexOf("["); at >= 0 && found <= DEPTH_LIMIT; at = text.indexOf("[", at + 1)) found++;
  return found <= DEPTH_LIMIT;
};

/** Counts brackets and commas outside strings; most bodies are too short, and have too few, to need the count. */
export const limitPassed = (text: string): string | undefined => {
  if (text.length < VALUES_LIMIT && hasFewBrackets(text)) return undefined;
  let depth = 0;
  let values = 0;
  let strings = 0;
  let silent = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      // Not JSON, as each value has a text at most, and a name: JSON.parse finds out at once.
      if (++strings > STRINGS_LIMIT) return undefined;
      at = endOfString(text, at) - 1;
    } else if (unit === 91 || unit === 123) {
      if (++depth > DEPTH_LIMIT) return `The body is nested deeper than ${DEPTH_LIMIT} levels.`;
      values++;
    } else if (unit === 93 || unit === 125) depth--;
    else if (unit === COMMA) values++;
    else if (++silent === SHORT) {
      TELLING.lastIndex = at;
      if (!TELLING.test(text)) return undefined;
      at = TELLING.lastIndex - 2;
      silent = 0;
    }
    if (values > VALUES_LIMIT) return `The body holds more than ${VALUES_LIMIT} values.`;
  }
  return undefined;
};

const BACKSLASH = 92;
/**
 * Short strings are gone through; in what is left of a longer one its end is looked for, which is ten times as fast. Where that finds a quote
 * that is escaped, there are mostly more.
 */
const SHORT_STRING = 16;
const ESCAPED = 256;

/** Where the JSON string that begins at a quote ends: behind its other quote, or with the text if it has none. */
export const endOfString = (text: string, quote: number): number => {
  let at = quote + 1;
  let look = SHORT_STRING;
  while (at < text.length) {
    for (const near = Math.min(at + look, text.length); at < near; at++) {
      const unit = text.charCodeAt(at);
      if (unit === QUOTE) return at + 1;
      if (unit === BACKSLASH) at++;
    }
    const next = text.indexOf('"', at);
    if (next < 0) return text.length;
    let unescaped = next;
    while (unescaped > at && text.charCodeAt(unescaped - 1) === BACKSLASH) unescaped--;
    if ((next - unescaped) % 2 === 0) return next + 1;
    at = next + 1;
    look = ESCAPED;
  }
  return text.length;
};
