// What JSON escapes: quotes, backslashes, controls, and surrogates that stand alone. All surrogates are left to who knows which do.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that JSON escapes
export const ESCAPED = /["\\\0-\x1f\ud800-\udfff]/;

/** A text as JSON, as JSON.stringify has it. Most texts have nothing to escape, and to see that costs a fraction of what that costs. */
export const quote = (text: string): string => (ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`);
