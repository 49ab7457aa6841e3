/**
 * Text as a value that SQLite keeps as it is. The driver cuts text at its first NUL and spoils half characters: text with either goes as
 * bytes. (In JSON both are escaped.)
 */
export const toSql = (text: string): string | Buffer =>
  text.includes("\0") || !text.isWellFormed() ? Buffer.from(text, "utf16le") : text;

export const fromSql = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString("utf16le") : String(value));
