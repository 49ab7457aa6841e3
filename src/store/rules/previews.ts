import { copiedText } from "#kit/copied-text.ts";

const PREVIEW_CHARACTERS = 120;
/** The part of a text that is read for its preview, without the white space before it. */
const READ_CHARACTERS = 4 * PREVIEW_CHARACTERS;
/** White space that a preview does not have. */
const OTHER_SPACE = /[^\S ]| {2}|^ | $/;

/** The beginning of a text, with each run of white space as one space. It never ends in half a surrogate pair. */
export function previewOf(text: string): string {
  // Most messages are short lines, and a replacement allocates even where it changes nothing.
  if (text.length <= PREVIEW_CHARACTERS && !OTHER_SPACE.test(text) && !endsInHalf(text)) return text;
  const line = text.trimStart().slice(0, READ_CHARACTERS).replace(/\s+/g, " ").slice(0, PREVIEW_CHARACTERS).trimEnd();
  return copiedText(endsInHalf(line) ? line.slice(0, -1) : line);
}

function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
