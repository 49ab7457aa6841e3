const PREVIEW_CHARACTERS = 120;
/** The part of a text that is read for its preview, without the white space before it. */
const READ_CHARACTERS = 4 * PREVIEW_CHARACTERS;

/** The beginning of a text, with each run of white space as one space. It never ends in half a surrogate pair. */
export function previewOf(text: string): string {
  const line = text.trimStart().slice(0, READ_CHARACTERS).replace(/\s+/g, " ").slice(0, PREVIEW_CHARACTERS).trimEnd();
  const preview = endsInHalf(line) ? line.slice(0, -1) : line;
  // A slice would keep the whole text in memory, so it is copied.
  return preview === text ? text : Buffer.from(preview, "utf16le").toString("utf16le");
}

function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
