import { copiedText } from "#kit/copied-text.ts";
import { PREVIEW_CHARACTERS } from "#kit/previews.ts";

/** The part of a text that is read for its preview, without the white space before it. */
const READ_CHARACTERS = 4 * PREVIEW_CHARACTERS;
/** White space that a preview does not have. */
const OTHER_SPACE = /[^\S ]| {2}|^ | $/;

/**
 * The beginning of a text, with each run of white space as one space. It never ends in half a surrogate pair. Only a beginning of 120 characters may end
 * inside a word: by this length, readers recognise that a secret may have been cut.
 */
export function previewOf(text: string): string {
  // Most messages are short lines, and a replacement allocates even where it changes nothing.
  if (text.length <= PREVIEW_CHARACTERS && !OTHER_SPACE.test(text) && !endsInHalf(text)) return text;
  const trimmed = text.trimStart();
  const read = trimmed.slice(0, READ_CHARACTERS).replace(/\s+/g, " ");
  const isWhole = trimmed.length <= READ_CHARACTERS || read.length >= PREVIEW_CHARACTERS;
  const line = (isWhole ? read.slice(0, PREVIEW_CHARACTERS) : read.replace(/\S*$/, "")).trimEnd();
  return copiedText(endsInHalf(line) ? line.slice(0, -1) : line);
}

function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
