/** Characters that steer a terminal or turn the direction of writing: all controls but the line break and the tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys these characters
const STEERING = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const BREAKING = /[\n\t\u2028\u2029]/g;

const escaped = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * The text with every character that would steer a terminal written as `\u001b` is. JSON stays the same JSON. A line break of Windows
 * becomes one of Unix.
 */
export const visible = (text: string): string => text.replaceAll("\r\n", "\n").replace(STEERING, escaped);

/** The same in one line: line breaks and tabs are escaped, too. */
export const visibleLine = (text: string): string => text.replace(STEERING, escaped).replace(BREAKING, escaped);
