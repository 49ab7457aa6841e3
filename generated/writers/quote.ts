// Copied by "npm run generate" from scripts/generate/runtime/writers/quote.ts; do not edit.
// What JSON escapes: quotes, backslashes, controls, and surrogates that stand alone. All surrogates are left to who knows which do.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that JSON escapes
export const ESCAPED = /["\\\0-\x1f\ud800-\udfff]/;

/** A text as JSON, as JSON.stringify has it. Most texts have nothing to escape, and to see that costs a fraction of what that costs. */
export const quote = (text: string): string => {
  if (!ESCAPED.test(text)) return `"${text}"`;
  if (text.length <= LONG) return JSON.stringify(text);
  if (!text.isWellFormed()) return quoteHalves(text);
  return BESIDE_HALVES.test(text) ? JSON.stringify(text) : `"${text}"`;
};

/** What is escaped where no surrogate stands alone. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that JSON escapes
const BESIDE_HALVES = /["\\\0-\x1f]/;

/** From here on a text of surrogates that stand alone is escaped here: JSON.stringify takes 25 ms for a megabyte of them, and everybody waits. */
const LONG = 8_192;

/** In two bytes each, so many units at once. */
const UNITS = 65_536;
const MOST_OF_ONE = 6;
let units: Uint16Array | undefined;

const HEX = Uint16Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));
const [BACKSLASH, QUOTE, SPACE] = [0x5c, 0x22, 0x20];
const [U, D] = [0x75, 0x64];

const quoteHalves = (text: string): string => {
  units ??= new Uint16Array(UNITS);
  let json = '"';
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    if (length > UNITS - MOST_OF_ONE) {
      json += textOf(units, length);
      length = 0;
    }
    const unit = text.charCodeAt(at);
    if (isSurrogate(unit)) {
      if (isFirstHalf(unit) && isSecondHalf(text.charCodeAt(at + 1))) {
        units[length++] = unit;
        units[length++] = text.charCodeAt(++at);
      } else {
        units[length++] = BACKSLASH;
        units[length++] = U;
        units[length++] = D;
        units[length++] = HEX[(unit >> 8) & 15] as number;
        units[length++] = HEX[(unit >> 4) & 15] as number;
        units[length++] = HEX[unit & 15] as number;
      }
    } else if (unit < SPACE || unit === QUOTE || unit === BACKSLASH) {
      const escaped = JSON.stringify(text[at]);
      for (let n = 1; n < escaped.length - 1; n++) units[length++] = escaped.charCodeAt(n);
    } else {
      units[length++] = unit;
    }
  }
  return `${json}${textOf(units, length)}"`;
};

const textOf = ({ buffer }: Uint16Array, length: number): string =>
  Buffer.from(buffer, 0, length * 2).toString("utf16le");
const isSurrogate = (unit: number): boolean => (unit & 0xf800) === 0xd800;
const isFirstHalf = (unit: number): boolean => (unit & 0xfc00) === 0xd800;
const isSecondHalf = (unit: number): boolean => (unit & 0xfc00) === 0xdc00;
