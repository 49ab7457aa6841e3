/** A copy of a text. V8 keeps the whole text in memory for a slice of it. */
export function copiedText(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
