import { isUtf8 } from "node:buffer";

/** Bytes of UTF-16 come behind one with which no UTF-8 begins. */
const UTF16 = 0xff;

class DamagedText extends Error {}

/** True if the text differs from the text that was written. (All text that is parsed as JSON here was written as JSON.) */
export function isDamage(error: unknown): boolean {
  return error instanceof DamagedText || error instanceof SyntaxError;
}

/** The message for the one call that asks for damaged text. */
export const DAMAGE = "The requested record is damaged in the SQLite file.";

/**
 * Text as a value that SQLite keeps as it is. The driver cuts text at its first NUL and spoils half characters: text with either goes as
 * bytes. (In JSON both are escaped.)
 */
export function toSql(text: string): string | Buffer {
  return text.includes("\0") || !text.isWellFormed() ? Buffer.from(text, "utf16le") : text;
}

/**
 * A column of text, as it is to be read: as bytes, which `fromBytes` makes text again. With text that is no UTF-8, as a bit that flipped on
 * the disk leaves it, the driver ends the whole process.
 */
export function bytesOf(column: string): string {
  return `CAST(${column} AS BLOB)`;
}

/** A column that may hold the bytes that `toSql` makes, or numbers. */
export function freeBytesOf(column: string): string {
  const marked = `CAST(x'${UTF16.toString(16)}' || ${column} AS BLOB)`;
  return `CASE typeof(${column}) WHEN 'text' THEN ${bytesOf(column)} WHEN 'blob' THEN ${marked} ELSE ${column} END`;
}

export function fromBytes(bytes: Buffer): string {
  if (bytes[0] === UTF16) return bytes.toString("utf16le", 1);
  if (!isUtf8(bytes)) throw new DamagedText("A text is not UTF-8.");
  return bytes.toString("utf8");
}
