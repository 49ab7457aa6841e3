import { HIDDEN } from "./secret-headers.ts";

/** Colours and cursor movements of terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is how they begin
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;
/** Controls, and characters that would show a reader another order of characters than there is. */
const UNSEEN = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]+/gu;
const CREDENTIALS = /\/\/[^\s/@]*@/g;
/** As providers write their keys. */
const KEYS = /\b(?:sk|rk|gw|ghp|gho|xoxb|xoxp)[-_][\w-]{8,}|\bBearer\s+[\w.~+/=-]{8,}/g;

/** A text without keys as providers write them, and without bearer tokens. */
export function withoutKeys(text: string): string {
  return text.replace(KEYS, HIDDEN);
}

/**
 * Words of somebody else's program, fit for a person and a line of a log: one line, no controls, no half of a character, nothing that
 * names an account in an address or looks like a key, and cut to `most` characters. Empty where nothing is left.
 */
export function cleanSentence(words: string, most = 300): string {
  const clean = words
    .slice(0, most * 8)
    .replace(ESCAPES, "")
    .replace(UNSEEN, " ")
    .replace(/\p{Surrogate}/gu, "")
    .replace(CREDENTIALS, "//")
    .replace(KEYS, "…")
    .replace(/\s+/g, " ")
    .trim();
  return clean.length <= most ? clean : `${clean.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
