import { createHash } from "node:crypto";

/** The first character of an encoded text. */
const MARK = "\u0001";

/** Encodes a text if PostgreSQL cannot store it: it accepts neither U+0000 nor lone surrogates, and callers may send both. */
export function encodeText(text: string): string {
  return text.charCodeAt(0) === 1 || text.includes("\0") || !text.isWellFormed() ? MARK + JSON.stringify(text) : text;
}

/** The original of an encoded text. */
export function decodeText(stored: string): string {
  return stored.charCodeAt(0) === 1 ? (JSON.parse(stored.slice(1)) as string) : stored;
}

/** The longest key that an index accepts. */
const LONGEST_KEY = 300;

/** Encodes an idempotency key for the index: a key that is too long or cannot be stored is replaced by its hash. */
export function encodeKey(key: string): string {
  return key.length <= LONGEST_KEY && key.isWellFormed() && !key.includes("\0")
    ? key
    : `${MARK}${createHash("sha256").update(JSON.stringify(key)).digest("base64url")}`;
}
