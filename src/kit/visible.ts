// The command line, the log and the console use these functions to show foreign text.

/** Characters that control a terminal or change the writing direction: all controls but the line break and the tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys these characters
const STEERING = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const BREAKING = /[\n\t\u2028\u2029]/g;

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * The text with every character that would control a terminal escaped, as in `\u001b`. JSON stays the same JSON. A line break of Windows
 * becomes one of Unix.
 */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(STEERING, escaped);
}

/** The same in one line: line breaks and tabs are escaped, too. */
export function visibleLine(text: string): string {
  return text.replace(STEERING, escaped).replace(BREAKING, escaped);
}

/** A control character by its name in Unicode, as in `⟨U+202E⟩`. For text on a page, which is never JSON to be read again. */
function named(sign: string): string {
  return `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The text in pieces: the parts shown unchanged, and each control character, named. A text without any is one piece. */
export function piecesOf(given: string): { text: string; isSign: boolean }[] {
  const text = given.replaceAll("\r\n", "\n");
  const pieces: { text: string; isSign: boolean }[] = [];
  let from = 0;
  for (const { 0: sign, index } of text.matchAll(STEERING)) {
    if (index > from) pieces.push({ text: text.slice(from, index), isSign: false });
    pieces.push({ text: named(sign), isSign: true });
    from = index + 1;
  }
  if (from < text.length || pieces.length === 0) pieces.push({ text: text.slice(from), isSign: false });
  return pieces;
}
