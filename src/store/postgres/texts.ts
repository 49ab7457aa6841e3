import { createHash } from "node:crypto";

/** Before a text that PostgreSQL could not hold as it is. */
const MARK = "\u0001";

/** The text as PostgreSQL holds it: that takes neither U+0000 nor half of a surrogate pair, and callers may send both. */
export function keepText(text: string): string {
  return text.charCodeAt(0) === 1 || text.includes("\0") || !text.isWellFormed() ? MARK + JSON.stringify(text) : text;
}

/** The text that `keepText` was given. */
export function readText(stored: string): string {
  return stored.charCodeAt(0) === 1 ? (JSON.parse(stored.slice(1)) as string) : stored;
}

export function keepOptional(text: string | undefined): string | undefined {
  return text === undefined ? undefined : keepText(text);
}

export function readOptional(stored: string | null | undefined): string | undefined {
  return stored === null || stored === undefined ? undefined : readText(stored);
}

/** An index takes no longer ones. */
const LONGEST_KEY = 300;

/** An idempotency key as it is looked for: callers choose keys, of any length. */
export function keepKey(key: string): string {
  return key.length <= LONGEST_KEY && key.isWellFormed() && !key.includes("\0")
    ? key
    : `${MARK}${createHash("sha256").update(JSON.stringify(key)).digest("base64url")}`;
}
